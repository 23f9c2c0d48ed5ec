package ump

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/msg"
)

// gate is where goroutines sleep until they are kicked. At most two do.
type gate struct {
	mu     sync.Mutex
	asleep [2]chan struct{} // guarded by mu
	used   [2]bool          // guarded by mu
	some   atomic.Int32     // how many are used
}

func (g *gate) kick() {
	if g.some.Load() == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, used := range g.used {
		if used {
			select {
			case g.asleep[i] <- struct{}{}:
			default: // it has yet to look after an earlier kick
			}
		}
	}
}

func (g *gate) park(ready func() bool) {
	g.mu.Lock()
	i := 0
	if g.used[0] {
		i = 1
	}
	if g.asleep[i] == nil {
		g.asleep[i] = make(chan struct{}, 1)
	}
	g.used[i] = true
	g.some.Add(1)
	wake := g.asleep[i]
	g.mu.Unlock()
	for !ready() {
		<-wake
	}
	g.mu.Lock()
	g.used[i] = false
	g.some.Add(-1)
	select {
	case <-wake:
	default:
	}
	g.mu.Unlock()
}

// bell is a socket on which this end waits; the peer has the other end. Every call on
// it says itself that it must not wait: O_NONBLOCK belongs to an open file that the
// peer may share, and can be taken away.
type bell struct {
	file  *os.File
	raw   syscall.RawConn
	led   atomic.Bool // one goroutine waits on the bell; it kicks the others
	ready func() bool // of that goroutine
	look  func(uintptr) bool
}

// bellAfter is how often an end must have slept to be given a bell.
const bellAfter = 4

// newBell makes a bell, and the descriptor with which the peer rings it.
func newBell() (b *bell, far int, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, -1, err
	}
	if b, err = openBell(os.NewFile(uintptr(fds[0]), "bell")); err != nil {
		unix.Close(fds[1])
		return nil, -1, err
	}
	return b, fds[1], nil
}

// openBell takes f, which may come from another process.
func openBell(f *os.File) (*bell, error) {
	err := withFD(f, func(fd int) error {
		if err := checkPair(fd); err != nil {
			return err
		}
		return unix.SetNonblock(fd, true)
	})
	if err != nil {
		f.Close()
		return nil, err
	}
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &bell{file: f, raw: raw}, nil
}

// quiet takes what was rung: a ring that finds the socket's buffer full is lost. It comes
// before each look at what is waited for, since what is rung afterwards wakes the poller.
func (b *bell) quiet(fd uintptr) {
	var rung [256]byte
	unix.Recvfrom(int(fd), rung[:], unix.MSG_DONTWAIT)
}

// kick makes who waits on the bell look again.
func (b *bell) kick() { b.file.SetReadDeadline(time.Unix(1, 0)) }

func (b *bell) close() { b.file.Close() }

// Kick makes this end's Parks look again.
func (l *link) Kick() {
	l.gate.kick()
	if b := l.bell.Load(); b != nil {
		b.kick()
	}
	if p := l.place.Load(); p != nil {
		p.Rouse()
	}
}

// Wake makes the peer's Parks look again.
func (l *link) Wake() {
	if r := l.rings.Load(); r != nil {
		r.ring()
		return
	}
	// A full socket buffer holds wakes enough; otherwise the link is at its end.
	l.raw.Control(func(fd uintptr) {
		unix.SendmsgN(int(fd), []byte{frameWake}, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	})
}

// Park sleeps until ready.
func (l *link) Park(ready func() bool) error {
	b := l.bell.Load()
	if b == nil && l.parks.Add(1) == bellAfter {
		b = l.giveBell()
	}
	for {
		if l.closed.Load() {
			return msg.ErrClosed
		}
		b = l.bell.Load()
		if b != nil && b.led.CompareAndSwap(false, true) {
			err := l.lead(b, ready)
			b.led.Store(false)
			l.gate.kick() // somebody else must wait on the bell now
			return err
		}
		done := false
		l.gate.park(func() bool {
			done = ready()
			if b = l.bell.Load(); b != nil && !b.led.Load() {
				return true
			}
			return done || l.closed.Load()
		})
		if done {
			return nil
		}
	}
}

// lead waits on the bell. A kick ends a wait by the deadline, which is taken back
// before anything is looked at: a kick after that ends the next wait.
func (l *link) lead(b *bell, ready func() bool) error {
	if b.look == nil {
		b.look = func(fd uintptr) bool {
			b.quiet(fd)
			l.gate.kick()
			return l.closed.Load() || b.ready()
		}
	}
	b.ready = ready
	for {
		err := b.raw.Read(b.look)
		if l.closed.Load() {
			return msg.ErrClosed
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			if err != nil {
				return msg.ErrClosed
			}
			return nil
		}
		b.file.SetReadDeadline(time.Time{})
	}
}

// giveBell makes a bell and gives the peer its other end. It does not wait: while the
// socket is full, or somebody else is sending, wakes go through it as before.
func (l *link) giveBell() *bell {
	if !l.sending.tryLock() {
		l.parks.Store(0) // another time
		return nil
	}
	defer l.sending.unlock()
	if l.closed.Load() {
		return nil
	}
	b, far, err := newBell()
	if err != nil {
		return nil // out of descriptors
	}
	defer unix.Close(far)
	if err := l.send(atOnce, []byte{frameBell}, unix.UnixRights(far)); err != nil {
		b.close()
		return nil
	}
	l.bell.Store(b)
	if l.closed.Load() { // by somebody who did not see the bell
		b.close()
	}
	l.gate.kick()
	return b
}

// atOnce is a context that waits for nothing.
var atOnce = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()
