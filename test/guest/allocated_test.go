package guest

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// mayAllocate are the calls of test/guest/allocated that take memory from the
// kernel's heap when they have been used a while, and how many bytes at most, each
// time: for a path's text, for an open file. All others take none.
var mayAllocate = map[string]int{"stat": 32, "open-close": 256}

const (
	allocatedCalls = 4096 // as the program makes of each
	// allocatedNow and then: a cache that a collection has emptied, a grown stack's
	// bookkeeping. It is far less than a byte a call.
	allocatedNow = 1024
)

// TestAllocated counts what system calls allocate on the kernel's heap, in a machine
// with little memory.
func TestAllocated(t *testing.T) {
	needGuest(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: install gcc and libc6-dev")
	}
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	if err := cBuild(filepath.Join(dir, "allocated"), filepath.Join(repo, "test", "guest", "allocated", "allocated.c")); err != nil {
		t.Fatal(err)
	}
	tool := command(t, repo, dir)
	root := guestRoot(t, dir, "allocated")
	out, err := inGuest(t, tool, root, 8*time.Minute, []string{"--memory", "48M", "--cpus", "4"}, "/allocated")
	if err != nil || !strings.Contains(out, "allocated: ok") {
		t.Fatalf("%v\n%s", err, tail(out, 30))
	}
	counted := 0
	for _, line := range strings.Split(out, "\n") {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(value)
		if !ok || err != nil {
			continue
		}
		counted++
		each, some := mayAllocate[name]
		if limit := allocatedNow + each*allocatedCalls; n > limit {
			t.Errorf("%d calls of %s took %d bytes, want at most %d", allocatedCalls, name, n, limit)
		}
		if some && n < allocatedCalls {
			t.Errorf("%d calls of %s took %d bytes: nothing counts them, or they do better now", allocatedCalls, name, n)
		}
	}
	if counted < 20 {
		t.Errorf("the program told of %d calls:\n%s", counted, tail(out, 30))
	}
}
