package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"hardtack/bench/internal/report"
)

// runner runs the programs that measure.
type runner struct {
	ctx   context.Context // when it ends, so does the program that runs
	dir   string          // where they are
	fifo  bool            // those that pin their processes have real-time priority
	limit time.Duration   // that none takes unless it hangs
	part  int             // of the usual operations one in so many; 0 for all
}

// pinned are the programs with one polling thread a processor. Others never get
// real-time priority: threads that poll could keep those they wait for from running.
var pinned = []string{"ref", "load", "stages", "iceoryx2"}

// figure is what one run of a command gives, in nanoseconds per operation.
type figure struct {
	time      float64
	processor float64 // of both processes from start to end
}

// measure runs a command, whose second argument is how many operations it does.
func (r runner) measure(cmd string) (figure, error) {
	args := strings.Fields(cmd)
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return figure{}, fmt.Errorf("%s: %w", cmd, err)
	}
	n = max(n/max(r.part, 1), min(n, 20))
	args[2] = strconv.Itoa(n)
	out, spent, err := r.run(args[0], args[1:]...)
	if err != nil {
		return figure{}, err
	}
	ns, err := strconv.ParseFloat(strings.TrimSpace(out), 64)
	if err == nil && (ns <= 0 || spent <= 0) {
		err = fmt.Errorf("%s measured nothing: %v ns, %v of processor time", cmd, ns, spent)
	}
	return figure{ns, float64(spent.Nanoseconds()) / float64(n)}, err
}

// output runs one program and returns what it prints.
func (r runner) output(name string, args ...string) (string, error) {
	out, _, err := r.run(name, args...)
	return out, err
}

// run runs one program and returns what it prints, and its processor time. Programs start others: all are
// a process group, of which nothing is left when this one fails or takes too long. We
// watch over it at ordinary priority, for which the kernel leaves a twentieth of each
// processor.
func (r runner) run(name string, args ...string) (string, time.Duration, error) {
	args = append([]string{filepath.Join(r.dir, name)}, args...)
	if chrt, err := exec.LookPath("chrt"); err == nil && r.fifo && slices.Contains(pinned, name) {
		args = append([]string{chrt, "-f", "10"}, args...)
	}
	ctx, cancel := context.WithTimeout(r.ctx, r.limit)
	defer cancel()
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Stderr = os.Stderr
	c.Env = append(os.Environ(), "TMPDIR="+r.dir) // so that what it may leave goes with us
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	group := func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.Cancel = group
	c.WaitDelay = 5 * time.Second
	out, err := c.Output()
	if err != nil {
		if c.Process != nil {
			group()
		}
		if ctx.Err() == context.DeadlineExceeded {
			err = fmt.Errorf("it took longer than %v", r.limit)
		}
		return "", 0, fmt.Errorf("%s: %w", name, err)
	}
	return string(out), report.Processor(c.ProcessState), nil
}
