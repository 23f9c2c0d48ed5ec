package sock

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
)

// Urgent bytes (MSG_OOB) are in the stream, each in a record of its own. The last one sent
// is the mark, as long as it was neither read nor passed: a read stops before it, and the
// next one passes it, for it is read apart. Earlier ones have become ordinary bytes.

// WriteUrgent is Write of bytes whose last one is urgent.
func (f *Flow) WriteUrgent(v *uio.Vec, limit int, anc *Ancillary) (int, linux.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = 0
	n, e := f.write(v, limit, anc)
	if e != 0 || n == 0 || v.Len() > 0 {
		return n, e
	}
	if anc != nil {
		last := &f.recs[len(f.recs)-1]
		if last.end--; last.start < last.end {
			anc = anc.Rest()
		} else {
			f.recs = f.recs[:len(f.recs)-1]
		}
	}
	if last := len(f.recs) - 1; last >= f.head && f.recs[last].plain() {
		f.recs[last] = record{} // the byte before has become an ordinary one
		f.recs = f.recs[:last]
	}
	f.push(record{start: f.w - 1, end: f.w, anc: anc, urgent: true})
	f.mark = f.w
	return n, 0
}

// atMark says what a read does that has come to an urgent byte: it may pass it or stop.
// Called with mu held.
func (f *Flow) atMark(rec *record, h How, some bool) (skip, stop bool) {
	live := rec.end == f.mark
	switch {
	case !live && !rec.taken:
		return false, false
	case some:
		return false, true
	case live && !h.Peek:
		f.mark = 0
	}
	return rec.taken || !h.Inline, false
}

// pass goes on behind an urgent byte; called with mu held.
func (f *Flow) pass(at int, peek bool) (pos uint64, next int) {
	pos = f.recs[at].end
	if peek {
		return pos, at + 1
	}
	f.r = pos
	f.pop()
	return pos, f.head
}

// ReadUrgent reads the urgent byte: EINVAL if there is none.
func (f *Flow) ReadUrgent(v *uio.Vec, peek bool) (n int, e linux.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := f.head; f.mark != 0 && i < len(f.recs); i++ {
		rec := &f.recs[i]
		if rec.end != f.mark {
			continue
		}
		if n, e = f.copyOut(v, rec.start, min(1, v.Len())); e != 0 {
			return 0, e
		}
		if !peek {
			f.mark, rec.taken = 0, true
		}
		return 1, 0
	}
	return 0, linux.EINVAL
}

// Urgent reports whether an urgent byte waits, and whether it is the next one to be read.
func (f *Flow) Urgent() (waits, next bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mark != 0, f.mark != 0 && f.r+1 == f.mark
}

// plain reports whether only the mark made the record's byte special.
func (r *record) plain() bool { return r.urgent && !r.taken && r.anc == nil }

// AtMark reports whether the next byte is, or was, urgent (SIOCATMARK of TCP).
func (f *Flow) AtMark() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.atMarkNow()
}

// atMarkNow is AtMark with mu held.
func (f *Flow) atMarkNow() bool {
	for i := f.head; i < len(f.recs); i++ {
		if rec := &f.recs[i]; rec.end > f.r {
			return rec.urgent && rec.start == f.r && (rec.taken || rec.end == f.mark)
		}
	}
	return false
}

// ReadableAtLeast reports whether a read of a stream finds as many bytes as SO_RCVLOWAT
// says, not counting an urgent one that is next, or the end. Urgent says whether an urgent
// byte waits.
func (f *Flow) ReadableAtLeast(least int, inline bool) (now, urgent bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !inline && f.atMarkNow() {
		least++
	}
	return f.unheld() >= least || f.eof, f.mark != 0
}

// Passed returns how many bytes were ever written and how many of them were read.
func (f *Flow) Passed() (written, read uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.w, f.r
}
