package cluster

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	abi "hardtack/abi/cluster"
	"hardtack/msg"
	"hardtack/msg/internal/stream"
)

const pageBytes = 4096

// waiting is how many closed links are mapped yet: nobody can know before the collector that
// neither owner of a connection is just using it. The kernel bounds what a cluster has mapped,
// so the collector is asked to look when there are many.
var (
	waiting atomic.Int32
	asked   atomic.Bool
)

const maxWaiting = 64

// ringLink is a link with rings, which both processes have mapped: msg.Shared.
type ringLink struct {
	*stream.Link
	bell   *os.File // to ring for the peer, and to hear of its rings
	raw    syscall.RawConn
	mem    []byte // unmapped when nobody can reach the link
	tx, rx []byte

	closed atomic.Bool
	naps   atomic.Bool // somebody may be in Await
	hears  sync.Once   // a goroutine waits for the peer's rings
	gate   gate
}

func newRings(k *stream.Link, f *os.File, pages int, dialled bool) (_ msg.Link, err error) {
	l := &ringLink{Link: k}
	defer func() {
		if err != nil {
			l.Close()
		}
	}()
	fd, err := number(f, abi.Rings, syscall.O_NONBLOCK|syscall.O_CLOEXEC)
	if err != nil {
		return nil, err
	}
	l.bell = os.NewFile(uintptr(fd), "rings")
	if l.raw, err = l.bell.SyscallConn(); err != nil {
		return nil, err
	}
	half := pages * pageBytes
	l.mem, err = syscall.Mmap(fd, 0, 2*half, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	runtime.AddCleanup(l, func(mem []byte) {
		syscall.Munmap(mem)
		waiting.Add(-1)
	}, l.mem)
	l.tx, l.rx = l.mem[:half:half], l.mem[half:]
	if !dialled {
		l.tx, l.rx = l.rx, l.tx
	}
	return l, nil
}

// Shared implements msg.Link.
func (l *ringLink) Shared() msg.Shared { return l }

// Close implements msg.Link.
func (l *ringLink) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	err := l.Link.Close()
	if l.bell != nil {
		l.bell.Close()
	}
	l.gate.kick()
	if l.mem != nil && waiting.Add(1) >= maxWaiting && !asked.Swap(true) {
		go func() {
			runtime.GC()
			asked.Store(false)
		}()
	}
	return err
}

// Pages implements msg.Shared.
func (l *ringLink) Pages() (tx, rx []byte) { return l.tx, l.rx }

// Wake implements msg.Shared. The kernel notes the ring and interrupts the peer's kernel.
func (l *ringLink) Wake() {
	l.raw.Control(ring) // an error: the end, of which Recv tells
}

// Kick implements msg.Shared.
func (l *ringLink) Kick() {
	l.gate.kick()
	if l.naps.Load() {
		l.raw.Control(rouse)
	}
}

// Hands implements msg.Handing: an end may wait in its kernel for the other's to wake it.
func (l *ringLink) Hands() bool { return true }

// Hand implements msg.Handing.
func (l *ringLink) Hand() bool {
	if !l.naps.Load() {
		l.naps.Store(true)
	}
	return !l.closed.Load()
}

// Rouse implements msg.Handing.
func (l *ringLink) Rouse() { l.Wake() }

// Await implements msg.Handing. The ring that it takes may be for who sleeps in Park.
func (l *ringLink) Await(d time.Duration) {
	if d > 0 {
		l.raw.Control(func(fd uintptr) { await(fd, d) })
		l.gate.kick()
	}
}

// Park implements msg.Shared.
func (l *ringLink) Park(ready func() bool) error {
	l.hears.Do(func() { go l.hear() })
	l.gate.park(func() bool { return ready() || l.closed.Load() })
	if l.closed.Load() {
		return msg.ErrClosed
	}
	return nil
}

// hear has the sleepers look at each ring of the peer's, until the end; who is about to wait in Await,
// too, for the ring may have been his.
func (l *ringLink) hear() {
	var b [1]byte
	l.raw.Read(func(fd uintptr) bool {
		for {
			switch n, err := syscall.Read(int(fd), b[:]); {
			case n > 0:
				l.Kick()
			case err == syscall.EAGAIN:
				return false
			case err != syscall.EINTR:
				return true // Recv tells of the end
			}
		}
	})
}

var fence atomic.Uint32

// Barrier implements msg.Shared. It does not reach the peer's threads.
func (l *ringLink) Barrier() { fence.Add(1) }

// Barriers implements msg.Shared.
func (l *ringLink) Barriers() bool { return false }

// Futex implements msg.Shared: the peer's futexes are another kernel's.
func (l *ringLink) Futex() bool { return false }

var errBulk = errors.New("msg/cluster: no messages of that size in rings")

// NewBulk implements msg.Shared.
func (l *ringLink) NewBulk(int) (msg.Region, *os.File, error) { return msg.Region{}, nil, errBulk }

// MapBulk implements msg.Shared.
func (l *ringLink) MapBulk(*os.File, int) (msg.Region, error) { return msg.Region{}, errBulk }

// MapSend implements msg.Shared.
func (l *ringLink) MapSend(*os.File, int) (msg.Region, error) { return msg.Region{}, errBulk }

// gate is where goroutines sleep until they are kicked; at most two do.
type gate struct {
	mu       sync.Mutex
	asleep   []chan struct{} // guarded by mu
	spare    []chan struct{} // guarded by mu
	sleepers atomic.Int32    // len(asleep)
}

func (g *gate) kick() {
	if g.sleepers.Load() == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.asleep {
		select {
		case c <- struct{}{}:
		default: // it has yet to look after an earlier kick
		}
	}
}

func (g *gate) park(ready func() bool) {
	wake := g.enter()
	for !ready() {
		<-wake
	}
	g.leave(wake)
}

func (g *gate) enter() (wake chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.spare); n > 0 {
		wake, g.spare = g.spare[n-1], g.spare[:n-1]
	} else {
		wake = make(chan struct{}, 1)
	}
	g.asleep = append(g.asleep, wake)
	g.sleepers.Add(1)
	return wake
}

func (g *gate) leave(wake chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, c := range g.asleep {
		if c == wake {
			g.asleep = append(g.asleep[:i], g.asleep[i+1:]...)
			g.sleepers.Add(-1)
			break
		}
	}
	select {
	case <-wake:
	default:
	}
	g.spare = append(g.spare, wake)
}
