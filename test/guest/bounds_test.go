package guest

import (
	"cmp"
	"fmt"
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

// TestBounds runs programs on a kernel that compares what each system call allocates with
// its static bounds (kernel/reserve): what is alive at once, and what is allocated in all. What
// points of reservation allocate is not counted, nor are tables of Go's runtime. A call that takes more
// is named on the console with the places where it allocated. With HARDTACK_BOUNDS=all it runs all programs.
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
	out, err := inGuest(t, tool, root, 8*time.Minute, []string{"--cpus", cmp.Or(os.Getenv("HARDTACK_GUEST_CPUS"), "2")}, "/guesttest", "-limit", "100s", "/programs")
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
		r, err := readBound(line)
		if err != nil {
			t.Fatal(err)
		}
		if !r.known {
			without++
			continue
		}
		measured++
		if !r.holds() {
			t.Errorf("%s allocated %.0f bytes, its bounds are %.0f and %.0f", r.name, r.most, r.bound, r.all)
		}
		if r.most > r.bound {
			again = append(again, r.name)
		}
		if r.most > 0 {
			x := r.bound / r.most
			if len(ratios) == 0 || x > slices.Max(ratios) {
				worst = r.name
			}
			ratios = append(ratios, x)
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

// boundRow is a line of /proc/hardtack/bounds: the most that one call allocated, and how much may be
// alive of it at once and be allocated in all (0: not known). known: it has a bound.
type boundRow struct {
	name             string
	most, bound, all float64
	known            bool
}

func readBound(line string) (boundRow, error) {
	w := strings.Fields(line)
	if len(w) > 4 && w[3] == "unbounded:" {
		return boundRow{name: w[0]}, nil
	}
	if len(w) != 5 {
		return boundRow{}, fmt.Errorf("%q: want a name, calls, bytes and two bounds", line)
	}
	r := boundRow{name: w[0], known: true}
	for i, to := range []*float64{&r.most, &r.bound, &r.all} {
		var err error
		if *to, err = strconv.ParseFloat(w[2+i], 64); err != nil {
			return r, fmt.Errorf("%q: %w", line, err)
		}
	}
	return r, nil
}

// holds: a call may have dropped some and allocated again. How much it may allocate in all is then
// twice the bound where that is not known.
func (r *boundRow) holds() bool {
	limit := r.all
	if limit == 0 {
		limit = 2 * r.bound
	}
	return r.most <= limit
}

// A bound that is too small is found.
func TestReadBound(t *testing.T) {
	for line, holds := range map[string]bool{
		"pipe2 7 1024 1024 0":      true,
		"pipe2 7 2048 1024 0":      true, // it may have dropped half
		"pipe2 7 2049 1024 0":      false,
		"pipe2 7 1025 1024 1024":   false,
		"alarm 1 8 0 0":            false,
		"fork 1 99999 10000 99999": true,
	} {
		if r, err := readBound(line); err != nil || r.holds() != holds || !r.known {
			t.Errorf("%s: %v, holds %v, want %v", line, err, r.holds(), holds)
		}
	}
	if r, err := readBound("poll 3 4096 unbounded: 2 loops"); err != nil || r.known {
		t.Errorf("%+v, %v: want a call without a bound", r, err)
	}
	for _, bad := range []string{"", "pipe2 7 1024 1024", "pipe2 7 x 1024 0"} {
		if r, err := readBound(bad); err == nil {
			t.Errorf("%q is read as %+v", bad, r)
		}
	}
}
