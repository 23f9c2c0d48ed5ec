// Program events tests pipes, poll, select, epoll, eventfd, timerfd and
// signalfd.
package main

import (
	"time"

	"hardtack/test/guest/gt"

	"golang.org/x/sys/unix"
)

func main() {
	gt.Main(
		gt.Test{Name: "pipe", Run: pipe},
		gt.Test{Name: "pipe capacity", Run: pipeCapacity},
		gt.Test{Name: "pipe blocking", Run: pipeBlocking},
		gt.Test{Name: "pipe many writers", Run: pipeWriters},
		gt.Test{Name: "fifo", Run: fifo},
		gt.Test{Name: "splice and tee", Run: splice},
		gt.Test{Name: "poll", Run: poll},
		gt.Test{Name: "select", Run: sel},
		gt.Test{Name: "eventfd", Run: eventfd},
		gt.Test{Name: "timerfd", Run: timerfd},
		gt.Test{Name: "signalfd", Run: signalfd},
		gt.Test{Name: "epoll level", Run: epollLevel},
		gt.Test{Name: "epoll edge", Run: epollEdge},
		gt.Test{Name: "epoll oneshot", Run: epollOneshot},
		gt.Test{Name: "epoll exclusive", Run: epollExclusive},
		gt.Test{Name: "epoll errors", Run: epollErrors},
		gt.Test{Name: "epoll nested", Run: epollNested},
		gt.Test{Name: "epoll and close", Run: epollClose},
		gt.Test{Name: "epoll wakes a waiter", Run: epollWake},
		gt.Test{Name: "epoll many", Run: epollMany},
	)
}

// newPipe returns the ends of a pipe made with flags.
func newPipe(t *gt.T, flags int) (r, w int) {
	p := make([]int, 2)
	t.Require("pipe2", unix.Pipe2(p, flags))
	return p[0], p[1]
}

// events names the bits of poll and epoll, which are the same.
func events(bits uint32) string {
	names := []struct {
		bit  uint32
		name string
	}{{unix.POLLIN, "IN"}, {unix.POLLPRI, "PRI"}, {unix.POLLOUT, "OUT"}, {unix.POLLERR, "ERR"}, {unix.POLLHUP, "HUP"},
		{unix.POLLNVAL, "NVAL"}, {0x40, "RDNORM"}, {0x100, "WRNORM"}, {unix.POLLRDHUP, "RDHUP"}}
	s := ""
	for _, n := range names {
		if bits&n.bit != 0 {
			s += " " + n.name
			bits &^= n.bit
		}
	}
	if bits != 0 {
		s += " more"
	}
	if s == "" {
		return "none"
	}
	return s[1:]
}

// took says whether a wait lasted about as long as it should; the upper bound
// is wide, since the machine may be busy.
func took(began time.Time, low time.Duration) bool {
	d := time.Since(began)
	return d >= low && d < low+5*time.Second
}
