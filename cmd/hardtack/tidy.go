package main

import (
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"hardtack/tool/fault"
)

// tidy removes what a verb has in the making when a signal ends it. `run`
// does without: a machine has no files with names.
type tidy struct {
	mu    sync.Mutex
	paths map[string]bool // guarded by mu
}

// newTidy takes the signals over until stop is called.
func newTidy() (t *tidy, stop func()) {
	t = &tidy{paths: map[string]bool{}}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	go func() {
		if got, ok := (<-signals).(syscall.Signal); ok {
			t.removeAll()
			os.Exit(128 + int(got))
		}
	}()
	return t, func() {
		signal.Stop(signals)
		t.removeAll()
	}
}

func (t *tidy) removeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for p := range t.paths {
		os.RemoveAll(p)
	}
}

// dir makes a temporary directory and has everybody's temporary files in it.
func (t *tidy) dir() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	dir, err := os.MkdirTemp("", "hardtack-")
	if err != nil {
		return err
	}
	t.paths[dir] = true
	return os.Setenv("TMPDIR", dir)
}

// create gives make a file beside name and moves it to name when make has
// succeeded: who has the name has the whole file.
func (t *tidy) create(name string, fill func(tmp string) error) error {
	if name == "-" {
		return fill("/dev/stdout")
	}
	if info, err := os.Stat(name); err == nil {
		switch {
		case info.IsDir():
			return fault.Bad("-o %s: it is a directory", name)
		case !info.Mode().IsRegular():
			return fill(name) // a pipe or a device is written to, not replaced
		}
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return err
		}
	}
	t.mu.Lock()
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		t.mu.Unlock()
		if os.IsNotExist(err) || os.IsPermission(err) {
			return fault.Bad("-o %s: %v", name, err)
		}
		return err
	}
	tmp := f.Name()
	t.paths[tmp] = true
	t.mu.Unlock()
	f.Close()

	if err := fill(tmp); err != nil {
		return err
	}
	if err := os.Chmod(tmp, 0o644); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := os.Rename(tmp, name); err != nil {
		return err
	}
	delete(t.paths, tmp)
	return nil
}
