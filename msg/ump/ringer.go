package ump

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// ringer is the end of a bell with which it is rung. It is no os.File: that would have
// Go's poller watch it.
type ringer struct {
	mu sync.RWMutex
	fd int // -1 once closed
}

var errBell = errors.New("ump: a bell that is no pair of sockets")

// checkPair checks that a descriptor is a Unix socket of bytes, connected, of which
// neither end has a name, as only socketpair(2) makes them: a byte sent there can have
// no effect on anybody but the peer.
func checkPair(fd int) error {
	for _, want := range [][2]int{{unix.SO_DOMAIN, unix.AF_UNIX}, {unix.SO_TYPE, unix.SOCK_STREAM}, {unix.SO_ACCEPTCONN, 0}} {
		if v, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, want[0]); err != nil || v != want[1] {
			return errBell
		}
	}
	for _, name := range []func(int) (unix.Sockaddr, error){unix.Getsockname, unix.Getpeername} {
		sa, err := name(fd)
		// "@" is how package unix shows that there is no name.
		if un, ok := sa.(*unix.SockaddrUnix); err != nil || !ok || un.Name != "" && un.Name != "@" {
			return errBell
		}
	}
	return nil
}

func newRinger(f *os.File) (r *ringer, err error) {
	r = new(ringer)
	err = withFD(f, func(fd int) (err error) {
		if err := checkPair(fd); err != nil {
			return err
		}
		r.fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	return r, err
}

var one = []byte{1}

// ring rings the bell. It never waits: a full bell is rung already.
func (r *ringer) ring() {
	r.mu.RLock()
	if r.fd >= 0 {
		unix.SendmsgN(r.fd, one, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
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
