package outside_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCores installs the libraries and a kernel and follows docs/howto/cores.md.
func TestCores(t *testing.T) {
	if os.Getenv("HARDTACK_GUEST") == "" {
		t.Skip("HARDTACK_GUEST is not set: boots no guest")
	}
	for _, tool := range []string{"make", "gcc", "qemu-system-x86_64"} {
		if !has(tool) {
			t.Skipf("no %s", tool)
		}
	}
	at := t.TempDir()
	o := newOutside(t, at, filepath.Join(at, "share/hardtack/go"))
	// The patched standard library as other tests have compiled it.
	o.env = append(o.env, "PREFIX="+at, "C_BUILD="+filepath.Join(at, "build"), "C_FLAGS=-O1", "GOFLAGS=")
	o.sh(t, `make -C "$CHECKOUT" install`)
	follow(t, filepath.Join(root(t), "docs/howto/cores.md"), o)
}
