package nucleus

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
)

// pollUntil reads the third word of the runtime's scheduler state.
func TestRuntimeLayout(t *testing.T) {
	src, err := os.ReadFile(filepath.Join(runtime.GOROOT(), "src/runtime/runtime2.go"))
	if err != nil {
		t.Skip("no sources of the Go runtime:", err)
	}
	want := regexp.MustCompile(`type schedt struct \{\s+goidgen +atomic\.Uint64[^\n]*\n\s+lastpoll +atomic\.Int64[^\n]*\n\s+pollUntil +atomic\.Int64`)
	if !want.Match(src) {
		t.Fatal("runtime.schedt has changed: pollUntil is not its third word any more")
	}
}
