package rootfs

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// The owner of a directory replaces parts of it by links to what only the reader may
// read, again and again. Nothing of that gets into the tree.
func TestReadDirWhileItIsSwapped(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	outside, dir := t.TempDir(), t.TempDir()
	for _, d := range []string{outside, filepath.Join(dir, "sub")} {
		must(os.MkdirAll(filepath.Join(d, "deep"), 0o755))
		text := []byte("mine")
		if d == outside {
			text = []byte("secret")
			must(os.WriteFile(filepath.Join(d, "hidden"), nil, 0o600))
		}
		must(os.WriteFile(filepath.Join(d, "f"), text, 0o644))
		must(os.WriteFile(filepath.Join(d, "deep", "g"), text, 0o644))
	}
	must(os.WriteFile(filepath.Join(dir, "file"), []byte("mine"), 0o644))
	must(os.Symlink(outside, filepath.Join(dir, "link")))
	must(os.Symlink(filepath.Join(outside, "f"), filepath.Join(dir, "flink")))

	var swaps atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		swap := func(a, b string) {
			if unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, a), unix.AT_FDCWD, filepath.Join(dir, b), unix.RENAME_EXCHANGE) == nil {
				swaps.Add(1)
			}
		}
		for {
			select {
			case <-stop:
				return
			default:
				swap("sub", "link")
				swap("file", "flink") // not in sub: that may be the link
			}
		}
	}()
	read := 0
	for range 3000 {
		tree := New(roomy)
		if err := tree.ReadDir(dir, AsIs); err != nil {
			continue // it may be told that something was replaced
		}
		for _, name := range []string{"file", "flink", "sub/f", "sub/deep/g", "sub/hidden", "link/f", "link/deep/g", "link/hidden"} {
			n, err := tree.Lookup(name, false)
			if err != nil {
				continue
			}
			if filepath.Base(name) == "hidden" {
				t.Fatalf("%s is in the tree", name)
			}
			b, err := io.ReadAll(n.Data.Open())
			if bytes.Contains(b, []byte("secret")) {
				t.Fatalf("%s has the content of a file outside", name)
			}
			if err == nil && len(b) > 0 {
				read++
			}
		}
	}
	close(stop)
	<-done
	if swaps.Load() == 0 {
		t.Skip("this file system cannot exchange names")
	}
	if read == 0 {
		t.Error("nothing was ever read")
	}
}
