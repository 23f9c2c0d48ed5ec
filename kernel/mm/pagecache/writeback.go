package pagecache

import (
	"math/bits"
	"slices"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/errseq"
	"hardtack/kernel/base/mem"
)

// maxWrite pages go to the store at once (1 MiB).
const maxWrite = 256

// WriteBack writes the dirty pages first … last and waits for that, and for those
// that somebody else is writing. What cannot be written is told by Errors too.
func (f *File) WriteBack(first, last uint64) (e linux.Errno) {
	if f.dirty.Load() == 0 && cacheIdle(f) {
		return 0
	}
	f.gate.RLock()
	defer f.gate.RUnlock()
	f.writing.Lock()
	defer f.writing.Unlock()
	return f.writeBack(first, last, 1<<62)
}

// writeSome writes back about n of the file's pages.
func (f *File) writeSome(n int) {
	f.gate.RLock()
	defer f.gate.RUnlock()
	f.writing.Lock()
	defer f.writing.Unlock()
	f.writeBack(0, ^uint64(0), n)
}

// cacheIdle reports whether nobody writes f back just now.
func cacheIdle(f *File) bool {
	if !f.writing.TryLock() {
		return false
	}
	f.writing.Unlock()
	return true
}

// writeBack is WriteBack with gate and writing held, for about most pages.
func (f *File) writeBack(first, last uint64, most int) (e linux.Errno) {
	began := clocks.Monotonic()
	leaves := f.take()
	b := batches.Get().(*batch)
	r := run{f: f, b: b}
	for _, l := range leaves {
		if r.total >= most {
			f.enlist(l)
			continue
		}
		set := l.dirty.Swap(0)
		kept := uint32(0)
		for ; set != 0; set &= set - 1 {
			i := uint64(bits.TrailingZeros32(set))
			n := l.base + i
			if n < first || n > last {
				kept |= 1 << i
				continue
			}
			if err := r.add(n, &l.slots[i]); err != 0 {
				e = err
			}
		}
		if kept != 0 {
			l.dirty.Or(kept)
			f.enlist(l)
		}
	}
	if err := r.flush(); err != 0 {
		e = err
	}
	batches.Put(b)
	if r.total < most {
		f.since.Store(began)
	}
	if f.dirty.Load() == 0 {
		cache.dirty.remove(f)
	}
	return e
}

// unlist empties the list of leaves with dirty pages.
func (f *File) unlist() {
	f.mu.Lock()
	for l := f.unclean; l != nil; {
		next := l.next
		l.next = nil
		l.listed.Store(false)
		l = next
	}
	f.unclean = nil
	f.mu.Unlock()
}

// take returns the leaves with dirty pages in order, and empties the list.
func (f *File) take() (leaves []*leaf) {
	f.mu.Lock()
	for l := f.unclean; l != nil; {
		next := l.next
		l.next = nil
		l.listed.Store(false)
		leaves = append(leaves, l)
		l = next
	}
	f.unclean = nil
	f.mu.Unlock()
	slices.SortFunc(leaves, func(a, b *leaf) int {
		if a.base < b.base {
			return -1
		}
		return 1
	})
	return leaves
}

// run is neighbouring pages on their way to the store.
type run struct {
	f        *File
	b        *batch
	first    uint64 // page
	n        int
	reserved int64
	exposed  bool // some space may store to one of them
	total    int  // pages so far
}

// add begins the writing of a page if it is dirty.
func (r *run) add(n uint64, s *slot) (e linux.Errno) {
	if r.n == maxWrite || r.n > 0 && n != r.first+uint64(r.n) {
		e = r.flush()
	}
	for {
		w := s.w.Load()
		if w&dirty == 0 {
			return e
		}
		if s.w.CompareAndSwap(w, w&^(dirty|shared|reservedMask)|writing) {
			r.reserved += int64(w & reservedMask >> reservedShift)
			r.exposed = r.exposed || w&shared != 0
			break
		}
	}
	cache.nDirty.Add(-1)
	r.f.dirty.Add(-1)
	if r.n == 0 {
		r.first = n
	}
	r.b.slots[r.n] = s
	r.n++
	r.total++
	return e
}

// flush writes what was added.
func (r *run) flush() (e linux.Errno) {
	if r.n == 0 {
		return 0
	}
	f, b := r.f, r.b
	// Read after the pages were taken, so that it covers them: a page gets dirty
	// after the size has grown over it.
	size := f.size.Load()
	cache.nWriting.Add(int64(r.n))
	f.reserved.Add(-r.reserved)
	if r.exposed {
		f.maps.Protect(f, r.first, uint64(r.n))
	}
	off := int64(r.first) << mem.PageShift
	for i, s := range b.slots[:r.n] {
		b.pages[i] = frameOf(s.w.Load()).Bytes()
	}
	var tail mem.Frame
	if end := off + int64(r.n)<<mem.PageShift; end > size {
		tail = r.cutTail(size - (end - mem.PageSize))
	}
	e = f.store.WritePages(b.pages[:r.n], off, size, r.reserved)
	if tail != 0 {
		putTail(tail)
	}
	set := uint64(backed)
	if e != 0 {
		set = 0
		f.errors.Set(e)
	}
	for i, s := range b.slots[:r.n] {
		s.change(writing, set)
		b.pages[i] = nil
	}
	cache.nWriting.Add(-int64(r.n))
	r.n, r.reserved, r.exposed = 0, 0, false
	return e
}

// cutTail replaces the last page, of which the file has only some bytes, by a copy
// whose rest is zeros, as long as the blocks that the file needs.
func (r *run) cutTail(bytes int64) mem.Frame {
	fr, ok := mem.Alloc()
	if !ok { // it must be written for memory to become free
		spare.mu.Lock()
		fr = spare.frame
	}
	p := fr.Bytes()
	clear(p[copy(p, r.b.pages[r.n-1][:max(bytes, 0)]):])
	bs := r.f.blockSize
	r.b.pages[r.n-1] = p[:max((bytes+bs-1)/bs*bs, bs)]
	return fr
}

// spare is a frame for when there are no others.
var spare struct {
	mu    sync.Mutex
	frame mem.Frame // guarded by mu
}

// initSpare gets it while there is memory.
func initSpare() {
	spare.mu.Lock()
	if spare.frame == 0 {
		spare.frame, _ = mem.Alloc()
	}
	spare.mu.Unlock()
}

func putTail(fr mem.Frame) {
	if fr == spare.frame { // ours: nobody else has it
		spare.mu.Unlock()
	} else {
		fr.Put()
	}
}

// Errors tells of writes that failed.
func (f *File) Errors() *errseq.Seq { return &f.errors }
