package guest

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The host's command looks after the clusters of a machine with a name, and runs programs
// there with input, output, exit status and a terminal.
func TestClusterCommand(t *testing.T) {
	m := newMachines(t)
	if err := goBuild(repository(t), filepath.Join(m.root, "sbin", "cluster"), "./cmd/cluster"); err != nil {
		t.Fatal(err)
	}
	m.start("pair", "--cluster", "cpus=1,memory=224M", "--cluster", "cpus=1,memory=128M")
	state := func(want string) {
		t.Helper()
		out := ""
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if out, _, _ = m.run("", "cluster", "ls", "pair"); strings.Contains("\n"+out, "\n"+want) {
				return
			}
		}
		t.Fatalf("cluster ls: %q, want %q", out, want)
	}
	ready := func() { // its agent listens
		t.Helper()
		status, errs := 0, ""
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if _, errs, status = m.run("", "cluster", "run", "pair", "1", "/live", "exit", "0"); status == 0 {
				return
			}
		}
		t.Fatalf("cluster 1 runs no programs: %d %s", status, errs)
	}
	state("1 running lives 1 cpus 1 memory 128 MiB")
	ready()
	m.want("leaving with 7\n", 7, "cluster", "run", "pair", "1", "--", "/live", "exit", "7")
	m.want("", 137, "cluster", "run", "pair", "1", "/live", "die")
	if out, errs, status := m.run("hello\n", "cluster", "run", "-i", "pair", "1", "/live", "cat"); out != "hello\n" || status != 0 {
		t.Errorf("cat: %q, %d (%s)", out, status, errs)
	}
	for _, c := range []struct {
		status int
		text   string
		args   []string
	}{
		{127, "/nothing", []string{"run", "pair", "1", "/nothing"}},
		{255, "cluster 3", []string{"run", "pair", "3", "/live", "exit", "0"}},
		{125, "further cluster", []string{"run", "pair", "0", "/live", "exit", "0"}},
		{125, "none", []string{"run", "none", "1", "/live", "exit", "0"}},
		{2, "further cluster", []string{"kill", "pair", "0"}},
		{1, "no cluster 2", []string{"kill", "pair", "2"}},
	} {
		if _, errs, status := m.run("", append([]string{"cluster"}, c.args...)...); status != c.status || !strings.Contains(errs, c.text) {
			t.Errorf("cluster %v: %d %q; want %d, %q", c.args, status, errs, c.status, c.text)
		}
	}
	m.want("", 0, "cluster", "memory", "pair", "4M", "--from", "0", "--to", "1")
	state("1 running lives 1 cpus 1 memory 132 MiB")
	for _, c := range []struct {
		text string
		args []string
	}{
		{"but its first", []string{"cores", "pair", "1", "--from", "0", "--to", "1"}},
		{"no such", []string{"cores", "pair", "x", "--from", "0", "--to", "1"}},
		{"no such", []string{"memory", "pair", "3", "--from", "0", "--to", "1"}},
		{"no such", []string{"memory", "pair", "4M", "--from", "0", "--to", "5"}},
	} {
		if _, errs, status := m.run("", append([]string{"cluster"}, c.args...)...); status == 0 || !strings.Contains(errs, c.text) {
			t.Errorf("cluster %v: %d %q; want %q", c.args, status, errs, c.text)
		}
	}
	t.Run("terminal", func(t *testing.T) {
		m.terminal(t, "cluster", "run", "-it", "pair", "1", "/live", "tty")
	})
	m.want("", 0, "cluster", "kill", "pair", "1")
	state("1 was killed")
	m.want("", 0, "cluster", "restart", "pair", "1")
	state("1 running lives 2")
	ready()
	m.want("", 0, "cluster", "stop", "pair", "1")
	state("1 exited 0")
	m.start("single")
	if _, errs, status := m.run("", "cluster", "ls", "single"); status == 0 || !strings.Contains(errs, "one kernel") {
		t.Errorf("a machine with one kernel: %d %s", status, errs)
	}
}
