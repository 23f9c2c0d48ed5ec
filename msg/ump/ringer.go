package ump

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// ringer is a duplicate of an eventfd for ringing only. It is no os.File: that
// would have Go's poller watch it, and wake this process at each ring.
type ringer struct {
	mu sync.RWMutex
	fd int // -1 once closed
}

var errBell = errors.New("ump: a bell that is no eventfd")

func newRinger(f *os.File) (r *ringer, err error) {
	r = new(ringer)
	err = withFD(f, func(fd int) (err error) {
		// Writing to anything else could block, or have effects.
		if what, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err != nil || what != "anon_inode:[eventfd]" {
			return errBell
		}
		if fl, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || fl&unix.O_NONBLOCK == 0 {
			return errBell
		}
		r.fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	return r, err
}

var one = []byte{1, 0, 0, 0, 0, 0, 0, 0}

// ring writes to the eventfd. A peer that has made it blocking since, and
// filled it, holds up the goroutine that sends to it, not the process: the
// scheduler is told of the call.
func (r *ringer) ring() {
	r.mu.RLock()
	if r.fd >= 0 {
		unix.Write(r.fd, one)
	}
	r.mu.RUnlock()
}

// file gives the descriptor up.
func (r *ringer) file() *os.File {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := os.NewFile(uintptr(r.fd), "bell")
	r.fd = -1
	return f
}

// close closes the duplicate; if somebody is just ringing it, later.
func (r *ringer) close() {
	if !r.mu.TryLock() {
		go func() {
			r.mu.Lock()
			r.shut()
		}()
		return
	}
	r.shut()
}

func (r *ringer) shut() {
	defer r.mu.Unlock()
	if r.fd >= 0 {
		unix.Close(r.fd)
		r.fd = -1
	}
}
