package guest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ipcPrograms test Hardtack's own system calls. Linux has none of them, so the
// programs say themselves what is right.
var ipcPrograms = []string{"calls", "life", "forged", "races", "storm", "moved"}

// TestIPC runs the programs on machines with one processor and with more, and the Go
// tests of the calls' wrappers.
func TestIPC(t *testing.T) {
	needGuest(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: install gcc and libc6-dev")
	}
	repo, dir := repository(t), t.TempDir()
	programs := filepath.Join(dir, "programs")
	if err := os.Mkdir(programs, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range ipcPrograms {
		if err := cBuild(filepath.Join(programs, name), filepath.Join(repo, "test/guest/ipc", name+".c")); err != nil {
			t.Fatal(err)
		}
	}
	if err := goBuild(repo, filepath.Join(dir, "guesttest"), "./test/guest/guesttest"); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "test", "-c", "-o", filepath.Join(dir, "ipc.test"), "./ipc")
	build.Dir, build.Env = repo, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go test -c ./ipc: %v\n%s", err, out)
	}
	tool := command(t, repo, dir)
	root := guestRoot(t, dir, "guesttest", "programs", "ipc.test")
	for _, cpus := range []string{"1", "2", "4"} {
		t.Run(cpus, func(t *testing.T) {
			flags := []string{"--cpus", cpus}
			out, err := inGuest(t, tool, root, 8*time.Minute, flags, "/guesttest", "-limit", "200s", "/programs")
			sections, _, done := parse(out)
			if err != nil || !done {
				t.Errorf("%v\n%s", err, words(out, 60))
			}
			for _, name := range ipcPrograms {
				if problem := failures(sections[name]); problem != "" {
					t.Errorf("%s: %s", name, problem)
				}
			}
			out, err = inGuest(t, tool, root, 2*time.Minute, flags, "/ipc.test", "-test.v", "-test.run", "Test")
			if err != nil || !strings.Contains(out, "--- PASS: TestProcesses") {
				t.Errorf("%v\n%s", err, words(out, 60))
			}
		})
	}
}

// TestIPCLimits has many threads on eight processors wait with short limits of time,
// under each control that such a machine may have. On a busy machine it takes minutes.
func TestIPCLimits(t *testing.T) {
	needGuest(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: install gcc and libc6-dev")
	}
	repo, dir := repository(t), t.TempDir()
	if err := cBuild(filepath.Join(dir, "limits"), filepath.Join(repo, "test/guest/ipc/limits.c")); err != nil {
		t.Fatal(err)
	}
	tool := command(t, repo, dir)
	root := guestRoot(t, dir, "limits")
	for _, control := range []string{"big", "fine"} {
		t.Run(control, func(t *testing.T) {
			kernel := filepath.Join(t.TempDir(), "kernel.elf")
			buildKernel(t, repo, tool, control, kernel)
			out, err := inGuest(t, tool, root, 15*time.Minute, []string{"--kernel", kernel, "--cpus", "8"}, "/limits")
			if err != nil || strings.Contains(out, "--- FAIL") || !strings.Contains(out, "--- PASS: a storm of short limits") {
				t.Errorf("%v\n%s", err, words(out, 60))
			}
		})
	}
}

// failures is what a program's tests say that failed, or "".
func failures(s *section) string {
	if s == nil || len(s.order) == 0 {
		return "it did not run"
	}
	var all []string
	for _, name := range s.order {
		if r := s.tests[name]; r.end != "PASS" {
			all = append(all, fmt.Sprintf("%s: %s\n%s", name, r.end, strings.Join(r.lines, "\n")))
		}
	}
	return strings.Join(all, "\n")
}
