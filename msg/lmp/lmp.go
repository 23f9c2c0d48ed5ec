// Package lmp is how two processes on one processor of a Hardtack hand it to one
// another, after Barrelfish's local message passing: the lower half of a link of
// package ump whose ends wait on the same processor.
//
// Messages stay where UMP has them, in the rings that both have mapped: what was not
// acknowledged lies there to be sent again, bulk memory and descriptors go on as
// they are, and a message needs no copy by the kernel. What the kernel does is what
// the rings cannot: it runs the peer. An end that waits sleeps at a Place, a
// notification of its own, and the peer signals that instead of waking a futex. The
// nucleus knows both threads and goes from one to the other without a scheduler in
// between.
//
// An end gives its Place to the peer when it first finds that both wait on the same
// processor; which is looked at each time, so that a connection is LMP or UMP as its
// ends move. On other kernels there are no Places, and UMP's futex does the same,
// slower.
package lmp

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Kernel makes notifications: Hardtack's, or a test's. A notification is a
// descriptor that can be passed.
type Kernel interface {
	// Here reports whether this kernel has them.
	Here() bool
	// New makes one.
	New() (fd int, err error)
	// Signal sets it. It does not block.
	Signal(fd int) error
	// Wait sleeps until it is set, at most about d, and clears it.
	Wait(fd int, d time.Duration) error
}

var kernel atomic.Pointer[Kernel]

func init() { SetKernel(Hardtack{}) }

// SetKernel replaces the kernel that is asked; tests do.
func SetKernel(k Kernel) { kernel.Store(&k) }

// Here reports whether processes can hand the processor over.
func Here() bool { return (*kernel.Load()).Here() }

// Place is where an end sleeps: its own, or the peer's, which it only rouses.
type Place struct {
	mu sync.RWMutex
	fd int // -1 once closed; guarded by mu
}

// NewPlace makes a place of this end.
func NewPlace() (*Place, error) {
	fd, err := (*kernel.Load()).New()
	if err != nil {
		return nil, err
	}
	return &Place{fd: fd}, nil
}

// Open takes up a place from f, which stays the caller's.
func Open(f *os.File) (*Place, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	p := new(Place)
	cerr := raw.Control(func(fd uintptr) { p.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(cerr, err); err != nil {
		return nil, err
	}
	return p, nil
}

// Await sleeps until somebody rouses it or has since the last Await, at most about
// d. It belongs to one goroutine at a time.
func (p *Place) Await(d time.Duration) {
	p.mu.RLock()
	if p.fd >= 0 {
		(*kernel.Load()).Wait(p.fd, d) // whatever ends it, the caller looks again
	}
	p.mu.RUnlock()
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
	fd, err := unix.FcntlInt(uintptr(p.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "place"), nil
}

// Close ends Await and gives the place up.
func (p *Place) Close() {
	p.Rouse()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fd >= 0 {
		unix.Close(p.fd)
		p.fd = -1
	}
}
