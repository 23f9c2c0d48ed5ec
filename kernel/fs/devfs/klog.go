package devfs

import (
	"fmt"
	"slices"
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/wait"
)

// lines is the form of syslog(2): each line of the message with priority and time.
func (m *message) lines() string {
	var b strings.Builder
	for line := range strings.SplitSeq(m.text, "\n") {
		fmt.Fprintf(&b, "<%d>[%5d.%06d] %s\n", m.prio, m.at/1e9, m.at/1000%1e6, line)
	}
	return b.String()
}

// Last returns the last messages since the log was cleared, as many as n bytes take; with
// clear they are not shown again.
func (l *Log) Last(n int, clear bool) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := int(max(l.cleared, l.first) - l.first)
	at := int(l.end() - l.first)
	var parts []string
	for at > from {
		s := l.list[at-1].lines()
		if n -= len(s); n < 0 {
			break
		}
		parts = append(parts, s)
		at--
	}
	if clear {
		l.cleared = l.end()
	}
	slices.Reverse(parts)
	return strings.Join(parts, "")
}

// Entry is a message of the log.
type Entry struct {
	Number   uint64
	At       int64 // nanoseconds since boot
	Priority uint32
	Text     string
}

// Entry returns the first message from this number on that is there; false if none is.
func (l *Log) Entry(from uint64) (e Entry, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := max(from, l.first)
	if n >= l.end() {
		return e, false
	}
	m := &l.list[n-l.first]
	return Entry{n, m.at, m.prio, m.text}, true
}

// Bounds are the numbers of the oldest message and of the next that will come.
func (l *Log) Bounds() (oldest, next uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first, l.end()
}

// Queue is where messages are announced.
func (l *Log) Queue() *wait.Queue { return &l.queue }

// MayRead reports the right to read the log.
func MayRead(cred *creds.Cred) bool { return settings.DmesgRestrict.Get() == 0 || MayReadLog(cred) }

// Clear hides what the log has so far.
func (l *Log) Clear() {
	l.mu.Lock()
	l.cleared = l.end()
	l.mu.Unlock()
}

// Unread is how many bytes Next would return.
func (l *Log) Unread() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle()
	for i := l.unread; i < l.end(); i++ {
		n += len(l.list[i-l.first].lines())
	}
	return n - l.partly
}

// settle moves the place of Next to a message that is still there.
func (l *Log) settle() {
	if l.unread < l.first {
		l.unread, l.partly = l.first, 0
	}
}

// Next returns up to n bytes that it has returned to nobody, and waits for some.
func (l *Log) Next(c *caller.Ctx, n int) (string, linux.Errno) {
	l.queue.Add(&c.Entry, &c.Sleeper, wait.In)
	defer l.queue.Remove(&c.Entry)
	for {
		c.Arm()
		if text, some := l.take(n); some {
			return text, 0
		}
		if c.Sleep(wait.NoDeadline) == wait.Interrupted {
			if text, some := l.take(n); some {
				return text, 0
			}
			return "", linux.ERESTARTSYS
		}
	}
}

// take returns what Next does, if there is some.
func (l *Log) take(n int) (text string, some bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle() // first: the log may hold nothing but a message that shows later
	if l.unread >= l.end() {
		return "", false
	}
	var b strings.Builder
	for n > 0 && l.unread < l.end() {
		s := l.list[l.unread-l.first].lines()[l.partly:]
		if len(s) > n {
			if b.Len() == 0 { // what does not fit whole is cut only at the beginning
				b.WriteString(s[:n])
				l.partly += n
			}
			break
		}
		b.WriteString(s)
		n -= len(s)
		l.unread, l.partly = l.unread+1, 0
	}
	return b.String(), true
}
