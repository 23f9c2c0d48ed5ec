package guest

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var numbersLine = regexp.MustCompile("numbers ([0-9a-f]{32})\n")

// TestProtection looks at what keeps programs out of the kernel, on an ordinary
// processor and on one without a generator of random numbers.
func TestProtection(t *testing.T) {
	needGuest(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: install gcc and libc6-dev")
	}
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	if err := cBuild(filepath.Join(dir, "protect"), filepath.Join(repo, "test", "guest", "protect", "protect.c")); err != nil {
		t.Fatal(err)
	}
	tool := command(t, repo, dir)
	root := guestRoot(t, dir, "protect")
	const noRandom = "max,-rdrand,-rdseed"
	var numbers []string
	for _, c := range []struct {
		name, cpu, random string
	}{
		{"ordinary", "max", "random processor=true ready=true"},
		{"no generator", noRandom, "random processor=false ready=true"},
		{"no generator, again", noRandom, "random processor=false ready=true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := inGuest(t, tool, root, 2*time.Minute, []string{"--memory", "128M", "--cpus", "2", "--qemu-arg=-cpu", "--qemu-arg=" + c.cpu}, "/protect")
			out = strings.ReplaceAll(out, "\r", "")
			if err != nil {
				t.Fatalf("%v\n%s", err, tail(out, 60))
			}
			want := []string{
				"cpu0 wp=on nx=on smep=on smap=on umip=on\n", "cpu1 wp=on nx=on smep=on smap=on umip=on\n",
				" wrong 0 foreign 0\n", c.random + "\n",
				"getrandom: 32\n", "/dev/random: 32, written 32\n", "equal: 0\n",
				"/proc/hardtack/protection: Permission denied\n", "protect: done\n",
			}
			for _, name := range []string{"sgdt", "sidt", "read text", "write text", "call text", "read direct", "in", "cli"} {
				want = append(want, "\n"+name+": signal 11\n")
			}
			for _, w := range want {
				if !strings.Contains(out, w) {
					t.Errorf("the console lacks %q", w)
				}
			}
			differ(t, out)
			if m := numbersLine.FindStringSubmatch(out); m != nil {
				numbers = append(numbers, m[1])
			}
			if t.Failed() {
				t.Log(tail(out, 80))
			}
		})
	}
	slices.Sort(numbers)
	if n := len(slices.Compact(numbers)); n != 3 {
		t.Errorf("three machines gave %d different numbers", n)
	}
}

// differ checks that ten programs have their stacks and heaps at different places. Two of
// ten heaps are at the same one of 8,192 pages in one run of 180, so a few may be.
func differ(t *testing.T, out string) {
	seen := map[string]bool{}
	for _, line := range strings.Split(out, "\n") {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "address" {
			seen["stack "+f[1]], seen["heap "+f[2]] = true, true
		}
	}
	if len(seen) < 18 {
		t.Errorf("ten programs had %d different addresses of stack and heap, want 18 or more", len(seen))
	}
}
