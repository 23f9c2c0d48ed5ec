package overlay

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// moduleDir asks the go command about a module.
func moduleDir(t *testing.T, arg ...string) (dir, version string) {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list", "-m", "-json"}, arg...)...).Output()
	if err != nil {
		t.Fatalf("go list -m: %v", err)
	}
	var m struct{ Dir, Version string }
	if err := json.Unmarshal(out, &m); err != nil {
		t.Fatal(err)
	}
	return m.Dir, m.Version
}

// The tests of the sockets and of the interfaces, which run with netstack as it
// is elsewhere, pass with the kernel's too.
func TestPatchedNetstack(t *testing.T) {
	root, _ := moduleDir(t)
	module, version := moduleDir(t, NetstackModule)
	list, err := Netstack(t.TempDir(), root, module, version)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "test", "-count=1", "-vet=off", "-ldflags=-checklinkname=0", "-overlay", list,
		"hardtack/kernel/net/netif", "hardtack/kernel/net/inet")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "HARDTACK_NETSTACK=patched", "GOFLAGS=-buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestNetstackRefuses(t *testing.T) {
	root, _ := moduleDir(t)
	module, version := moduleDir(t, NetstackModule)
	if _, err := Netstack(t.TempDir(), root, module, "v0.0.1"); err == nil || !strings.Contains(err.Error(), "v0.0.1") {
		t.Errorf("another version: %v", err)
	}
	// A file that has changed.
	other := t.TempDir()
	if err := os.CopyFS(filepath.Join(other, "pkg"), os.DirFS(filepath.Join(module, "pkg"))); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(other, "pkg/buffer/buffer.go")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, bytes.Replace(data, []byte("tgt := "), []byte("target := "), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Netstack(t.TempDir(), root, other, version); err == nil || !strings.Contains(err.Error(), "buffer.go") {
		t.Errorf("a changed file: %v", err)
	}
}
