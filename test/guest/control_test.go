package guest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestControls boots a kernel with each of the nucleus's concurrency controls: it
// must say which it has, run or refuse, and lose no wake-up while storm has its CPUs
// put each other to sleep and wake each other.
// HARDTACK_STORM is how many seconds each storm lasts at least (make storm), with other
// numbers of CPUs, and the storms of message calls too; without it there is a short one on eight.
func TestControls(t *testing.T) {
	needGuest(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: install gcc and libc6-dev")
	}
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	programs := map[string]string{"storm": "storm/storm.c", "ipcstorm": "ipc/storm.c", "races": "ipc/races.c"}
	for name, source := range programs {
		if err := cBuild(filepath.Join(dir, name), filepath.Join(repo, "test", "guest", source)); err != nil {
			t.Fatal(err)
		}
	}
	tool := command(t, repo, dir)
	root := guestRoot(t, dir, "storm", "ipcstorm", "races")
	length, long := os.Getenv("HARDTACK_STORM"), true
	if length == "" {
		length, long = "2", false
	}
	for _, c := range []struct {
		control string
		cpus    []string
	}{
		{"none", []string{"1"}},
		{"big", []string{"8", "2", "4"}},
		{"queue", []string{"2", "4", "8"}},
		{"fine", []string{"8", "2", "4"}},
		{"rtm", nil},
	} {
		if c.control == "queue" && !long {
			continue // big, except for its lock
		}
		t.Run(c.control, func(t *testing.T) {
			kernel := filepath.Join(dir, "kernel.elf") // command's
			if c.control != kernelControl() {
				kernel = filepath.Join(t.TempDir(), "kernel.elf")
				buildKernel(t, repo, tool, c.control, kernel)
			}
			boot := func(cpus string, argv ...string) string {
				t.Helper()
				// The last of two flags counts, whatever HARDTACK_GUEST_CPUS says.
				out, err := inGuest(t, tool, root, 15*time.Minute, []string{"--kernel", kernel, "--cpus", cpus, "-e", "STORM_SECONDS=" + length}, argv...)
				if err != nil {
					t.Errorf("%s CPUs, %v: %v\n%s", cpus, argv, err, words(out, 60))
				}
				return out
			}
			if c.control == "rtm" {
				// TCG has no transactions; elsewhere the machine may, and then it must run.
				out, err := inGuest(t, tool, root, 5*time.Minute, []string{"--kernel", kernel, "--cpus", "2"}, "/storm", "1")
				refused := strings.Contains(out, "this processor has none (RTM)")
				if refused == (err == nil) {
					t.Errorf("without transactions: %v\n%s", err, out)
				}
				return
			}
			for i, cpus := range c.cpus {
				if i > 0 && !long {
					break
				}
				if out := boot(cpus, "/storm", length, c.control); !strings.Contains(out, "the storm is over") {
					t.Errorf("%s CPUs: %s", cpus, tail(out, 20))
				} else {
					t.Logf("%s CPUs: %s", cpus, tail(out, 2))
				}
			}
			if long {
				for _, program := range []string{"/ipcstorm", "/races"} {
					if out := boot(c.cpus[0], program); !strings.Contains(out, "--- PASS") || strings.Contains(out, "--- FAIL") {
						t.Errorf("%s CPUs, %s: %s", c.cpus[0], program, tail(out, 20))
					}
				}
			}
			if c.control == "none" {
				out := boot("2", "/storm", "1", c.control)
				if !strings.Contains(out, "built without concurrency control") || !strings.Contains(out, "1 CPUs") {
					t.Errorf("two CPUs without concurrency control:\n%s", out)
				}
			}
		})
	}
}
