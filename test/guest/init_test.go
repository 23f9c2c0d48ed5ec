package guest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// initSays are the lines that the program in init/ prints about itself.
func initSays(console string) string {
	var lines []string
	for _, l := range strings.Split(console, "\n") {
		if _, l, ok := strings.Cut(strings.TrimRight(l, "\r"), "init: "); ok {
			lines = append(lines, l)
		}
	}
	return strings.Join(lines, "\n")
}

// survived is what it prints when no signal without a handler ends it.
const survived = `62 signals sent to 1, 0 refused
by itself
62 signals sent to 1, 0 refused
by a child
write to a broken pipe: -1 EPIPE
SIGIO
timers
beyond RLIMIT_FSIZE: -1 EFBIG
beyond RLIMIT_CPU
a terminal's keys and its end
blocked and pending: 1
sigwaitinfo: 15
unblocked
with a handler: 10
without again
a child is not spared: 15
`

// TestInitSignals: process 1 gets no signal that it does not handle, be it from
// itself, from others or from the kernel; only its own faults end it.
func TestInitSignals(t *testing.T) {
	needGuest(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc")
	}
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	program := filepath.Join(dir, "init")
	if out, err := exec.Command("gcc", "-static", "-O2", "-w", "-o", program, filepath.Join(repo, "test/guest/init/init.c"), "-lutil").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	fault := survived + "a fault comes"
	onLinux(t, program, fault)
	tool := command(t, repo, dir)
	root := guestRoot(t, dir, "init")
	out, err := inGuest(t, tool, root, time.Minute, nil, "/init", "fault")
	if got := initSays(out); got != fault {
		t.Errorf("it printed\n%s\n\nand not\n%s\n%v", got, fault, err)
	}
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 139 {
		t.Errorf("its own fault: %v\n%s", err, tail(out, 20))
	}
}

// onLinux runs the program as process 1 of a name space, where that is allowed.
func onLinux(t *testing.T, program, want string) {
	cmd := exec.Command(program, "fault")
	cmd.Dir = os.TempDir()
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "no name space") {
		t.Logf("not on this machine's Linux: %s", out)
		return
	}
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 139 || initSays(string(out)) != want {
		t.Errorf("on this machine's Linux: %v\n%s", err, out)
	}
}
