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
)

// runner runs the programs that measure.
type runner struct {
	ctx   context.Context // when it ends, so does the program that runs
	dir   string          // where they are
	fifo  bool            // those that pin their processes have real-time priority
	limit time.Duration   // that none takes unless it hangs
}

// pinned are the programs with one polling thread a processor. Others never get
// real-time priority: threads that poll could keep those they wait for from running.
var pinned = []string{"ref", "load", "stages", "iceoryx2"}

// measure runs a command and returns the nanoseconds it prints.
func (r runner) measure(cmd string) (float64, error) {
	args := strings.Fields(cmd)
	out, err := r.output(args[0], args[1:]...)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(out), 64)
}

// output runs one program and returns what it prints. Programs start others: all are
// a process group, of which nothing is left when this one fails or takes too long. We
// watch over it at ordinary priority, for which the kernel leaves a twentieth of each
// processor.
func (r runner) output(name string, args ...string) (string, error) {
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
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return string(out), nil
}
