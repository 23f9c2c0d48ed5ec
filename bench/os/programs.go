package osbench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Dirs says where things are: the repository and its build cache.
type Dirs struct {
	Repo  string // the module's root
	Cache string // Repo/build/bench
	Tool  string // the command hardtack; empty for Repo/bin/hardtack
}

// FindDirs looks for go.mod from the working directory upwards.
func FindDirs() (Dirs, error) {
	dir, err := os.Getwd()
	if err != nil {
		return Dirs{}, err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			d := Dirs{Repo: dir, Cache: filepath.Join(dir, "build", "bench")}
			return d, os.MkdirAll(d.Cache, 0o755)
		}
		if filepath.Dir(dir) == dir {
			return Dirs{}, fmt.Errorf("no go.mod above the working directory")
		}
		dir = filepath.Dir(dir)
	}
}

// run executes a command and puts its output into the error.
func run(dir, name string, arg ...string) error {
	cmd := exec.Command(name, arg...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(arg, " "), err, out)
	}
	return nil
}

// Programs compiles bench/os/guest and returns it as a tree under bench/, with
// the command file `commands` (see guest/init.c).
func Programs(d Dirs, commands string) (Tree, error) {
	if _, err := exec.LookPath("gcc"); err != nil {
		return nil, fmt.Errorf("the guest programs are C: install the package gcc: %w", err)
	}
	src := filepath.Join(d.Repo, "bench", "os", "guest")
	flags := []string{"-static", "-O2", "-Wall", "-s", "-o"}
	for out, args := range map[string][]string{
		"init":    {"init.c"},
		"osbench": {"main.c", "micro.c", "ipc.c", "server.c", "sched.c", "crowd.c"},
		"disk":    {"disk.c"},
		"tiny":    {"-nostdlib", "tiny.S"},
	} {
		arg := append(append(flags[:len(flags):len(flags)], filepath.Join(d.Cache, out)), args...)
		if err := run(src, "gcc", arg...); err != nil {
			return nil, err
		}
	}
	t := Tree{}
	for _, name := range []string{"init", "osbench", "disk", "tiny"} {
		data, err := os.ReadFile(filepath.Join(d.Cache, name))
		if err != nil {
			return nil, err
		}
		t.Add("bench/"+name, 0o755, data)
	}
	t.Add("bench/run", 0o644, []byte(commands))
	for _, dir := range []string{"tmp", "proc", "sys", "dev", "run"} {
		t.Add(dir, os.ModeDir|0o755, nil)
	}
	return t, nil
}
