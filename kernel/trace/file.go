package trace

import (
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

// file is an open /proc/hardtack/trace.
type file struct {
	vfs.BaseOps
	s *session
}

// Open begins a session; EBUSY while there is another.
func Open(c *caller.Ctx) (vfs.Ops, linux.Errno) {
	s, e := start(c.PID)
	if e != 0 {
		return nil, e
	}
	return &file{s: s}, 0
}

// Holds adds what the session keeps.
func (f *file) Holds(s *ledger.Sum) {
	s.Add(ledger.Texts, ledger.Of[session]()+ledger.Size(ringSize))
}

// Read returns what has been shown since the last read, and waits for some. It returns 0 when
// the last traced process has ended.
func (f *file) Read(c *caller.Ctx, of *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	s := f.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.n == 0 {
		if s.ended || v.Len() == 0 {
			return 0, 0
		}
		if of.NonBlock() {
			return 0, linux.EAGAIN
		}
		c.Arm()
		s.queue.Add(&c.Entry, &c.Sleeper, wait.In)
		s.mu.Unlock()
		r := c.Sleep(wait.NoDeadline)
		s.queue.Remove(&c.Entry)
		s.mu.Lock()
		if r == wait.Interrupted && s.n == 0 {
			return 0, linux.ERESTARTSYS
		}
	}
	return s.take(v)
}

// take moves bytes to the reader through a copy of a piece: memory of the reader may be slow,
// and traced threads want the lock meanwhile. mu is held.
func (s *session) take(v *uio.Vec) (total int, e linux.Errno) {
	var piece [512]byte
	for s.n > 0 && v.Len() > 0 && e == 0 {
		b := piece[:min(len(piece), s.n, v.Len())]
		if n := copy(b, s.ring[s.first:]); n < len(b) {
			copy(b[n:], s.ring)
		}
		s.first = (s.first + len(b)) % len(s.ring)
		s.n -= len(b)
		s.mu.Unlock()
		var n int
		n, e = v.CopyOut(b)
		total += n
		s.mu.Lock()
	}
	if total > 0 {
		e = 0
	}
	return total, e
}

// Write takes commands, a line each. Those before a wrong one have been carried out.
func (f *file) Write(_ *caller.Ctx, _ *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	const most = 4096
	n := v.Len()
	if n > most {
		return 0, linux.EINVAL
	}
	b := make([]byte, n)
	if _, e := v.CopyIn(b); e != 0 {
		return 0, e
	}
	for row := range strings.Lines(string(b)) {
		if e := f.s.command(row); e != 0 {
			return 0, e
		}
	}
	return n, 0
}

// Ready reports that there is something to read.
func (f *file) Ready(*vfs.File) wait.Events {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	r := wait.Out | wait.WrNorm
	if f.s.n > 0 || f.s.ended {
		r |= wait.In | wait.RdNorm
	}
	if f.s.ended {
		r |= wait.Hup
	}
	return r
}

// Queue is where lines are announced.
func (f *file) Queue(*vfs.File) *wait.Queue { return &f.s.queue }

// Release ends the session.
func (f *file) Release(*vfs.File) { f.s.stop() }
