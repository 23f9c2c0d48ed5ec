package guest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Programs that need durable storage, from Debian, on a disk that `hardtack image
// disk` made and the guest runs from. After each the disk must be clean for e2fsck
// and for our own checker. The programs are in scripts/.

// programPackages are what scripts/ needs.
var programPackages = []string{"bash", "coreutils", "busybox-static", "diffutils", "findutils", "util-linux",
	"sqlite3", "redis-server", "redis-tools", "git", "postgresql-15"}

// programDisk makes the disk from which the programs run.
func programDisk(t *testing.T, repo, tool, dir string) string {
	t.Helper()
	add := filepath.Join(dir, "add")
	if err := os.CopyFS(filepath.Join(add, "scripts"), os.DirFS(filepath.Join(repo, "test/guest/scripts"))); err != nil {
		t.Fatal(err)
	}
	return debianDisk(t, repo, tool, dir, "programs", add, "3G", programPackages)
}

// copyDisk copies a disk's file with its holes.
func copyDisk(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "--sparse=always", "--reflink=auto", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// fsck wants a disk to be clean, for us and for e2fsck.
func fsck(t *testing.T, tool, disk string) {
	t.Helper()
	if out, err := exec.Command(tool, "fsck", disk).CombinedOutput(); err != nil {
		t.Errorf("hardtack fsck: %v\n%s", err, tail(string(out), 20))
	}
	e2fsck := "e2fsck"
	if _, err := exec.LookPath(e2fsck); err != nil {
		e2fsck = "/sbin/e2fsck"
	}
	if out, err := exec.Command(e2fsck, "-fn", disk).CombinedOutput(); err != nil {
		t.Errorf("e2fsck: %v\n%s", err, tail(string(out), 20))
	}
}

// console is what a guest has printed so far.
type console struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(p)
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// fromDisk starts a guest that runs a script from a disk.
func fromDisk(tool, disk string, out io.Writer, script string, args ...string) *exec.Cmd {
	accel := os.Getenv("HARDTACK_ACCEL")
	if accel == "" {
		accel = "tcg"
	}
	arg := append([]string{"run", "--accel", accel, "--memory", "768M", "--timeout", "15m", "--root", disk, "--",
		"/bin/bash", "/scripts/" + script + ".sh"}, args...)
	cmd := exec.Command(tool, arg...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// runDisk runs a script to its end and wants a line of its output.
func runDisk(t *testing.T, tool, disk, want, script string, args ...string) {
	t.Helper()
	var out console
	if err := fromDisk(tool, disk, &out, script, args...).Run(); err != nil || !strings.Contains(out.String(), want) {
		t.Fatalf("%s: %v; want %q\n%s", script, err, want, tail(out.String(), 40))
	}
	fsck(t, tool, disk)
}

func TestPrograms(t *testing.T) {
	needGuest(t)
	if testing.Short() {
		t.Skip("boots seven guests, for minutes")
	}
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	tool := command(t, repo, dir)
	base := programDisk(t, repo, tool, dir)
	fsck(t, tool, base)
	disk := filepath.Join(dir, "disk.img")
	for _, x := range []struct{ script, want string }{
		{"sqlite", "persist: ok 40|"}, {"redis", "value"}, {"git", "git: 14 commits"}, {"copy", "copy: the same"},
	} {
		t.Run(x.script, func(t *testing.T) {
			copyDisk(t, base, disk)
			runDisk(t, tool, disk, x.want, x.script)
		})
	}
	t.Run("postgres", func(t *testing.T) { runDisk(t, tool, base, "postgres: 100 rows", "postgres") })
	if t.Failed() {
		return
	}
	// The machine is killed while all three databases commit: once, or five times
	// in the long form (make crash).
	rounds := 1
	if os.Getenv("HARDTACK_CRASH_STATES") != "" {
		rounds = 5
	}
	for round := range rounds {
		t.Run(fmt.Sprintf("killed %d", round), func(t *testing.T) {
			copyDisk(t, base, disk)
			last := killed(t, tool, disk)
			if out, err := exec.Command(tool, "fsck", "--replay", disk).CombinedOutput(); err != nil {
				t.Errorf("hardtack fsck --replay: %v\n%s", err, tail(string(out), 20))
			}
			args := []string{fmt.Sprint(last["sqlite"]), fmt.Sprint(last["redis"]), fmt.Sprint(last["postgres"])}
			runDisk(t, tool, disk, "verified "+strings.Join(args, " "), "verify", args...)
		})
	}
}

// killed runs databases until each has committed some, kills the machine and
// returns how much each had told.
func killed(t *testing.T, tool, disk string) map[string]int {
	t.Helper()
	const enough = 20
	var out console
	cmd := fromDisk(tool, disk, &out, "commit")
	pidFile := filepath.Join(t.TempDir(), "pid")
	cmd.Args = append([]string{tool, "run", "--qemu-arg", "-pidfile", "--qemu-arg", pidFile}, cmd.Args[2:]...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed
		close(ended)
	}()
	count := func() map[string]int {
		last := map[string]int{}
		for line := range strings.Lines(strings.ReplaceAll(out.String(), "\r", "")) {
			var name string
			var n int
			if k, _ := fmt.Sscanf(line, "committed %s %d\n", &name, &n); k == 2 && strings.HasSuffix(line, "\n") {
				last[name] = max(last[name], n)
			}
		}
		return last
	}
	for deadline := time.Now().Add(10 * time.Minute); ; {
		last := count()
		if min(last["sqlite"], last["redis"], last["postgres"]) >= enough {
			break
		}
		select {
		case <-ended:
			t.Fatalf("the guest ended by itself\n%s", tail(out.String(), 40))
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			t.Fatalf("too few commits: %v\n%s", last, tail(out.String(), 40))
		}
	}
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
	<-ended
	return count()
}
