package devfs

import (
	"strconv"
	"strings"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

const (
	// LogSize bounds the log: the texts of its messages and logCost for each.
	LogSize = 1 << 17
	logCost = 64
	// maxMessage is the longest message that a program can write.
	maxMessage = 1024 - 32
)

// message is a line of the log. Its number is its place.
type message struct {
	at   int64  // nanoseconds since boot
	prio uint32 // facility and level, as syslog(3) has them
	text string
	// open: it does not end its line. It shows when the next one begins, as on Linux.
	open bool
}

// Log is what /dev/kmsg and syslog(2) show: what programs write to /dev/kmsg, and the
// kernel's first line. The oldest messages go when it is full.
//
// Lock order: mu, then the queue's.
type Log struct {
	mu      sync.Mutex
	list    []message // guarded by mu, as all below
	first   uint64    // number of list[0]
	bytes   int
	cleared uint64 // where READ_ALL and SEEK_DATA begin
	unread  uint64 // what syslog's READ has not returned yet
	partly  int    // bytes of it that READ has returned
	queue   wait.Queue
}

// Messages is the log of this machine.
var Messages Log

// Add appends a message, which may end its line.
func (l *Log) Add(prio uint32, text string) {
	text, ended := strings.CutSuffix(text, "\n")
	l.mu.Lock()
	l.list = append(l.list, message{at: clocks.Monotonic(), prio: prio, text: text, open: !ended})
	l.bytes += logCost + len(text)
	n := 0
	for ; l.bytes > LogSize; n++ {
		l.bytes -= logCost + len(l.list[n].text)
		l.list[n] = message{}
	}
	l.list = l.list[n:]
	l.first += uint64(n)
	l.mu.Unlock()
	l.queue.Notify(wait.In | wait.RdNorm)
}

// end is the number of the first message that does not show; mu is held.
func (l *Log) end() uint64 {
	n := len(l.list)
	if n > 0 && l.list[n-1].open {
		n--
	}
	return l.first + uint64(n)
}

// openKmsg opens the log. Whoever may read the node may still not read the log.
func openKmsg(c *caller.Ctx, flags uint32) (vfs.Ops, linux.Errno) {
	if flags&linux.O_ACCMODE != linux.O_WRONLY && !MayRead(c.Cred()) {
		return nil, linux.EPERM
	}
	Messages.mu.Lock()
	defer Messages.mu.Unlock()
	return &kmsg{log: &Messages, next: Messages.first}, 0
}

// MayReadLog reports the right to what not everybody may do with the log.
func MayReadLog(cred *creds.Cred) bool {
	return cred.Has(creds.CapSyslog) || cred.Has(creds.CapSysAdmin)
}

// kmsg is an open /dev/kmsg: a place in the log.
type kmsg struct {
	vfs.BaseOps
	log  *Log
	next uint64 // guarded by log.mu
}

// Read returns one message; EPIPE if some were lost since the last one.
func (k *kmsg) Read(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	l := k.log
	l.mu.Lock()
	for k.next >= l.end() {
		if f.NonBlock() {
			l.mu.Unlock()
			return 0, linux.EAGAIN
		}
		c.Arm()
		l.queue.Add(&c.Entry, &c.Sleeper, wait.In)
		l.mu.Unlock()
		r := c.Sleep(wait.NoDeadline)
		l.queue.Remove(&c.Entry)
		l.mu.Lock()
		if r == wait.Interrupted && k.next >= l.end() {
			l.mu.Unlock()
			return 0, linux.ERESTARTSYS
		}
	}
	if k.next < l.first {
		k.next = l.first
		l.mu.Unlock()
		return 0, linux.EPIPE
	}
	b := l.list[k.next-l.first].record(k.next)
	k.next++
	l.mu.Unlock()
	if len(b) > v.Len() {
		return 0, linux.EINVAL
	}
	return v.CopyOut(b)
}

// record is the form of /dev/kmsg.
func (m *message) record(number uint64) []byte {
	b := strconv.AppendUint(nil, uint64(m.prio), 10)
	b = strconv.AppendUint(append(b, ','), number, 10)
	b = strconv.AppendInt(append(b, ','), m.at/1000, 10)
	b = append(b, ",-;"...)
	for i := range len(m.text) {
		if c := m.text[i]; c < ' ' || c >= 127 || c == '\\' {
			const hex = "0123456789abcdef"
			b = append(b, '\\', 'x', hex[c>>4], hex[c&15])
		} else {
			b = append(b, c)
		}
	}
	return append(b, '\n')
}

// Write adds a message, which may begin with its priority: <6>text.
func (k *kmsg) Write(_ *caller.Ctx, _ *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	n := v.Len()
	if n > maxMessage {
		return 0, linux.EINVAL
	}
	b := make([]byte, n)
	if _, e := v.CopyIn(b); e != 0 {
		return 0, e
	}
	prio, text := priority(string(b))
	k.log.Add(prio, text)
	return n, 0
}

// priority takes the priority off a line. What does not say that it is from another part
// of the system is from user programs (1), and a warning (4) unless it says otherwise.
func priority(line string) (prio uint32, text string) {
	const user, warning = 1 << 3, 4
	end := 1
	for end < len(line) && line[end] >= '0' && line[end] <= '9' {
		end++
	}
	if line == "" || line[0] != '<' || end == len(line) || line[end] != '>' {
		return user | warning, line
	}
	n := uint32(0)
	for _, c := range line[1:end] {
		n = n*10 + uint32(c-'0')
	}
	if n &= 0xff<<3 | 7; n&^7 == 0 {
		n |= user
	}
	return n, line[end+1:]
}

// Seek goes to the first message, to the first since the log was cleared, or behind the
// last.
func (k *kmsg) Seek(_ *caller.Ctx, _ *vfs.File, off int64, whence int) (int64, linux.Errno) {
	if off != 0 {
		return 0, linux.ESPIPE
	}
	k.log.mu.Lock()
	defer k.log.mu.Unlock()
	switch whence {
	case linux.SEEK_SET:
		k.next = k.log.first
	case linux.SEEK_DATA:
		k.next = k.log.cleared
	case linux.SEEK_END:
		k.next = k.log.end()
	default:
		return 0, linux.EINVAL
	}
	return 0, 0
}

// Ready reports a message, and with Err and Pri that some were lost.
func (k *kmsg) Ready(*vfs.File) wait.Events {
	k.log.mu.Lock()
	defer k.log.mu.Unlock()
	switch {
	case k.next >= k.log.end():
		return 0
	case k.next < k.log.first:
		return wait.In | wait.RdNorm | wait.Err | wait.Pri
	}
	return wait.In | wait.RdNorm
}

// Queue is where messages are announced.
func (k *kmsg) Queue(*vfs.File) *wait.Queue { return &k.log.queue }
