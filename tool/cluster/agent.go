package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	abi "hardtack/abi/cluster"
	"hardtack/idl/spawn"
	"hardtack/msg"
	transport "hardtack/msg/cluster"
)

func options() *msg.Options {
	return &msg.Options{Resolver: transport.ByAddress, Schemes: []string{transport.Scheme}, Grace: time.Nanosecond}
}

// Agent starts programs for root of other clusters until ctx ends. As process 1 it also
// looks after orphans.
func Agent(ctx context.Context) error {
	s, err := spawn.Export(ctx, abi.Spawn, options())
	if err != nil {
		return err
	}
	a := &agent{jobs: map[int]*job{}, started: make(chan struct{}, 1)}
	go a.reap()
	return s.Serve(ctx, func(c *spawn.Conn) spawn.Handler {
		j := &job{a: a, done: make(chan struct{})}
		go func() {
			<-c.Done()
			j.end()
		}()
		return j
	})
}

// agent is what the jobs have in common.
type agent struct {
	started chan struct{} // full after a program was started

	mu   sync.Mutex
	jobs map[int]*job // by process; guarded by mu
}

// reap waits for all children: programs, and the orphans that process 1 gets.
func (a *agent) reap() {
	for {
		var info unix.Siginfo
		// The number must not be used again while somebody may send a signal there.
		switch err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil); {
		case err == unix.ECHILD:
			<-a.started
			continue
		case err != nil:
			continue
		}
		a.mu.Lock()
		var status unix.WaitStatus
		if pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil); err == nil && pid > 0 {
			if j := a.jobs[pid]; j != nil {
				delete(a.jobs, pid)
				j.status = status
				close(j.done)
				for _, f := range j.files[1:] {
					if f != nil {
						f.SetReadDeadline(time.Unix(1, 0)) // see Output
					}
				}
			}
		}
		a.mu.Unlock()
	}
}

// job is a program, and serves its connection.
type job struct {
	a    *agent
	done chan struct{} // closed when the program has ended

	// Guarded by a.mu until the program was started, and immutable then.
	pid   int
	ended bool        // the connection has
	files [3]*os.File // this side of its standard input, output and error

	status unix.WaitStatus // once done is closed
}

// Start implements spawn.Handler.
func (j *job) Start(_ context.Context, in spawn.StartCall) (out spawn.StartReply, err error) {
	args, env := split(in.Arguments), split(in.Environment)
	if len(args) == 0 || in.Directory == "" {
		return out, fmt.Errorf("%w: no arguments or no directory", spawn.ErrNoProgram)
	}
	path, err := lookPath(args[0], in.Directory, env)
	if err != nil {
		return out, fmt.Errorf("%w: %w", spawn.ErrNoProgram, err)
	}
	attr := &syscall.SysProcAttr{Setsid: true}
	open := pipes
	if in.Terminal {
		open = func() (mine, theirs [3]*os.File, err error) { return terminal(in.Rows, in.Cols) }
		attr.Setctty = true
	}
	mine, theirs, err := open()
	defer func() {
		closeAll(theirs)
		if err != nil {
			closeAll(mine)
		}
	}()
	if err != nil {
		return out, fmt.Errorf("%w: %w", spawn.ErrNoProgram, err)
	}
	var fds []uintptr
	for _, f := range theirs {
		fds = append(fds, f.Fd()) // which makes it block, as programs expect
	}
	j.a.mu.Lock()
	defer j.a.mu.Unlock()
	if j.pid != 0 || j.ended {
		return out, spawn.ErrTwice
	}
	was := unix.Umask(int(in.Umask & 0o777))
	pid, err := syscall.ForkExec(path, args, &syscall.ProcAttr{Dir: in.Directory, Env: env, Files: fds, Sys: attr})
	unix.Umask(was)
	if err != nil {
		return out, fmt.Errorf("%w: %s: %w", spawn.ErrNoProgram, args[0], err)
	}
	j.pid, j.files = pid, mine
	j.a.jobs[pid] = j
	select {
	case j.a.started <- struct{}{}:
	default:
	}
	return spawn.StartReply{Process: uint32(pid)}, nil
}

// pipes makes those of a program, from this side and from its own.
func pipes() (mine, theirs [3]*os.File, err error) {
	for i := range mine {
		r, w, err := os.Pipe()
		if err != nil {
			return mine, theirs, err
		}
		mine[i], theirs[i] = r, w
		if i == 0 {
			mine[i], theirs[i] = w, r
		}
	}
	return mine, theirs, nil
}

func closeAll(files [3]*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// split takes texts with a zero behind each apart.
func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\x00"), "\x00")
}

// lookPath finds a program as execvp does, in the PATH of an environment.
func lookPath(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			path = v
		}
	}
	for _, d := range filepath.SplitList(path) {
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d)
		}
		p := filepath.Join(d, name)
		if i, err := os.Stat(p); err == nil && i.Mode().IsRegular() && unix.Access(p, unix.X_OK) == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, unix.ENOENT)
}

// file is one of the program's files.
func (j *job) file(i uint8) (*os.File, error) {
	j.a.mu.Lock()
	defer j.a.mu.Unlock()
	if j.pid == 0 || int(i) >= len(j.files) {
		return nil, spawn.ErrNotStarted
	}
	if i == 0 && j.isTerminal() {
		i = 1
	}
	return j.files[i], nil
}

// Input implements spawn.Handler.
func (j *job) Input(_ context.Context, in spawn.InputCall) (out spawn.InputReply, err error) {
	f, err := j.file(0)
	if err != nil {
		return out, err
	}
	switch {
	case len(in.Bytes) > 0:
		_, err = f.Write(in.Bytes)
	case j.isTerminal():
		_, err = f.Write([]byte{endOfFile})
	default:
		f.Close()
	}
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		out.Broken, err = true, nil
	}
	return out, err
}

// Output implements spawn.Handler. When the program has ended it gives what is there and
// does not wait for others that have the pipe.
func (j *job) Output(_ context.Context, in spawn.OutputCall) (out spawn.OutputReply, err error) {
	f, err := j.file(in.Which)
	if err != nil || in.Which == 0 {
		return out, spawn.ErrNotStarted
	}
	if f == nil {
		return out, nil // a terminal has one output
	}
	b := make([]byte, 16<<10)
	n, err := f.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		raw, _ := f.SyscallConn()
		raw.Control(func(fd uintptr) { n, _ = syscall.Read(int(fd), b) })
	}
	return spawn.OutputReply{Bytes: b[:max(n, 0)]}, nil
}

// Signal implements spawn.Handler.
func (j *job) Signal(_ context.Context, in spawn.SignalCall) (out spawn.SignalReply, err error) {
	j.a.mu.Lock()
	defer j.a.mu.Unlock()
	if j.a.jobs[j.pid] != j {
		return out, spawn.ErrNotStarted
	}
	return out, unix.Kill(-j.pid, unix.Signal(in.Number))
}

// Wait implements spawn.Handler.
func (j *job) Wait(ctx context.Context, _ spawn.WaitCall) (out spawn.WaitReply, err error) {
	select {
	case <-j.done:
		if j.status.Signaled() {
			return spawn.WaitReply{Signal: uint8(j.status.Signal())}, nil
		}
		return spawn.WaitReply{Status: uint8(j.status.ExitStatus())}, nil
	case <-ctx.Done():
		return out, ctx.Err()
	}
}

// end kills what the connection has left.
func (j *job) end() {
	j.a.mu.Lock()
	defer j.a.mu.Unlock()
	j.ended = true
	if j.a.jobs[j.pid] == j {
		unix.Kill(-j.pid, unix.SIGKILL)
	}
	closeAll(j.files)
}
