package outside_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const program = `package main

import (
	"context"
	"fmt"

	"hardtack/affinity"
	"hardtack/lock"
	"hardtack/msg"
	_ "hardtack/msg/ump"
	"hardtack/task"
)

func main() {
	var l lock.Ticket
	l.Lock()
	l.Unlock()
	n, err := task.Run(context.Background(), func(task.Ctx) int { return 7 })
	fmt.Println(n, err, msg.ErrClosed, affinity.Available())
}
`

// lines are those of a guide that name $HARDTACK: how a module finds the libraries.
func lines(t *testing.T, guide string) string {
	t.Helper()
	for _, b := range blocks(t, filepath.Join(root(t), "docs/guides", guide)) {
		if b.lang == "sh" && strings.Contains(b.text, "$HARDTACK") {
			if n := strings.Count(b.text, "\n"); n > 4 {
				t.Errorf("%s:%d: %d lines", guide, b.line, n)
			}
			return b.text
		}
	}
	t.Fatalf("%s does not say how to find the libraries", guide)
	return ""
}

// The installed libraries ask for no patch level of Go, and a checkout serves as they do.
func TestModule(t *testing.T) {
	at := prefix(t)
	for name, hardtack := range map[string]string{
		"installed": filepath.Join(at, "share/hardtack/go"),
		"checkout":  root(t),
	} {
		t.Run(name, func(t *testing.T) {
			o := newOutside(t, at, hardtack)
			o.put(t, "main.go", program)
			o.sh(t, strings.Replace(lines(t, "task.md"), "\n", "\ngo mod edit -go=1.26.0\n", 1))
			if out, want := o.sh(t, "go run ."), "7 <nil> msg: connection closed false\n"; out != want {
				t.Errorf("%q, want %q", out, want)
			}
			o.sums(t)
			mod, err := os.ReadFile(filepath.Join(o.dir, "go.mod"))
			if err != nil {
				t.Fatal(err)
			}
			if old := strings.Contains(string(mod), "\ngo 1.26.0\n"); name == "installed" && !old {
				t.Errorf("a newer Go is required:\n%s", mod)
			}
			if strings.Contains(string(mod), "gvisor") || strings.Contains(string(mod), "nats") {
				t.Errorf("what the kernel needs is required:\n%s", mod)
			}
		})
	}
}

// What is installed is all there, none of it is private, and pkg-config finds it also
// below DESTDIR.
func TestInstalledFiles(t *testing.T) {
	at := prefix(t)
	for _, name := range []string{"bin/hardtack", "include/hardtack/ht_msg.h", "include/hardtack/ht_wire.h", "include/hardtack/ht_names.h",
		"lib/libhardtack.a", "lib/pkgconfig/hardtack.pc", "share/hardtack/go/go.mod", "share/hardtack/go/LICENSE",
		"share/hardtack/go/msg/nats/node.go", "share/doc/hardtack/task.md"} {
		if s, err := os.Stat(filepath.Join(at, name)); err != nil || s.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"include/hardtack/ht_int.h", "share/hardtack/go/kernel", "share/hardtack/go/lock/lock_test.go"} {
		if _, err := os.Stat(filepath.Join(at, name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	if !has("pkg-config") {
		t.Skip("no pkg-config")
	}
	o := newOutside(t, at, "")
	if out, want := o.sh(t, "pkg-config --cflags --libs hardtack"), "-I"+at+"/include/hardtack -L"+at+"/lib -lhardtack"; strings.TrimSpace(out) != want {
		t.Errorf("pkg-config: %q, want %q", out, want)
	}
}

// A copy of the libraries is renewed, and nothing else is overwritten.
func TestLibraryAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "copy")
	library := func() error {
		cmd := exec.Command("go", "run", "./tool/library", "-o", dir, "-module", "example.com/x")
		cmd.Dir = root(t)
		return cmd.Run()
	}
	if err := library(); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join(dir, "FILES"))
	if err != nil || !strings.Contains(string(list), "\nlock/doc.go\n") {
		t.Fatalf("%v, %q", err, list)
	}
	// A file of an earlier version goes.
	gone := filepath.Join(dir, "lock/gone.go")
	for name, text := range map[string]string{gone: "package lock\n", filepath.Join(dir, "FILES"): "lock/gone.go\n" + string(list)} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := library(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(gone); err == nil {
		t.Error("a file of an earlier version is still there")
	}
	// Somebody else's folder is left alone.
	if err := os.Remove(filepath.Join(dir, "FILES")); err != nil {
		t.Fatal(err)
	}
	if err := library(); err == nil {
		t.Error("a folder that no copy was in was written to")
	}
}

// make uninstall removes all files that were installed, and no others.
func TestUninstall(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(prefix(t))); err != nil {
		t.Fatal(err)
	}
	os.RemoveAll(filepath.Join(dir, "build")) // the objects, which are not installed
	other := filepath.Join(dir, "lib", "of-another-program")
	if err := os.WriteFile(other, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("make", "-C", root(t), "uninstall", "PREFIX="+dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var left []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			left = append(left, name)
		}
		return err
	})
	if err != nil || len(left) != 1 || left[0] != other {
		t.Errorf("left: %q, %v", left, err)
	}
}
