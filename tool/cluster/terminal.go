package cluster

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"hardtack/idl/spawn"
)

// endOfFile is what a terminal takes for the end of its input (VEOF): Ctrl-D.
const endOfFile = 4

// terminal makes a pseudoterminal: this side of it is input and output, and there is no error.
func terminal(rows, cols uint16) (mine, theirs [3]*os.File, err error) {
	m, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return mine, theirs, err
	}
	mine[1] = m
	raw, err := m.SyscallConn()
	if err != nil {
		return mine, theirs, err
	}
	var number int
	outer := raw.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
		if err == nil && rows > 0 && cols > 0 {
			err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
		}
	})
	if err == nil {
		err = outer
	}
	if err != nil {
		return mine, theirs, err
	}
	s, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return mine, theirs, err
	}
	return mine, [3]*os.File{s, s, s}, nil
}

// isTerminal tells whether the program has a terminal instead of pipes.
func (j *job) isTerminal() bool { return j.files[0] == nil }

// Resize implements spawn.Handler.
func (j *job) Resize(_ context.Context, in spawn.ResizeCall) (out spawn.ResizeReply, err error) {
	f, err := j.file(1)
	if err != nil || !j.isTerminal() {
		return out, spawn.ErrNotStarted
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return out, err
	}
	outer := raw.Control(func(fd uintptr) {
		err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: in.Rows, Col: in.Cols})
	})
	if err == nil {
		err = outer
	}
	return out, err
}

// size is that of this side's terminal, 0 if it has none.
func size() (rows, cols uint16) {
	w, h, err := term.GetSize(int(os.Stdin.Fd()))
	if err != nil {
		return 0, 0
	}
	return uint16(h), uint16(w)
}

// attach makes this side's terminal a mere wire to the program's, and passes its sizes on. What
// it returns makes it a terminal again.
func (p *remote) attach(ctx context.Context) (restore func()) {
	fd := int(os.Stdin.Fd())
	old, err := term.MakeRaw(fd)
	if err != nil { // it is none
		return func() {}
	}
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, unix.SIGWINCH)
	go func() {
		for range changed {
			rows, cols := size()
			p.Resize(ctx, spawn.ResizeCall{Rows: rows, Cols: cols}) // it may have ended
		}
	}()
	return func() {
		signal.Stop(changed)
		term.Restore(fd, old)
	}
}
