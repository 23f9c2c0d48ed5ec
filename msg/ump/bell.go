package ump

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

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

// bell is an eventfd on which this end waits. Its counter is never read: the
// poller reports every write, since it watches for edges.
type bell struct {
	file  *os.File
	raw   syscall.RawConn
	self  *ringer
	led   atomic.Bool // one goroutine waits on the bell; it kicks the others
	ready func() bool // of that goroutine
	look  func(uintptr) bool
}

// bellAfter is how often an end must have slept to be given a bell.
const bellAfter = 4

func newBell() (*bell, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return openBell(os.NewFile(uintptr(fd), "bell"))
}

func openBell(f *os.File) (*bell, error) {
	if err := withFD(f, func(fd int) error { return unix.SetNonblock(fd, true) }); err != nil {
		return nil, err
	}
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, err
	}
	self, err := newRinger(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &bell{file: f, raw: raw, self: self}, nil
}

func (b *bell) close() {
	b.file.Close()
	b.self.close()
}

// Kick makes this end's Parks look again.
func (l *link) Kick() {
	l.gate.kick()
	if b := l.bell.Load(); b != nil {
		b.self.ring()
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

// lead waits on the bell.
func (l *link) lead(b *bell, ready func() bool) error {
	if b.look == nil {
		b.look = func(uintptr) bool {
			l.gate.kick()
			return l.closed.Load() || b.ready()
		}
	}
	b.ready = ready
	if err := b.raw.Read(b.look); err != nil || l.closed.Load() {
		return msg.ErrClosed
	}
	return nil
}

// giveBell makes a bell and gives the peer a duplicate.
func (l *link) giveBell() *bell {
	b, err := newBell()
	if err != nil {
		return nil // out of descriptors; wakes go through the socket
	}
	l.sending.Lock()
	defer l.sending.Unlock()
	if l.closed.Load() {
		b.close()
		return nil
	}
	err = withFD(b.file, func(fd int) error {
		return l.send(context.Background(), []byte{frameBell}, unix.UnixRights(fd))
	})
	if err != nil {
		b.close()
		return nil
	}
	l.bell.Store(b)
	l.gate.kick()
	return b
}
