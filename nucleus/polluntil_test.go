package nucleus

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pollUntil reads the third word of the runtime's scheduler state.
func TestRuntimeLayout(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	src, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "src/runtime/runtime2.go"))
	if err != nil {
		t.Skip("no sources of the Go runtime:", err)
	}
	want := regexp.MustCompile(`type schedt struct \{\s+goidgen +atomic\.Uint64[^\n]*\n\s+lastpoll +atomic\.Int64[^\n]*\n\s+pollUntil +atomic\.Int64`)
	if !want.Match(src) {
		t.Fatal("runtime.schedt has changed: pollUntil is not its third word any more")
	}
}
