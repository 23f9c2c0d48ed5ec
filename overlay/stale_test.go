package overlay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	if err := Match("."); err != nil {
		t.Errorf("the tree of this very test: %v", err)
	}
	if err := Match(filepath.Join(t.TempDir(), "absent")); err != nil {
		t.Errorf("a tree without the folder: %v", err)
	}
	dir := t.TempDir()
	for _, name := range []string{"_runtime", "patches", "_netstack", "netstack.patch"} {
		if info, err := os.Stat(name); err != nil {
			t.Fatal(err)
		} else if info.IsDir() {
			err = os.CopyFS(filepath.Join(dir, name), os.DirFS(name))
			if err != nil {
				t.Fatal(err)
			}
		} else if b, err := os.ReadFile(name); err != nil {
			t.Fatal(err)
		} else if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := Match(dir); err != nil {
		t.Errorf("a copy: %v", err)
	}
	for _, name := range []string{"_runtime/ran_unsafe.go", "patches/locks.patch", "netstack.patch"} {
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(b, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := Match(dir); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("a changed %s: %v", name, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := Match(dir); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("no %s: %v", name, err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
