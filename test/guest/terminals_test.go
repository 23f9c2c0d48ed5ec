package guest

import (
	"bytes"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"hardtack/tool/ptytest"
)

// asks finds what a terminal answers as if it were typed: requests for its attributes (DA,
// XTVERSION), status and cursor (DSR), modes (DECRQM), keyboard, colours and capabilities.
var asks = regexp.MustCompile("\x1b(?:\\[[>=]?[0-9;]*c|\\[>[0-9]*q|\\[\\??[0-9]+n|\\[\\??[0-9]+\\$p|\\[\\?u|\\][0-9;]*\\?|P[+$]q)")

// onTerminal runs a command on a terminal that answers nothing, and returns what it has
// written there. Once it has written a pattern it is sent the keys, in turn.
func (m *machines) onTerminal(t *testing.T, keys [][2]string, args ...string) (string, int) {
	t.Helper()
	master, slave := ptytest.Open(t)
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120}); err != nil {
		t.Fatal(err)
	}
	c := m.command(args...)
	c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	var said bytes.Buffer
	since := 0 // what was written after the last key
	b := make([]byte, 4096)
	for {
		n, err := master.Read(b)
		said.Write(b[:n])
		if len(keys) > 0 && strings.Contains(said.String()[since:], keys[0][0]) {
			since = said.Len()
			if _, err := master.WriteString(keys[0][1]); err != nil {
				t.Fatal(err)
			}
			keys = keys[1:]
		}
		if err != nil { // EIO: nobody has the terminal any more
			break
		}
	}
	_ = c.Wait()
	if len(keys) > 0 {
		t.Errorf("hardtack %s: never wrote %q", strings.Join(args, " "), keys[0][0])
	}
	return said.String(), c.ProcessState.ExitCode()
}

// Commands write nothing to a terminal that it would answer: the answer would be the input
// of the program in the machine. Interactive top runs, and follows its keys.
func TestTerminals(t *testing.T) {
	for _, query := range []string{"\x1b[c", "\x1b[>0q", "\x1b[6n", "\x1b[?2026$p", "\x1b]11;?\x07", "\x1bP+q544e", "\x1b[?u"} {
		if !asks.MatchString(query) {
			t.Errorf("%q is not found", query)
		}
	}
	if plain := "\x1b[1;31mred\x1b[0m\x1b[2J\x1b[?25l\x1b]2;title\x07"; asks.MatchString(plain) {
		t.Errorf("%q is found in %q", asks.FindString(plain), plain)
	}
	m := newMachines(t)
	m.start("web")
	for _, args := range [][]string{
		{"ps"}, {"exec", "-it", "web", "/live", "exit", "7"}, {"logs", "web"}, {"stats", "--no-stream"}, {"inspect", "web"},
		{"top", "--once", "web"}, {"run", "--help"}, {"image", "ls"},
		{"run", "--accel", "tcg", "--memory", "256M", m.root, "--", "/live", "exit", "7"},
	} {
		out, status := m.onTerminal(t, nil, args...)
		if what := asks.FindString(out); what != "" {
			t.Errorf("hardtack %s asks the terminal %q", strings.Join(args, " "), what)
		}
		if want := map[bool]int{true: 7}[strings.Contains(strings.Join(args, " "), "exit 7")]; status != want || out == "" && args[0] != "image" {
			t.Errorf("hardtack %s: status %d, want %d: %q", strings.Join(args, " "), status, want, out)
		}
	}
	out, status := m.onTerminal(t, [][2]string{{"PID", "\t"}, {"SECOND", "\t"}, {"LOCAL", "q"}}, "top", "web")
	if status != 0 {
		t.Errorf("top: status %d: %q", status, out)
	}
	if err := exec.Command(m.tool, "rm", "-f", "web").Run(); err != nil {
		t.Error(err)
	}
}
