package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"hardtack/live"
	"hardtack/tool/fault"
)

// Console is what the guest's console is connected to.
type Console struct {
	In  io.Reader // nil: the guest has no input, not even its end
	Out io.Writer // nil: nobody reads
	TTY *os.File  // the terminal behind In, nil where it is not one
}

// Where the descriptors of the child stand.
const (
	fdInitrd = 3 + iota
	fdConsole
	fdControl
	fdLive
	fdMonitor
	fdRAM
	fdState
)

// fdNet is the cable's end, where there is one. It stands far behind the others, whose number
// differs.
const fdNet = 20

// grace is how long process 1 has to end after a signal.
var grace = 5 * time.Second

// Command is the QEMU command line of a machine, as Run starts it.
func (c *Config) Command() ([]string, error) {
	qemu, err := QEMU()
	if err != nil {
		return nil, err
	}
	argv := append([]string{qemu}, c.Args(devFD(fdInitrd), fdConsole, fdControl, fdLive)...)
	return append(argv, c.copyArgs()...), nil
}

// copyArgs are the arguments of a machine that can be copied, or is a copy.
func (c *Config) copyArgs() []string {
	if !c.Keep && c.From == nil {
		return nil
	}
	share := "on"
	if c.From != nil {
		share = "off"
	}
	args := []string{
		"-chardev", fmt.Sprintf("socket,id=monitor,fd=%d", fdMonitor), "-mon", "chardev=monitor,mode=control",
		"-object", fmt.Sprintf("memory-backend-file,id=ram,size=%s,mem-path=%s,share=%s", memory(c.Memory), devFD(fdRAM), share),
		"-machine", "memory-backend=ram",
	}
	if c.From != nil {
		args = append(args, "-incoming", "defer")
	}
	return args
}

// Run starts the machine and waits for its end. The status is process 1's; an
// error has a status of its own (package fault). SIGINT and SIGTERM to this
// process go to process 1, a second one or a slow guest ends the machine.
// When ctx has a deadline and it passes, the machine ends, too.
func (c *Config) Run(ctx context.Context, initrd *os.File, con Console) (int, error) {
	if c.From == nil {
		if err := CheckKernel(c.Kernel); err != nil {
			return 0, err
		}
	}
	for _, f := range c.Publish {
		if err := f.Free(); err != nil {
			return 0, err
		}
	}
	argv, err := c.Command()
	if err != nil {
		return 0, err
	}
	s := &session{cfg: c, signals: make(chan os.Signal, 4)}
	signal.Notify(s.signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT)
	defer signal.Stop(s.signals)
	if err := s.start(argv, initrd); err != nil {
		return 0, err
	}
	if con.TTY != nil {
		old, err := term.MakeRaw(int(con.TTY.Fd()))
		if err != nil {
			s.kill(unix.SIGKILL)
			_ = s.wait()
			return 0, err
		}
		defer func() { _ = term.Restore(int(con.TTY.Fd()), old) }()
	}
	return s.serve(ctx, con)
}

// session is one running machine.
type session struct {
	cfg     *Config
	signals chan os.Signal

	cmd     *exec.Cmd
	console *os.File // the host's end
	control *os.File // the host's end
	live    *os.File // the host's end
	monitor *monitor // QEMU's own; nil unless the machine can be copied, or is a copy
	ram     *os.File // the machine's memory, if it can be copied
	passt   *passt   // nil without it
	stderr  bytes.Buffer
}

// start makes the channels and starts QEMU.
func (s *session) start(argv []string, initrd *os.File) (err error) {
	var theirs [3]*os.File
	if s.console, theirs[0], err = pair("console"); err != nil {
		return err
	}
	if s.control, theirs[1], err = pair("control"); err != nil {
		closeAll(s.console, theirs[0])
		return err
	}
	if s.live, theirs[2], err = pair("live"); err != nil {
		closeAll(s.console, s.control, theirs[0], theirs[1])
		return err
	}
	defer closeAll(theirs[:]...)
	s.cmd = exec.Command(argv[0], argv[1:]...)
	s.cmd.ExtraFiles = []*os.File{initrd, theirs[0], theirs[1], theirs[2]}
	more, err := s.copyFiles()
	if err != nil {
		closeAll(s.console, s.control, s.live)
		return err
	}
	s.cmd.ExtraFiles = append(s.cmd.ExtraFiles, more...)
	if s.cfg.Net.Kind == NetPasst {
		var cable *os.File
		if s.passt, cable, err = s.cfg.startPasst(); err != nil {
			closeAll(append(more, s.console, s.control, s.live)...)
			return err
		}
		defer cable.Close()
		for len(s.cmd.ExtraFiles) < fdNet-fdInitrd {
			s.cmd.ExtraFiles = append(s.cmd.ExtraFiles, nil)
		}
		s.cmd.ExtraFiles = append(s.cmd.ExtraFiles, cable)
	}
	defer func() {
		for _, f := range more {
			if f != s.ram {
				f.Close()
			}
		}
	}()
	s.cmd.Stderr = &s.stderr
	if len(s.cfg.QEMUArgs) > 0 {
		// Whoever has options of his own wants to see what they print.
		s.cmd.Stdout = os.Stderr
		s.cmd.Stderr = io.MultiWriter(&s.stderr, os.Stderr)
	}
	if s.cfg.From != nil {
		// Of many copies each should have little memory of its own. QEMU inherits this; what
		// pages it translates code to would be large ones.
		_ = unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0) // a host without it has larger copies
	}
	// A process group of its own keeps the terminal's Ctrl-C away from QEMU.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL, Setpgid: true}
	s.cmd.WaitDelay = time.Second
	if err := s.cmd.Start(); err != nil {
		closeAll(s.console, s.control, s.live)
		return err
	}
	return nil
}

// copyFiles opens what copyArgs speak of.
func (s *session) copyFiles() (files []*os.File, err error) {
	c := s.cfg
	if !c.Keep && c.From == nil {
		return nil, nil
	}
	defer func() {
		if err != nil {
			closeAll(files...)
		}
	}()
	ours, theirs, err := pair("monitor")
	if err != nil {
		return nil, err
	}
	files = append(files, theirs)
	if s.monitor, err = newMonitor(ours); err != nil {
		return files, err
	}
	if c.From == nil {
		s.ram, err = ramFile(c.Memory)
		return append(files, s.ram), err
	}
	for _, name := range []string{snapshotRAM, snapshotState} {
		mode := os.O_RDONLY
		if name == snapshotRAM {
			mode = os.O_RDWR // QEMU opens it so, but maps it privately
		}
		f, err := os.OpenFile(filepath.Join(c.From.dir, name), mode, 0)
		if err != nil {
			return files, err
		}
		files = append(files, f)
	}
	return files, nil
}

// resuming is how long a copy's kernel may take until its programs go on.
const resuming = time.Minute

// resume has a copy go on where it was saved, as another machine.
func (s *session) resume(ctx context.Context, ctl *control, end *ending) {
	err := s.monitor.restore(fdState)
	if err == nil {
		ctl.say("%s", s.cfg.Renewal.line())
		select {
		case <-ctl.ready:
			return
		case <-ctx.Done():
			return
		case <-time.After(resuming):
			err = errors.New("its kernel does not go on")
		}
	}
	end.mu.Lock()
	if end.err == nil {
		end.err = fault.With(fault.Host, "the snapshot: %w", err)
	}
	end.mu.Unlock()
	s.kill(unix.SIGKILL)
}

// pair makes a channel: our end and the child's.
func pair(name string) (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(fds[0]), name), os.NewFile(uintptr(fds[1]), name), nil
}

func (s *session) kill(sig syscall.Signal) { _ = s.cmd.Process.Signal(sig) }

func (s *session) wait() error {
	defer closeAll(s.console, s.control, s.live, s.ram)
	defer s.passt.stop()
	if s.monitor != nil {
		defer s.monitor.conn.Close()
	}
	return s.cmd.Wait()
}

// ending is why the host ended the machine, if it did.
type ending struct {
	mu  sync.Mutex
	err error          // guarded by mu
	sig syscall.Signal // guarded by mu
	out bool           // the user left; guarded by mu
}

// serve moves bytes until QEMU is gone and everything it wrote is delivered.
func (s *session) serve(ctx context.Context, con Console) (int, error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	ctl := newControl(s.control)
	end := &ending{}

	var readers sync.WaitGroup
	out := &output{w: con.Out}
	if s.cfg.LastWords != nil {
		out.words = new(lastWords)
	}
	var outErr error
	readers.Go(func() {
		if outErr = out.run(s.console); outErr != nil {
			s.kill(unix.SIGKILL)
		}
	})
	readers.Go(func() { ctl.listen(s.control) })
	link := live.NewLink(s.live)
	readers.Go(func() { feed(link, s.live) })
	if s.cfg.Watch != nil {
		s.cfg.Watch(&Running{PID: s.cmd.Process.Pid, Ready: ctl.ready, Done: running.Done(), Live: link, s: s, ctl: ctl, end: end})
	}

	// The input's goroutine may stay in a read of the host's standard input
	// after the machine's end; nothing can be lost there any more.
	in := &input{r: con.In, console: s.console, ctl: ctl, terminal: con.TTY != nil, leave: func() {
		end.mu.Lock()
		end.out = true
		end.mu.Unlock()
		s.kill(unix.SIGKILL)
	}}
	go in.run(running)
	if s.cfg.From != nil {
		go s.resume(running, ctl, end)
	}
	var helpers sync.WaitGroup
	if con.TTY != nil {
		helpers.Go(func() { watchSize(running, con.TTY, ctl) })
	}
	helpers.Go(func() { s.govern(running, ctl, end) })

	// Wait for the channels' ends, which come with QEMU's, before Wait closes
	// anything.
	readers.Wait()
	err := s.wait()
	stop()
	helpers.Wait()
	if outErr != nil {
		return 0, fmt.Errorf("standard output: %w", outErr)
	}
	code, err := s.conclude(err, ctl, end, out)
	if text := out.words.text(); text != nil && fault.Status(err) == fault.Panic {
		s.cfg.LastWords(text)
	}
	return code, err
}

// govern ends the machine on a signal or at the deadline.
func (s *session) govern(ctx context.Context, ctl *control, end *ending) {
	var force <-chan time.Time
	over := ctl.over
	for {
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				end.mu.Lock()
				end.err = fault.With(fault.Timeout, "the time is up")
				end.mu.Unlock()
			}
			s.kill(unix.SIGKILL)
			return
		case got := <-s.signals:
			sig, _ := got.(syscall.Signal)
			end.mu.Lock()
			first := end.sig == 0
			if first {
				end.sig = sig
			}
			end.mu.Unlock()
			if !first || !ctl.isReady() {
				s.kill(unix.SIGKILL)
				continue
			}
			go ctl.say("signal %s", strings.TrimPrefix(unix.SignalName(sig), "SIG"))
			force = time.After(grace)
		case <-over:
			// It has said its last word and powers off by itself, unless it
			// cannot.
			force, over = time.After(grace), nil
		case <-force:
			s.kill(unix.SIGKILL)
		}
	}
}

func watchSize(ctx context.Context, tty *os.File, ctl *control) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, unix.SIGWINCH)
	defer signal.Stop(changed)
	for {
		if cols, rows, err := term.GetSize(int(tty.Fd())); err == nil {
			ctl.say("winsize %d %d", rows, cols)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// conclude finds out what the machine's end means.
func (s *session) conclude(waited error, ctl *control, end *ending, out *output) (int, error) {
	code := s.cmd.ProcessState.ExitCode()
	told := ctl.verdict()
	end.mu.Lock()
	defer end.mu.Unlock()
	switch {
	case told.panicked && told.panicText != "":
		return 0, fault.With(fault.Panic, "kernel panic: %s", told.panicText)
	case told.panicked || code == PanicCode<<1|1:
		return 0, fault.With(fault.Panic, "kernel panic: %s", out.panicText())
	case told.exited:
		return told.status, nil
	case end.out:
		return 0, nil
	case end.err != nil:
		return 0, end.err
	case end.sig != 0:
		return 0, fault.With(128+int(end.sig), "ended by %s", unix.SignalName(end.sig))
	case code == 1 && s.stderr.Len() > 0:
		return 0, s.refused()
	case code > 0 && code&1 == 1:
		return code >> 1, nil // the debug port: a guest without the control channel
	case code < 0:
		return 0, fault.With(fault.Lost, "QEMU ended without the guest's status: %v", waited)
	}
	why := "the machine powered off or was reset without reporting a status"
	if out.silent() {
		why += " and without printing anything"
	}
	return 0, fault.With(fault.Lost, "%s", why)
}

// refused turns what QEMU says when it does not start into one line.
func (s *session) refused() error {
	text := strings.TrimSpace(s.stderr.String())
	line := text[strings.LastIndexByte(text, '\n')+1:]
	for l := range strings.SplitSeq(text, "\n") {
		if !strings.Contains(l, "warning:") {
			line = l
			break
		}
	}
	if _, after, ok := strings.Cut(line, "qemu-system-x86_64: "); ok {
		line = after
	}
	switch {
	case strings.Contains(text, "Failed to get") && strings.Contains(text, "lock"):
		return fault.Bad("a disk's file is in use by another machine: %s", line)
	case strings.Contains(line, "host forwarding rule"):
		return fault.Bad("a published port is in use: %s", line)
	case len(s.cfg.QEMUArgs) > 0:
		return fault.Bad("QEMU: %s", line)
	}
	return fault.With(fault.Host, "QEMU: %s", line)
}
