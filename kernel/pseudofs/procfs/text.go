package procfs

import (
	"bytes"
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

// text is an open file whose text is made as a whole. Each read makes it again
// with the rights of the reader, and goes on at the line where the last one
// ended, as Linux's seq_file goes on at a record. The descriptor keeps a little
// of what follows, for small reads, and gives it to nobody else.
type text struct {
	vfs.BaseOps
	n *node

	kept atomic.Int64 // bytes of ahead's array

	mu    sync.Mutex
	end   int64  // where the last read ended; guarded by mu
	at    place  // the same in lines; guarded by mu
	ahead []byte // what follows; guarded by mu
	last  bool   // nothing follows ahead; guarded by mu
	asker asker  // who made ahead; guarded by mu
}

// Holds adds the file with what it keeps of the text. It takes no lock: the text may be
// what asks.
func (t *text) Holds(s *ledger.Sum) {
	s.Add(ledger.Texts, ledger.Of[text]()+ledger.Size(t.kept.Load()))
	if p := t.n.x.p; p != nil {
		p.HoldsGone(s)
	}
}

// place is a place in a text that is made again: so many bytes into a line.
type place struct{ line, in int }

// asker is who reads. Credentials are never changed in place.
type asker struct {
	pid  int32
	cred *creds.Cred
}

// maxAhead is how much a descriptor keeps.
const maxAhead = 4096

// maxWrite bounds what is written to a file at a time.
const maxWrite = 4096

// find returns the place's offset in a text.
func (at place) find(b []byte) int {
	off := 0
	for range at.line {
		i := bytes.IndexByte(b[off:], '\n')
		if i < 0 {
			return len(b)
		}
		off += i + 1
	}
	return min(off+at.in, len(b))
}

// move goes over bytes of the text.
func (at *place) move(b []byte) {
	n := bytes.Count(b, []byte{'\n'})
	if n == 0 {
		at.in += len(b)
		return
	}
	at.line += n
	at.in = len(b) - 1 - bytes.LastIndexByte(b, '\n')
}

// Read gives a part of the text as it is now.
func (t *text) Read(c *caller.Ctx, _ *vfs.File, v *uio.Vec, off int64) (int, linux.Errno) {
	if t.n.e.read == nil {
		return 0, linux.EINVAL
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	who := asker{c.PID, c.Cred()}
	switch {
	case off != t.end || off == 0:
		t.forget()
		t.last = false
	case len(t.ahead) == 0:
	case who != t.asker:
		t.forget()
		t.last = false
	default:
		n, e := t.give(v, t.ahead)
		if t.ahead = t.ahead[n:]; len(t.ahead) == 0 {
			t.forget()
		}
		return n, e
	}
	if t.last {
		return 0, 0
	}
	if !t.n.alive() {
		return 0, linux.ESRCH
	}
	x := t.n.x
	x.c = c
	b, e := t.n.e.read(&x)
	if e != 0 {
		return 0, e
	}
	if off != t.end || off == 0 {
		t.at = place{}
		t.at.move(b[:min(off, int64(len(b)))])
	}
	t.asker, t.end, t.last = who, off, true
	b = b[t.at.find(b):]
	n, e := t.give(v, b)
	t.keep(b[n:])
	return n, e
}

// give copies the beginning of b out and moves on.
func (t *text) give(v *uio.Vec, b []byte) (int, linux.Errno) {
	n, e := v.CopyOut(b)
	t.at.move(b[:n])
	t.end += int64(n)
	if n > 0 {
		e = 0
	}
	return n, e
}

// forget drops what is kept.
func (t *text) forget() {
	t.ahead = nil
	t.kept.Store(0)
}

// keep remembers what follows, as much of it as the file may keep: whole lines,
// so that the next piece begins with one.
func (t *text) keep(b []byte) {
	t.forget()
	if most := max(t.n.e.ahead, maxAhead); len(b) > most {
		t.last = false
		b = b[:most]
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			b = b[:i+1]
		}
	}
	if len(b) > 0 {
		t.ahead = bytes.Clone(b)
		t.kept.Store(int64(cap(t.ahead)))
	}
}

// Write hands a whole write to the file.
func (t *text) Write(c *caller.Ctx, _ *vfs.File, v *uio.Vec, off int64) (int, linux.Errno) {
	if t.n.e.write == nil {
		return 0, linux.EACCES
	}
	if t.n.e.admin && !c.Cred().Has(creds.CapSysAdmin) {
		return 0, linux.EPERM
	}
	n := v.Len()
	if n > maxWrite || t.n.e.whole && off != 0 {
		return 0, linux.EINVAL
	}
	b := make([]byte, n)
	if _, e := v.CopyIn(b); e != 0 {
		return 0, e
	}
	x := t.n.x
	x.c, x.at = c, off
	if e := t.n.e.write(&x, b); e != 0 {
		return 0, e
	}
	return n, 0
}

// never is the queue of files that can be polled and are always ready.
var never wait.Queue

// Queue is for epoll, which takes the files that are of no process only.
func (t *text) Queue(*vfs.File) *wait.Queue {
	if t.n.x.p != nil {
		return nil
	}
	return &never
}

// Seek moves; the end is not known before the text is made.
func (t *text) Seek(_ *caller.Ctx, f *vfs.File, off int64, whence int) (int64, linux.Errno) {
	return t.n.e.seek(f, off, whence)
}

// seek is lseek of a text. Most have no end to count from; where Linux counts from
// the size of the inode, that is 0.
func (e *entry) seek(f *vfs.File, off int64, whence int) (int64, linux.Errno) {
	if e.sized {
		return vfs.SeekSized(f, off, whence, 0, vfs.SmallMax)
	}
	switch whence {
	case linux.SEEK_SET:
	case linux.SEEK_CUR:
		off += f.Pos
	default:
		return 0, linux.EINVAL
	}
	if off < 0 {
		return 0, linux.EINVAL
	}
	f.Pos = off
	return off, 0
}
