//go:build !lockcheck

package lock

import (
	"os/exec"
	"testing"
)

// The tests once more with the checks compiled in.
func TestChecked(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the package once more")
	}
	out, err := exec.Command("go", "test", "-count=1", "-tags", "lockcheck",
		"-run", "TestChecker|TestRanks|TestExclusion|TestTryLock|TestBigReaderStress", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
