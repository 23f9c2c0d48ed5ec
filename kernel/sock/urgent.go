package sock

import (
	"hardtack/abi/linux"
	"hardtack/kernel/uio"
)

// Urgent bytes (MSG_OOB) lie in the stream, each in a record of its own. The last one sent
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
