package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// repository is the module's root, seen from this package's directory.
func repository(t *testing.T) string {
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

// needGuest skips a test that boots a machine where that is not wanted.
func needGuest(t *testing.T) {
	if os.Getenv("HARDTACK_GUEST") == "" {
		t.Skip("boots a Hardtack guest; set HARDTACK_GUEST=1")
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip("needs qemu-system-x86_64: install the package qemu-system-x86")
	}
}

// onHost runs the programs on this machine's Linux, in memory where it can.
func onHost(t *testing.T, dir string, names []string) string {
	tmp := t.TempDir()
	if shm, err := os.MkdirTemp("/dev/shm", "guesttest"); err == nil {
		t.Cleanup(func() { os.RemoveAll(shm) })
		tmp = shm
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "guesttest"), "-tmp", tmp, "-run", strings.Join(names, ","), filepath.Join(dir, "programs"))
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("on this machine's Linux: %v", err)
	}
	return string(out)
}

// inGuest boots a machine with the directory as its root and runs a command in
// it. It returns the console's text and the command's error. HARDTACK_GUEST_CPUS
// gives the machine another number of processors, and HARDTACK_GUEST_CHECK_LOCKS a
// kernel that checks the order in which it takes locks.
func inGuest(t *testing.T, tool, root string, limit time.Duration, flags []string, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit+30*time.Second)
	defer cancel()
	accel := os.Getenv("HARDTACK_ACCEL")
	if accel == "" {
		accel = "tcg" // the same on every host
	}
	arg := []string{"run", "--accel", accel, "--timeout", limit.String(), "--user", fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())}
	if cpus := os.Getenv("HARDTACK_GUEST_CPUS"); cpus != "" {
		arg = append(arg, "--cpus", cpus)
	}
	arg = append(append(append(arg, flags...), root, "--"), argv...)
	cmd := exec.CommandContext(ctx, tool, arg...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if os.Getenv("HARDTACK_GUEST_COVER") != "" {
		text := strings.Replace(out.String(), coverWarning, "", 1)
		out.Reset()
		out.WriteString(text)
	}
	if at := strings.Index(out.String(), "lock order: "); at >= 0 {
		err = errors.Join(err, fmt.Errorf("the kernel's %.4000s", out.String()[at:]))
	}
	return out.String(), err
}

// coverWarning is what Go's runtime in a kernel that counts its statements says at first.
const coverWarning = "warning: GOCOVERDIR not set, no coverage data emitted\n"

// tail is the end of a console's text.
func tail(s string, lines int) string {
	all := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// guestRoot lays out a guest's root directory around the built programs.
func guestRoot(t *testing.T, dir string, files ...string) string {
	root := filepath.Join(dir, "root")
	for _, d := range []string{"tmp", "proc", "dev", "sys", "etc", "run"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(root, "tmp"), 0o1777); err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if err := os.Rename(filepath.Join(dir, name), filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestSystemCalls compares what every program prints on Linux and on Hardtack. Where this
// machine's Linux prints something else, Linux 6.1 is asked, too.
// One boot serves all of them; only after a crash does another go on behind the
// program that caused it. HARDTACK_GUEST_RUN names single programs.
func TestSystemCalls(t *testing.T) {
	needGuest(t)
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	var only []string
	if run := os.Getenv("HARDTACK_GUEST_RUN"); run != "" {
		only = strings.Split(run, ",")
	}
	names, left, err := buildPrograms(repo, dir, only...)
	if err != nil {
		t.Fatal(err)
	}
	if len(names)+len(left) < len(only) {
		t.Fatalf("of the programs %v there are only %v", only, names)
	}
	if len(left) > 0 {
		t.Logf("no gcc: without the programs %v (install gcc and libc6-dev)", left)
	}
	slices.Sort(names)
	want, _, _ := parse(onHost(t, dir, names))
	tool := command(t, repo, dir)
	root := guestRoot(t, dir, "guesttest", "programs")

	got := map[string]*section{}
	broken := map[string]string{}
	for rest := names; len(rest) > 0; {
		out, err := inGuest(t, tool, root, 8*time.Minute, nil, "/guesttest", "-limit", "100s", "-run", strings.Join(rest, ","), "/programs")
		sections, order, done := parse(out)
		for name, s := range sections {
			got[name] = s
		}
		if done {
			break
		}
		if len(order) == 0 {
			t.Fatalf("the guest ran no program: %v\n%s", err, tail(out, 60))
		}
		last := order[len(order)-1]
		broken[last] = fmt.Sprintf("the machine ended: %v\n%s", err, tail(out, 60))
		at := slices.Index(rest, last)
		if at < 0 {
			t.Fatalf("the guest ran %q, which was not asked for", last)
		}
		rest = rest[at+1:]
	}
	reference{t: t, root: root}.answers(names, want, got)
	for _, name := range names {
		t.Run(name, func(t *testing.T) { compare(t, want[name], got[name], broken[name]) })
	}
}

// compare makes a subtest of each test of a program.
func compare(t *testing.T, want, got *section, broken string) {
	if want == nil {
		t.Fatal("it did not run on this machine's Linux")
	}
	if broken != "" {
		t.Error(broken)
	}
	if got == nil {
		t.Fatal("it did not run in the guest")
	}
	for _, name := range want.order {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			w, g := want.tests[name], got.tests[name]
			if g == nil {
				t.Fatal("it was not reached")
			}
			if w.end != "PASS" {
				t.Errorf("it fails on this machine's Linux: %s", w.end)
			}
			if d := difference(w, g); d != "" {
				t.Errorf("the outputs differ:\n%s", d)
			}
		})
	}
	if broken == "" && want.verdict != got.verdict {
		t.Errorf("Linux: %s; Hardtack: %s", want.verdict, got.verdict)
	}
}
