package guest

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// boundPrograms make many different system calls in little time.
var boundPrograms = []string{"acl", "clocks", "errnos", "filecalls", "fileperms", "identity", "inherited", "inotify", "limits", "memory", "names", "pipe", "process", "signals", "sysv", "times", "unix"}

// pointArguments is how many bytes a call may allocate beyond its bound: arguments of a
// point that escape are allocated before its first statement, which takes the point's
// allocations off the caller's count.
const pointArguments = 64

// TestBounds runs programs on a kernel that compares what each system call allocates with
// its static bounds (kernel/reserve): what is alive at once, and what is allocated in all. What
// points of reservation allocate is not counted. With HARDTACK_BOUNDS=all it runs all programs.
func TestBounds(t *testing.T) {
	needGuest(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: install gcc and libc6-dev")
	}
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	tool := command(t, repo, dir, "--check-bounds")
	programs := boundPrograms
	if os.Getenv("HARDTACK_BOUNDS") == "all" {
		programs = nil
	}
	if _, _, err := buildPrograms(repo, dir, programs...); err != nil {
		t.Fatal(err)
	}
	root := guestRoot(t, dir, "guesttest", "programs")
	out, err := inGuest(t, tool, root, 8*time.Minute, []string{"--cpus", "2"}, "/guesttest", "-limit", "100s", "/programs")
	_, text, ok := strings.Cut(out, "guesttest: bounds\n")
	text, _, done := strings.Cut(text, "guesttest: end of bounds")
	if !ok || !done {
		t.Fatalf("%v\n%s", err, tail(out, 60))
	}
	for _, line := range strings.Split(out, "\n") {
		if strings.HasPrefix(line, "bounds: ") {
			t.Log(line) // the table that follows tells whether it is too much
		}
	}
	judgeBounds(t, text)
}

// judgeBounds reads /proc/hardtack/bounds.
func judgeBounds(t *testing.T, text string) {
	measured, without := 0, 0
	var ratios []float64
	var again []string // that allocate more in all than is alive at once
	worst := ""
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		w := strings.Fields(line)
		if len(w) > 4 && w[3] == "unbounded:" {
			without++
			continue
		}
		if len(w) != 5 {
			t.Fatalf("%q: want a name, calls, bytes and two bounds", line)
		}
		measured++
		most, err1 := strconv.ParseFloat(w[2], 64)
		bound, err2 := strconv.ParseFloat(w[3], 64)
		if err1 != nil || err2 != nil {
			t.Fatalf("%q: %v %v", line, err1, err2)
		}
		all, err := strconv.ParseFloat(w[4], 64)
		if all == 0 { // not known: it may have dropped some and allocated again
			all = 2 * bound
		}
		if err != nil || most > all+pointArguments {
			t.Errorf("%s allocated %s bytes, its bounds are %s and %s: %v", w[0], w[2], w[3], w[4], err)
		}
		if most > bound {
			again = append(again, w[0])
		}
		if most > 0 {
			r := bound / most
			if len(ratios) == 0 || r > slices.Max(ratios) {
				worst = w[0]
			}
			ratios = append(ratios, r)
		}
	}
	if measured < 100 || len(ratios) < 40 {
		t.Errorf("%d calls with a bound were measured, %d of them allocated something; want 100 and 40", measured, len(ratios))
	}
	if len(ratios) > 0 {
		slices.Sort(ratios)
		t.Logf("allocated more in all than may be alive at once: %v", again)
		t.Logf("%d calls with a bound and %d without; of %d that allocate, bound over measured is %.2f (median), %.0f at most (%s)",
			measured, without, len(ratios), ratios[len(ratios)/2], ratios[len(ratios)-1], worst)
	}
}
