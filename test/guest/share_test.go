package guest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestShare: the collector, files that are written back and TCP go on beside 64 threads that
// spin at all priorities below real-time, and beside real-time threads. These leave others a
// twentieth of the processors. The machine counts instructions: its clock does not depend on
// the host, but for the disk. The bounds are a tenth of what was seen, or less.
func TestShare(t *testing.T) {
	needGuest(t)
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	if err := cBuild(filepath.Join(dir, "share"), filepath.Join(repo, "test/guest/share/share.c")); err != nil {
		t.Skip(err)
	}
	tool := command(t, repo, dir)
	root := guestRoot(t, dir, "share")
	for _, cpus := range []int{1, 2} {
		t.Run(fmt.Sprint(cpus), func(t *testing.T) {
			disk := filepath.Join(t.TempDir(), "disk.img")
			if out, err := exec.Command(tool, "image", "disk", "-o", disk, "--size", "64M", root).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			out, err := guestOnDisk(tool, disk, []string{"--icount", "--cpus", fmt.Sprint(cpus)}, "/share", "child", "3000")
			if err != nil || !strings.Contains(out, "\nend") {
				t.Fatalf("%v\n%s", err, tail(out, 40))
			}
			t.Log(out)
			checkShare(t, out, "alone", 100, 20000, 10, 10000)
			checkShare(t, out, "spinners", 5, 100, 2, 3)
			checkShare(t, out, "urgent", 5, 100, 1, 100)
			left := 0
			if _, err := fmt.Sscanf(out[strings.Index(out, "\nleft "):], "\nleft %d", &left); err != nil || left < 30 || left > 70 {
				t.Errorf("real-time threads left %d thousandths, want 50 (%v)", left, err)
			}
		})
	}
}

// checkShare looks for a line of the program, and whether that many rounds at least were made.
func checkShare(t *testing.T, out, when string, fsync, net, collect, heap int) {
	t.Helper()
	var f, n, c, h, worst int
	_, line, _ := strings.Cut(out, when+" fsync ")
	if _, err := fmt.Sscanf(line, "%d %d net %d %d collect %d %d heap %d", &f, &worst, &n, &worst, &c, &worst, &h); err != nil {
		t.Errorf("%s: %v", when, err)
	}
	if f < fsync || n < net || c < collect || h < heap {
		t.Errorf("%s: %d, %d, %d and %d rounds, want %d, %d, %d and %d", when, f, n, c, h, fsync, net, collect, heap)
	}
}
