package machine

import (
	"io"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"hardtack/live"
)

// Running is a machine that runs, for whoever looks in while Run waits for its end.
type Running struct {
	PID   int             // QEMU's
	Ready <-chan struct{} // closed when process 1 runs
	Done  <-chan struct{} // closed when QEMU has ended
	Live  *live.Link      // to its kernel

	saveMu sync.Mutex // one snapshot at a time

	s   *session
	ctl *control
	end *ending
}

// Signal sends process 1 a signal by its number. SIGKILL ends the machine, as does any
// other before there is a process 1.
func (r *Running) Signal(n int) {
	if sig := syscall.Signal(n); sig == unix.SIGKILL || !r.ctl.isReady() {
		r.end.mu.Lock()
		r.end.sig = sig
		r.end.mu.Unlock()
		r.s.kill(unix.SIGKILL)
		return
	}
	go r.ctl.say("signal %d", n) // a guest that does not listen holds nobody up
}

// feed gives a link what the guest sends. One that sends more than is read loses it.
func feed(l *live.Link, r io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		l.Feed(buf[:n])
		if err != nil {
			l.End(io.EOF)
			return
		}
	}
}
