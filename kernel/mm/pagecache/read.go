package pagecache

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
)

// Reader is what an open file remembers of its reads; the zero value is a new one.
// Threads that share the file may change it at once: it is advice.
type Reader struct {
	next   atomic.Int64  // where the last read ended; one that begins there reads ahead
	ahead  atomic.Int32  // pages that were read ahead last
	until  atomic.Uint64 // page behind the last that was asked for in the background
	factor atomic.Int32  // from fadvise: 1 reads twice as far ahead, -1 not at all
}

// Advise is posix_fadvise's NORMAL, RANDOM or SEQUENTIAL.
func (r *Reader) Advise(advice uint32) {
	switch advice {
	case linux.POSIX_FADV_SEQUENTIAL:
		r.factor.Store(1)
	case linux.POSIX_FADV_RANDOM:
		r.factor.Store(-1)
	default:
		r.factor.Store(0)
	}
}

const (
	minAhead = 8  // pages; the first time
	maxAhead = 64 // 256 KiB
	// fillPages are read at once at most, around is what a page fault reads.
	fillPages = 2 * maxAhead
	around    = 16
)

// Read copies up to n bytes at off, which the file has, into v. It returns how many
// were copied; an error only if there were none.
func (f *File) Read(c *caller.Ctx, v *uio.Vec, r *Reader, off int64, n int) (done int, e linux.Errno) {
	if r.ahead.Load() != 0 {
		f.readAhead(r, off, n)
	}
	for n > 0 && e == 0 {
		at := int(off & pageMask)
		k := min(mem.PageSize-at, n)
		page := uint64(off) >> mem.PageShift
		fr, ok := f.lookup(page)
		if !ok {
			if c != nil && c.NoWait {
				e = linux.EAGAIN
				break
			}
			if fr, e = f.fill(page, r.want(off, at+n)); e != 0 {
				if e == linux.ENOMEM && done > 0 && caller.MemoryCame(c) {
					e = 0
					continue
				}
				break
			}
		}
		var m int
		m, e = v.CopyOut(fr.Bytes()[at : at+k])
		fr.Put()
		done += m
		off += int64(m)
		n -= m
		if caller.KilledAt(c, off) {
			break
		}
	}
	r.next.Store(off)
	if done > 0 {
		e = 0
	}
	return done, e
}

// want says how many pages are worth reading for a read of n bytes from the
// beginning of the page of off: what it needs, and more where reads are in order.
func (r *Reader) want(off int64, n int) int {
	pages := (n + pageMask) >> mem.PageShift
	factor := r.factor.Load()
	if off != r.next.Load() || factor < 0 {
		r.ahead.Store(0)
		r.until.Store(0)
		return min(pages, fillPages)
	}
	ahead := min(max(2*r.ahead.Load(), minAhead), maxAhead<<factor)
	r.ahead.Store(ahead)
	return min(max(pages, int(ahead)), fillPages)
}

// readAhead has a goroutine read what comes behind a read in order, when less than
// half of what was read ahead is left. It begins after the first miss.
func (f *File) readAhead(r *Reader, off int64, n int) {
	if off != r.next.Load() {
		return
	}
	ahead := uint64(r.ahead.Load())
	last := uint64(off+int64(n)-1) >> mem.PageShift
	from := max(r.until.Load(), last+1)
	if from-last > ahead/2 && from > last+1 {
		return
	}
	end := f.limit()
	if from >= end {
		return
	}
	if s := f.slot(from); s != nil && s.w.Load()&frameBits != 0 {
		r.until.Store(from + ahead) // it is in memory: most likely the rest is, too
		return
	}
	ahead = min(2*ahead, maxAhead<<max(r.factor.Load(), 0))
	r.ahead.Store(int32(ahead))
	r.until.Store(from + ahead)
	reader := wait.MyClock()
	go func() {
		me := wait.MyClock()
		before := me.Disk().Read
		f.Prefetch(from, min(from+ahead, end)-1)
		reader.NoteRead(me.Disk().Read - before)
	}()
}

// limit is the number of the file's pages.
func (f *File) limit() uint64 { return uint64(f.size.Load()+pageMask) >> mem.PageShift }

// batch is what a call that moves many pages needs.
type batch struct {
	slots [maxWrite]*slot
	pages [maxWrite][]byte
}

var batches = sync.Pool{New: func() any { return new(batch) }}

// fill returns page n with a reference, read from the store if it is not there, and
// has up to ahead pages from n on read along with it.
func (f *File) fill(n uint64, ahead int) (mem.Frame, linux.Errno) {
	for {
		if s := f.slot(n); s != nil {
			if fr, ok := s.get(); ok {
				return fr, 0
			}
			if s.w.Load()&busy != 0 {
				s.await(n)
				continue
			}
		}
		fr, e := f.read(n, ahead)
		if fr != 0 || e != 0 {
			return fr, e
		}
	}
}

// read fills absent pages from n on, up to the first that is there; 0 if that is n.
func (f *File) read(n uint64, ahead int) (mem.Frame, linux.Errno) {
	var frames [fillPages]mem.Frame
	want := min(uint64(max(ahead, 1)), max(f.limit(), n+1)-n, fillPages)
	got := allocate(frames[:want])
	if got == 0 {
		return 0, linux.ENOMEM
	}
	b := batches.Get().(*batch)
	defer batches.Put(b)
	f.gate.RLock()
	defer f.gate.RUnlock()
	if f.ended {
		mem.PutBatch(frames[:got])
		return 0, linux.EIO
	}
	count := f.enter(b, n, frames[:got])
	mem.PutBatch(frames[count:got])
	if count == 0 {
		return 0, 0
	}
	e := f.store.ReadPages(b.pages[:count], int64(n)<<mem.PageShift)
	if e != 0 && count > 1 { // whose fault?
		f.leave(b.slots[1:count], n+1)
		count = 1
		e = f.store.ReadPages(b.pages[:1], int64(n)<<mem.PageShift)
	}
	if e != 0 {
		f.leave(b.slots[:count], n)
		return 0, e
	}
	fr := frameOf(b.slots[0].w.Load())
	fr.Get()
	for i, s := range b.slots[:count] {
		if s.change(busy|waited, 0)&waited != 0 {
			wake(n + uint64(i))
		}
	}
	return fr, 0
}

// enter makes busy pages of absent ones from n on, up to the first that is there,
// with the frames, and returns how many.
func (f *File) enter(b *batch, n uint64, frames []mem.Frame) (i int) {
	f.mu.Lock()
	for ; i < len(frames); i++ {
		l := f.grow(n + uint64(i))
		s := &l.slots[(n+uint64(i))%leafPages]
		if s.w.Load()&frameBits != 0 {
			break
		}
		f.counted(l)
		s.w.Store(uint64(frames[i]) | busy | used)
		b.slots[i], b.pages[i] = s, frames[i].Bytes()
	}
	f.mu.Unlock()
	return i
}

// counted counts one more page of a leaf; mu is held.
func (f *File) counted(l *leaf) {
	l.count.Add(1)
	f.pages.Add(1)
	cache.pages.Add(1)
}

// discounted counts one less.
func (l *leaf) discounted() {
	cache.pages.Add(-1)
	l.file.pages.Add(-1)
	l.count.Add(-1)
}

// leave takes busy pages away that could not be filled.
func (f *File) leave(slots []*slot, n uint64) {
	for i, s := range slots {
		w := s.w.Swap(0)
		f.leaf(n + uint64(i)).discounted()
		frameOf(w).Put()
		if w&waited != 0 {
			wake(n + uint64(i))
		}
	}
}

// Cached returns a page that is in memory.
func (f *File) Cached(n uint64) (mem.Frame, bool) {
	if n >= f.limit() {
		return 0, false
	}
	return f.lookup(n)
}

// Page is a page fault in a mapping: see mem.Object. A page that is to be written is
// dirty from then on.
func (f *File) Page(n uint64, write bool) (mem.Frame, linux.Errno) {
	if n >= f.limit() {
		return 0, linux.EFAULT
	}
	if !write {
		if fr, ok := f.lookup(n); ok {
			return fr, 0
		}
		first := n &^ (around - 1)
		if s := f.slot(first); s == nil || s.w.Load()&frameBits == 0 {
			if fr, e := f.fill(first, around); e == 0 { // then n is most likely there
				fr.Put()
			}
		}
		return f.fill(n, int(first+around-n))
	}
	for tried := false; ; {
		fr, e := f.fill(n, 1)
		if e != 0 {
			return 0, e
		}
		fr.Put()
		if fr, e = f.expose(n); e == linux.ENOSPC && !tried {
			tried = true
			if f.store.MakeRoom() {
				continue
			}
		}
		if fr != 0 || e != 0 {
			if n := cache.nDirty.Load(); n > limit()/2 {
				wakeWriter()
				if n > limit() {
					f.writeSome(writeAtLeast)
				}
			}
			return fr, e
		}
	}
}

// expose makes a page dirty that a mapping is about to be able to write to; 0 if it
// has gone.
func (f *File) expose(n uint64) (mem.Frame, linux.Errno) {
	f.gate.RLock()
	defer f.gate.RUnlock()
	if n >= f.limit() {
		return 0, linux.EFAULT
	}
	l := f.leaf(n)
	if l == nil {
		return 0, 0
	}
	s := &l.slots[n%leafPages]
	w, ok := s.pin()
	if !ok {
		return 0, 0
	}
	r, set, e := f.reserve(n, w)
	if e != 0 {
		s.unpin()
		return 0, e
	}
	if e = f.store.Stored(); e != 0 {
		f.store.Unreserve(int64(r))
		s.unpin()
		return 0, e
	}
	fr := frameOf(w)
	fr.Get()
	if f.markDirty(l, n, r, shared|set) != 0 {
		wait.NoteWritten(mem.PageSize)
	}
	return fr, 0
}

// Punch is madvise MADV_REMOVE.
func (f *File) Punch(first, n uint64) linux.Errno { return f.store.Punch(first, n) }

// Mappings is the register of who maps the file.
func (f *File) Mappings() *mem.Mappings { return &f.maps }

// Prefetch reads the pages first … last that are absent. What fails is found out by
// who wants it.
func (f *File) Prefetch(first, last uint64) {
	for n := first; n <= last; {
		if s := f.slot(n); s != nil && s.w.Load()&frameBits != 0 {
			n++
			continue
		}
		fr, e := f.fill(n, int(min(last-n+1, fillPages)))
		if e != 0 {
			return
		}
		fr.Put()
		n++
	}
}
