// Package tty implements terminals: the line discipline, pseudo-terminals, consoles and
// job control.
//
// A TTY has a user side, which programs open, and a driver side: the machine's
// console or the master of a pseudo-terminal. What the driver receives goes
// through the input half of the line discipline (editing, echo, signals) into
// the buffer that programs read; what programs write goes through the output
// half into a buffer that the driver takes from. The behaviour is that of
// Linux's N_TTY, to the byte; tests compare it with the host's.
//
// Lock order: pairsMu or jobsMu, then TTY.mu, then queues. Signals are sent,
// listeners told and the driver is kicked after TTY.mu is released (unlock), so
// that kernel/process/proc may call in with its own locks held. User memory is copied
// outside TTY.mu.
package tty

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/wait"
)

const (
	readable = wait.In | wait.RdNorm
	writable = wait.Out | wait.WrNorm
)

// driver is the other side of a terminal.
type driver interface {
	// kick is called without locks when output was added or may flow again.
	kick(t *TTY)
	// packet tells a pty's master of TIOCPKT_* changes; called with t.mu held.
	packet(t *TTY, status uint8)
	// drained reports that all output has left the machine; called with t.mu held.
	drained(t *TTY) bool
}

// TTY is a terminal.
type TTY struct {
	queue        wait.Queue // open files of the user side: readers, writers, polls
	driver       driver     // immutable
	major, minor uint32     // immutable
	pty          bool       // there is a master; immutable

	hangups atomic.Uint32 // how often it was hung up; files of before are dead

	mu        sync.Mutex
	term      linux.Termios // guarded by mu
	locked    linux.Termios // bits of term that TCSETS leaves; guarded by mu
	size      linux.Winsize // guarded by mu
	in        input         // guarded by mu
	out       output        // guarded by mu
	opens     int           // open files of the user side; guarded by mu
	exclusive bool          // TIOCEXCL; guarded by mu
	noPeer    bool          // the master is closed; guarded by mu
	ended     bool          // no input will come any more; guarded by mu
	after     after         // what unlock does; guarded by mu

	// session and group are whose controlling terminal it is and who is in the
	// foreground; 0 for none. Written under jobsMu and mu, read under either.
	session, group int32
}

// after is what is to be done once mu is released.
type after struct {
	signals linux.SigSet // for the foreground group
	events  wait.Events  // for queue
	kick    bool
}

// control returns the character that stands for Ctrl and a letter.
func control(c byte) byte { return c & 0x1f }

// defaultTermios is what a terminal starts with (Linux's tty_std_termios).
func defaultTermios() linux.Termios {
	t := linux.Termios{
		Iflag: linux.ICRNL | linux.IXON,
		Oflag: linux.OPOST | linux.ONLCR,
		Cflag: linux.B38400 | linux.CS8 | linux.CREAD | linux.HUPCL,
		Lflag: linux.ISIG | linux.ICANON | linux.ECHO | linux.ECHOE | linux.ECHOK |
			linux.ECHOCTL | linux.ECHOKE | linux.IEXTEN,
		Ispeed: 38400, Ospeed: 38400,
	}
	t.Cc = [linux.NCCS]uint8{
		linux.VINTR: control('C'), linux.VQUIT: control('\\'), linux.VERASE: 0x7f,
		linux.VKILL: control('U'), linux.VEOF: control('D'), linux.VMIN: 1,
		linux.VSTART: control('Q'), linux.VSTOP: control('S'), linux.VSUSP: control('Z'),
		linux.VREPRINT: control('R'), linux.VDISCARD: control('O'),
		linux.VWERASE: control('W'), linux.VLNEXT: control('V'),
	}
	return t
}

func (t *TTY) iflag(f uint32) bool { return t.term.Iflag&f != 0 }
func (t *TTY) oflag(f uint32) bool { return t.term.Oflag&f != 0 }
func (t *TTY) lflag(f uint32) bool { return t.term.Lflag&f != 0 }

// unlock releases mu and does what was put off.
func (t *TTY) unlock() {
	a, group := t.after, t.group
	t.after = after{}
	t.mu.Unlock()
	if a.kick {
		t.driver.kick(t)
	}
	if a.events != 0 {
		t.queue.Notify(a.events)
	}
	if a.signals != 0 && group != 0 {
		for sig := linux.Signal(1); sig <= linux.SIGSYS; sig++ {
			if a.signals.Has(sig) {
				jobs.SignalGroup(group, sig)
			}
		}
	}
}

// Receive is called by the driver with what came in; it returns how much was
// taken: less than all when nobody reads.
func (t *TTY) Receive(p []byte) int {
	t.mu.Lock()
	n := min(len(p), backlogSize-len(t.in.backlog))
	t.in.backlog = append(t.in.backlog, p[:n]...)
	t.pump()
	t.unlock()
	return n
}

// SetSize sets the window size and tells the foreground group if it changed.
func (t *TTY) SetSize(w linux.Winsize) {
	t.mu.Lock()
	if t.size != w {
		t.size = w
		t.after.signals |= linux.SIGWINCH.Set()
	}
	t.unlock()
}

// Hangup makes all open files useless and tells the session that its terminal
// is gone.
func (t *TTY) Hangup() { t.hangup(false) }

func (t *TTY) hangup(sessionEnds bool) {
	jobsMu.Lock()
	t.mu.Lock()
	session, group := t.session, t.group
	t.forgetSession()
	t.hangups.Add(1)
	t.in.reset()
	t.in.backlog, t.in.literal = nil, false
	if t.pty {
		t.term = defaultTermios()
	}
	t.out.stopped, t.out.byProgram = false, false
	t.after.events |= readable | writable | wait.Hup | wait.Err
	t.after.kick = true
	jobsMu.Unlock()
	t.unlock()
	if session == 0 {
		return
	}
	if sessionEnds {
		if group != 0 {
			jobs.SignalGroup(group, linux.SIGHUP)
			jobs.SignalGroup(group, linux.SIGCONT)
		}
		return
	}
	jobs.SignalLeader(session, linux.SIGHUP)
	jobs.SignalLeader(session, linux.SIGCONT)
}

// sleep waits for events, giving mu up meanwhile.
func (t *TTY) sleep(c *caller.Ctx, ev wait.Events, deadline int64) wait.Result {
	c.Arm()
	t.queue.Add(&c.Entry, &c.Sleeper, ev)
	t.unlock()
	r := c.Sleep(deadline)
	t.queue.Remove(&c.Entry)
	t.mu.Lock()
	return r
}

// flush throws buffered input or output away (TCFLSH, signal characters).
func (t *TTY) flush(input, output bool) {
	if input {
		t.in.reset()
		t.in.backlog = t.in.backlog[:0]
		t.after.events |= writable
		t.after.kick = true // the master may go on writing
		t.driver.packet(t, linux.TIOCPKT_FLUSHREAD)
	}
	if output {
		t.clearOutput()
		t.after.events |= writable
		t.driver.packet(t, linux.TIOCPKT_FLUSHWRITE)
	}
}

// clearOutput throws away what has not left; a pty's output has: it is the
// master's.
func (t *TTY) clearOutput() {
	if !t.pty {
		t.out.clear()
	}
}

// stop and start are the flow of output.
func (t *TTY) stop() {
	if !t.out.stopped {
		t.out.stopped = true
		t.driver.packet(t, linux.TIOCPKT_STOP)
	}
}

func (t *TTY) start() {
	if t.out.stopped && !t.out.byProgram {
		t.out.stopped = false
		t.driver.packet(t, linux.TIOCPKT_START)
		t.releaseEcho()
		t.after.kick = true
		t.after.events |= writable
	}
}
