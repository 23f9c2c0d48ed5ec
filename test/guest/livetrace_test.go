package guest

import (
	"bufio"
	"os"
	"strings"
	"testing"
)

// TestLiveTrace: the host sees system calls of a machine's programs, one session at a time.
func TestLiveTrace(t *testing.T) {
	m := newMachines(t)
	m.start("traced")
	for _, bad := range [][]string{{"-p", "99999"}, {"-p", "0"}, {"-e", "read,nothing"}} {
		if _, errs, status := m.run("", append(append([]string{"trace"}, bad...), "traced")...); status != 2 {
			t.Errorf("trace %v: status %d, %s", bad, status, errs)
		}
	}
	cmd := m.command("trace", "-e", "trace=write,exit_group", "traced")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 10000)
	go func() {
		for s := bufio.NewScanner(pipe); s.Scan(); {
			lines <- s.Text()
		}
		close(lines)
	}()
	// The session begins some time after the command: a program runs again until it is seen.
	seen := ""
	for !strings.Contains(seen, "write(1, ") {
		m.want("leaving with 0\n", 0, "exec", "traced", "/live", "exit", "0")
		for more := true; more; {
			select {
			case s := <-lines:
				seen += s + "\n"
			default:
				more = false
			}
		}
	}
	if _, errs, status := m.run("", "trace", "traced"); status != 1 || !strings.Contains(errs, "somebody else") {
		t.Errorf("a second session: status %d, %s", status, errs)
	}
	cmd.Process.Signal(os.Interrupt)
	for s := range lines {
		seen += s + "\n"
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the interrupted trace: %v", err)
	}
	if !strings.Contains(seen, `write(1, "leaving with 0\n", 15)`) || strings.Contains(seen, "read(") {
		t.Errorf("the trace:\n%s", tail(seen, 50))
	}
	m.want("traced\n", 0, "stop", "-t", "0", "traced")
}
