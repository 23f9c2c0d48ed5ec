// Package runexample lets the tests of the examples run them: a test binary that
// is started with a program's arguments is that program.
package runexample

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const variable = "HARDTACK_EXAMPLE"

// patience is for slow machines.
const patience = 5 * time.Minute

// Main is for TestMain: it runs the tests, or main.
func Main(m *testing.M, main func()) {
	if os.Getenv(variable) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A Program is one that was started.
type Program struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string
	done  chan error
}

// Env makes variables for programs that see only each other.
func Env(t *testing.T) []string {
	t.Helper()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return []string{"HARDTACK_MSG_DIR=" + dir, "HARDTACK_NAMES=" + dir + "/names", "XDG_RUNTIME_DIR=" + dir, "XDG_STATE_HOME=" + dir}
}

// Start starts the example with arguments.
func Start(t *testing.T, env []string, args ...string) *Program {
	t.Helper()
	return StartCommand(t, append(env, variable+"=1"), exec.Command("/proc/self/exe", args...))
}

// StartCommand starts any program.
func StartCommand(t *testing.T, env []string, cmd *exec.Cmd) *Program {
	t.Helper()
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &Program{t, cmd, make(chan string, 1000), make(chan error, 1)}
	go func() {
		s := bufio.NewScanner(out)
		for s.Scan() {
			p.lines <- s.Text()
		}
		io.Copy(io.Discard, out)
		close(p.lines)
		p.done <- cmd.Wait()
	}()
	t.Cleanup(p.Kill)
	return p
}

// Want waits for a line of output that has all the words in it, and returns it.
func (p *Program) Want(words ...string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				p.t.Fatalf("%v ended without saying %q", p.cmd.Args[1:], words)
			}
			all := true
			for _, w := range words {
				all = all && strings.Contains(line, w)
			}
			if all {
				return line
			}
		case <-ctx.Done():
			p.t.Fatalf("%v did not say %q", p.cmd.Args[1:], words)
		}
	}
}

// Wait waits for the program's end, which must be a good one.
func (p *Program) Wait() {
	p.t.Helper()
	select {
	case err := <-p.done:
		p.done <- err
		if err != nil {
			p.t.Fatalf("%v: %v", p.cmd.Args[1:], err)
		}
	case <-time.After(patience):
		p.t.Fatalf("%v does not end", p.cmd.Args[1:])
	}
}

// Kill ends it without warning.
func (p *Program) Kill() { p.cmd.Process.Kill() }
