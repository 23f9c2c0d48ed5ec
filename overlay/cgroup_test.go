package overlay

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A cgroup that a test made, in version 1's hierarchies or in version 2's one.
type cgroup struct {
	sets, quota string // its folders in the hierarchies of cpuset and cpu
	two         bool
}

// newCgroup makes a cgroup with control over CPUs, or skips the test.
func newCgroup(t *testing.T) *cgroup {
	t.Helper()
	if os.Getenv("HARDTACK_CGROUP") == "" {
		t.Skip("changes cgroups as root; set HARDTACK_CGROUP=1")
	}
	if os.Getuid() != 0 {
		t.Skip("needs root to make a cgroup")
	}
	const top = "/sys/fs/cgroup"
	name := fmt.Sprintf("hardtack-test-%d", os.Getpid())
	g := &cgroup{sets: filepath.Join(top, "cpuset", name), quota: filepath.Join(top, "cpu", name)}
	if controllers, err := os.ReadFile(filepath.Join(top, "cgroup.controllers")); err == nil {
		if have := " " + strings.TrimSpace(string(controllers)) + " "; !strings.Contains(have, " cpuset ") || !strings.Contains(have, " cpu ") {
			t.Skipf("no control over CPUs in cgroups here, only%s", have)
		}
		*g = cgroup{filepath.Join(top, name), filepath.Join(top, name), true}
		if err := os.WriteFile(filepath.Join(top, "cgroup.subtree_control"), []byte("+cpuset +cpu"), 0); err != nil {
			t.Skipf("cgroups give no control over CPUs to those below: %v", err)
		}
	}
	for _, dir := range []string{g.sets, g.quota} {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			t.Skipf("no cgroup can be made: %v", err)
		}
		t.Cleanup(func() {
			// A program that was ended leaves its cgroup a moment later.
			for i := 0; os.Remove(dir) != nil && i < 100; i++ {
				if _, err := os.Stat(dir); err != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	if !g.two { // a new one has no memory nodes, and takes nobody in
		nodes, err := os.ReadFile(filepath.Join(top, "cpuset", "cpuset.mems"))
		if err != nil {
			t.Skipf("no cpusets here: %v", err)
		}
		g.set(t, g.sets, "cpuset.mems", strings.TrimSpace(string(nodes)))
	}
	return g
}

func (g *cgroup) set(t *testing.T, dir, file, value string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0); err != nil {
		t.Fatal(err)
	}
}

func (g *cgroup) cpus(t *testing.T, list string) { t.Helper(); g.set(t, g.sets, "cpuset.cpus", list) }

// share gives it a part of one CPU, in percent; 0 is no limit.
func (g *cgroup) share(t *testing.T, percent int) {
	t.Helper()
	const period = 100_000 // microseconds
	switch {
	case g.two && percent == 0:
		g.set(t, g.quota, "cpu.max", "max")
	case g.two:
		g.set(t, g.quota, "cpu.max", fmt.Sprint(percent*period/100, " ", period))
	case percent == 0:
		g.set(t, g.quota, "cpu.cfs_quota_us", "-1")
	default:
		g.set(t, g.quota, "cpu.cfs_period_us", fmt.Sprint(period))
		g.set(t, g.quota, "cpu.cfs_quota_us", fmt.Sprint(percent*period/100))
	}
}

// A cgroup takes cores and time from a running program and gives them back, under
// each policy: everybody in it gets on all the time, and in the end no thread is
// bound.
func TestCgroup(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("one CPU only")
	}
	var mine unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mine); err != nil {
		t.Fatal(err)
	}
	var cpus []string
	for cpu := range 1024 {
		if mine.IsSet(cpu) {
			cpus = append(cpus, fmt.Sprint(cpu))
		}
	}
	all := strings.Join(cpus, ",")
	g := newCgroup(t)
	exe := build(t, "./testdata/cores")
	for _, policy := range Policies {
		t.Run(policy, func(t *testing.T) {
			g.cpus(t, all)
			g.share(t, 0)
			cmd := exec.Command(exe)
			cmd.Env = append(os.Environ(), "HARDTACK_AFFINITY="+policy, "HARDTACK_AFFINITY_PERIOD=10ms", "HARDTACK_AFFINITY_TOUCHES=10")
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			cmd.Stderr = os.Stderr
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
			lines := bufio.NewScanner(out)
			say := func(what string) string {
				t.Helper()
				fmt.Fprintln(in, what)
				if !lines.Scan() {
					t.Fatalf("it ended at %q: %v", what, lines.Err())
				}
				return lines.Text()
			}
			g.set(t, g.sets, "cgroup.procs", fmt.Sprint(cmd.Process.Pid))
			if !g.two {
				g.set(t, g.quota, "cgroup.procs", fmt.Sprint(cmd.Process.Pid))
			}
			for range 3 {
				say("go")
				for _, one := range []string{cpus[0], cpus[1]} {
					g.cpus(t, one)
					say("go")
				}
				g.cpus(t, all)
				say("go")
			}
			g.share(t, 30)
			say("go")
			g.share(t, 0)
			for _, n := range strings.Fields(say("stop")) {
				if n != fmt.Sprint(len(cpus)) {
					t.Errorf("a thread may use %s of %d CPUs at the end", n, len(cpus))
				}
			}
		})
	}
}
