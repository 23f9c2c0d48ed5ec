package inet

import (
	"fmt"
	"io"
	"sync"

	"hardtack/kernel/base/clocks"
)

// How many messages of netstack are logged in how many nanoseconds.
const (
	logBurst    = 10
	logInterval = 5e9
)

// logLimit passes messages of netstack on to the log. Packets cause them, so a stranger
// could write as much as he likes: what is too much is only counted.
type logLimit struct {
	to io.Writer // immutable

	mu    sync.Mutex
	since int64 // when the interval began, on the monotonic clock; guarded by mu
	n     int   // messages in it; guarded by mu
	lost  int   // those that were not passed on; guarded by mu
}

// Write is one message.
func (l *logLimit) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := clocks.Monotonic(); l.n == 0 || now-l.since >= logInterval {
		if l.lost > 0 {
			fmt.Fprintf(l.to, "net: %d messages suppressed\n", l.lost)
		}
		l.since, l.n, l.lost = now, 0, 0
	}
	if l.n++; l.n > logBurst {
		l.lost++
		return len(b), nil
	}
	return l.to.Write(b)
}
