package sock

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
)

// How says how Receive reads.
type How struct {
	Limit int  // the sender's buffer
	Peek  bool // everything stays
	Skip  int  // with Peek: how many bytes lie before those wanted
	Creds bool // the receiver asks for credentials: bytes of two senders are not glued
	// Inline leaves urgent bytes among the others (SO_OOBINLINE).
	Inline bool
}

// Receive is Read for receivers that ask what came with the bytes. Several calls may fill
// one place: g goes on from call to call. Of a stream it takes what lies before a
// descriptor together with what the descriptor belongs to, as Linux does, and ends there.
func (f *Flow) Receive(v *uio.Vec, h How, g *Got) linux.Errno {
	f.mu.Lock()
	var e linux.Errno
	switch {
	case f.packet:
		*g, e = f.readPacket(v, h.Limit, h.Peek, h.Skip)
	case f.head == len(f.recs) && !h.Peek && !h.Creds:
		e = f.takeBytes(v, h.Limit, g)
	default:
		e = f.receive(v, h, g)
	}
	f.mu.Unlock()
	return e
}

// takeBytes reads a stream of mere bytes; called with mu held.
func (f *Flow) takeBytes(v *uio.Vec, limit int, g *Got) linux.Errno {
	g.Room = false
	n := f.unheld()
	if n == 0 {
		if f.eof {
			g.EOF = true
			return 0
		}
		return linux.EAGAIN
	}
	n, e := f.copyOut(v, f.r, min(n, v.Len()))
	if e != 0 && n == 0 {
		return e
	}
	g.N += n
	f.r += uint64(n)
	g.Room = f.writersDue(limit)
	return 0
}

// receive is the part of Receive for a stream with records; called with mu held.
func (f *Flow) receive(v *uio.Vec, h How, g *Got) linux.Errno {
	g.Room = false
	pos, at, touched := f.r, f.head, false
	if h.Peek {
		pos += uint64(h.Skip)
	}
	end := f.r + uint64(f.unheld())
	for pos < end {
		for at < len(f.recs) && f.recs[at].end <= pos {
			at++
		}
		if at < len(f.recs) && f.recs[at].urgent && pos == f.recs[at].start {
			skip, stop := f.atMark(&f.recs[at], h, g.N > 0)
			if stop {
				touched = true
				break
			}
			if skip {
				pos, at = f.pass(at, h.Peek)
				continue
			}
		}
		more, e := f.part(v, h, g, &pos, at, end)
		if e != 0 && g.N == 0 {
			return e
		}
		touched = true
		if !more || e != 0 || v.Len() == 0 {
			break
		}
		if !h.Peek {
			at = f.head
		}
	}
	if !h.Peek {
		g.Room = f.writersDue(h.Limit)
	}
	switch {
	case touched:
		return 0
	case f.eof:
		g.EOF = true
		return 0
	}
	return linux.EAGAIN
}

// part moves bytes from position pos on that belong together: those of the record at, or
// those before it. It reports whether more may follow. Called with mu held.
func (f *Flow) part(v *uio.Vec, h How, g *Got, pos *uint64, at int, end uint64) (more bool, e linux.Errno) {
	var anc *Ancillary
	inside := false
	if at < len(f.recs) {
		rec := &f.recs[at]
		if inside = *pos >= rec.start; inside {
			end, anc = rec.end, rec.anc
		} else {
			end = rec.start
		}
	}
	if h.Creds && g.Sender && !anc.same(g.Anc) {
		return false, 0
	}
	n := int(min(end-*pos, uint64(v.Len())))
	if n, e = f.copyOut(v, *pos, n); e != 0 && n == 0 {
		return false, e
	}
	*pos += uint64(n)
	g.N += n
	if !g.Sender || anc != nil && len(anc.Rights) > 0 {
		g.Anc, g.Sender = anc, true
	}
	if !h.Peek {
		f.r = *pos
		if inside {
			f.consumed(at)
		}
	}
	return anc == nil || len(anc.Rights) == 0, e
}

// consumed notes that bytes of the record at the head were read: the descriptors went
// with the first of them, the credentials stay with the rest.
func (f *Flow) consumed(at int) {
	rec := &f.recs[at]
	if f.r == rec.end {
		f.pop()
	} else if rec.anc != nil && len(rec.anc.Rights) > 0 {
		rec.anc = &Ancillary{Cred: rec.anc.Cred, HasCred: rec.anc.HasCred}
	}
}
