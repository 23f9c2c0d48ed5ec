package ump

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Local message passing (LMP), after Barrelfish: how two processes on one processor of a
// Hardtack machine hand it to one another.
//
// Messages stay in the rings that both have mapped: what was not acknowledged is there to
// be sent again, bulk memory and descriptors go on as they are, and a message needs no
// copy by the kernel. The kernel does what the rings cannot: it runs the peer. An end that
// waits sleeps at a Place, a notification of its own, and the peer signals that instead of
// waking a futex. The nucleus knows both threads and goes from one to the other without a
// scheduler in between.
//
// An end gives its Place to the peer when it first finds that both wait on the same
// processor. It looks each time, so a connection is LMP or UMP as its ends move. On other
// kernels there are no Places; the futex does the same, slower.

// Kernel makes notifications: Hardtack's, or a test's. A notification is a
// descriptor that can be passed.
type Kernel interface {
	// Here reports whether this kernel has them, and that pays.
	Here() bool
	// New makes one.
	New() (fd int, err error)
	// Signal sets it. It does not block.
	Signal(fd int) error
	// Wait sleeps until it is set, at most about d or, if that is 0, without a limit,
	// and clears it.
	Wait(fd int, d time.Duration) error
}

// longestNap is how long Await sleeps at most, about. The nucleus goes from thread to
// thread only where it need not look at a clock, so that such a sleep has no limit of
// its own: the sweeper ends it.
const longestNap = 20 * time.Millisecond

var kernel atomic.Pointer[Kernel]

func init() { SetKernel(Hardtack{}) }

// SetKernel replaces the kernel that is asked; tests do.
func SetKernel(k Kernel) { kernel.Store(&k) }

// handsOver reports whether processes can hand the processor over.
func handsOver() bool { return (*kernel.Load()).Here() }

// Place is where an end sleeps: its own, or the peer's, which it only rouses.
type Place struct {
	mu sync.RWMutex
	fd int // -1 once closed; guarded by mu

	closing atomic.Bool
	sleeps  atomic.Uint32 // odd while Await sleeps without a limit
	seen    uint32        // sleeps, when the sweeper last looked; its own
}

// newPlace makes a place of this end.
func newPlace() (*Place, error) {
	fd, err := (*kernel.Load()).New()
	if err != nil {
		return nil, err
	}
	p := &Place{fd: fd}
	theSweeper.add(p)
	return p, nil
}

// openPlace takes up a place from f, which stays the caller's.
func openPlace(f *os.File) (*Place, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	p := &Place{fd: -1}
	cerr := raw.Control(func(fd uintptr) { p.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(cerr, err); err != nil {
		return nil, err
	}
	return p, nil
}

// Await sleeps until somebody rouses it or has since the last Await, at most about
// d, which is not more than longestNap. It belongs to one goroutine at a time.
func (p *Place) Await(d time.Duration) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	switch k := *kernel.Load(); {
	case p.closing.Load() || d <= 0: // one that comes later is roused by Close
	case d < longestNap:
		k.Wait(p.fd, d) // whatever ends it, the caller looks again
	default:
		p.sleeps.Add(1)
		theSweeper.start()
		k.Wait(p.fd, 0)
		p.sleeps.Add(1)
	}
}

// Rouse ends Await.
func (p *Place) Rouse() {
	p.mu.RLock()
	if p.fd >= 0 {
		(*kernel.Load()).Signal(p.fd) // who gave something else to signal will sleep on
	}
	p.mu.RUnlock()
}

// File is a duplicate of the place, to be passed.
func (p *Place) File() (*os.File, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.fd < 0 {
		return nil, os.ErrClosed
	}
	fd, err := unix.FcntlInt(uintptr(p.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "place"), nil
}

// Close ends Await and gives the place up.
func (p *Place) Close() {
	theSweeper.remove(p)
	p.closing.Store(true)
	p.Rouse()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fd >= 0 {
		unix.Close(p.fd)
		p.fd = -1
	}
}
