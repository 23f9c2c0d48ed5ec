package pagecache

import (
	"sync"
	"sync/atomic"
	"time"

	"hardtack/kernel/base/mem"
)

// cache is what all files together have.
var cache struct {
	pages    atomic.Int64 // in memory
	nDirty   atomic.Int64
	nWriting atomic.Int64
	dirty    dirtyList
}

// Stats are the cache's sizes in pages.
type Stats struct{ Pages, Dirty, Writing int64 }

// Count returns them.
func Count() Stats {
	return Stats{cache.pages.Load(), max(cache.nDirty.Load(), 0), max(cache.nWriting.Load(), 0)}
}

// clock is a ring of all leaves in the order in which they came: what is not used
// between two passes of the hand is evicted.
var clock ring

type ring struct {
	mu   sync.Mutex
	hand *leaf // guarded by mu; the next to look at
	n    int   // guarded by mu
}

func (r *ring) add(l *leaf) {
	r.mu.Lock()
	l.ticking = true
	if r.hand == nil {
		l.newer, l.old = l, l
		r.hand = l
	} else { // behind the hand: it comes last
		l.newer, l.old = r.hand, r.hand.old
		l.old.newer = l
		r.hand.old = l
	}
	r.n++
	r.mu.Unlock()
}

func (r *ring) remove(l *leaf) {
	r.mu.Lock()
	if l.ticking {
		l.ticking = false
		r.n--
		if l.newer == l {
			r.hand = nil
		} else {
			l.newer.old, l.old.newer = l.old, l.newer
			if r.hand == l {
				r.hand = l.newer
			}
		}
		l.newer, l.old = nil, nil
	}
	r.mu.Unlock()
}

// next gives up to len(out) leaves and moves the hand.
func (r *ring) next(out []*leaf) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for ; n < len(out) && n < r.n; n++ {
		out[n] = r.hand
		r.hand = r.hand.newer
	}
	return n
}

// evict frees page i of a leaf if it is clean, nobody uses it, and it was not used
// since the last call. (So a reference that was taken between the look at the count
// and the swap shows in the word.)
func (l *leaf) evict(i int) bool {
	s := &l.slots[i]
	w := s.w.Load()
	if w&frameBits == 0 || w&(busy|dirty|writing|shared|pinMask|reservedMask) != 0 {
		return false
	}
	if w&used != 0 {
		s.w.CompareAndSwap(w, w&^used)
		return false
	}
	if frameOf(w).Refs() > 1 || !s.w.CompareAndSwap(w, 0) {
		return false // mapped, or somebody reads it
	}
	l.discounted()
	frameOf(w).Put()
	return true
}

// Reclaim frees up to n pages that are clean and not mapped, and returns how many.
func Reclaim(n int) int {
	var leaves [16]*leaf
	freed := 0
	clock.mu.Lock()
	turns := 2*clock.n + 1
	clock.mu.Unlock()
	for freed < n && turns > 0 {
		k := clock.next(leaves[:])
		if k == 0 {
			break
		}
		turns -= k
		for _, l := range leaves[:k] {
			for i := range l.slots {
				if l.evict(i) {
					freed++
				}
			}
			if l.count.Load() == 0 && l.file.mu.TryLock() {
				l.file.prune(l)
				l.file.mu.Unlock()
			}
		}
		clear(leaves[:k])
	}
	return freed
}

// allocate fills out with frames, as far as they go. Where all memory is used and
// nothing clean is left it waits for the goroutine that writes. The caller holds no
// lock of this package.
func allocate(out []mem.Frame) int {
	n := mem.AllocBatch(out)
	if mem.Spare() < lowWater() {
		wakeWriter()
	}
	for try := 0; n == 0 && try < 200 && cache.nDirty.Load()+cache.nWriting.Load() > 0; try++ {
		wakeWriter()
		mem.Stalled.Begin()
		time.Sleep(time.Millisecond)
		mem.Stalled.End()
		n = mem.AllocBatch(out)
	}
	return n
}

// lowWater is how many frames are kept free: below, the background goroutine makes
// room.
func lowWater() int { return min(max(mem.Total()/64, 256), 16384) }

// makeRoom evicts until there is memory again: first what is not mapped, then what
// is, which costs those who use it a fault.
func makeRoom() {
	for try := 0; try < 4; try++ {
		want := lowWater() - mem.Spare()
		if want <= 0 || cache.pages.Load() == 0 || Reclaim(want+lowWater()) >= want {
			return
		}
		unmap(want + lowWater())
	}
}

// unmap takes mapped pages that were not used lately out of the spaces that map
// them, n at least if there are as many: if they are not wanted back they are evicted.
func unmap(n int) {
	var leaves [16]*leaf
	clock.mu.Lock()
	turns := clock.n
	clock.mu.Unlock()
	for n > 0 && turns > 0 {
		k := clock.next(leaves[:])
		if k == 0 {
			return
		}
		turns -= k
		for _, l := range leaves[:k] {
			mapped := 0
			for i := range l.slots {
				w := l.slots[i].w.Load()
				if w&frameBits != 0 && w&(busy|dirty|writing|used) == 0 && frameOf(w).Refs() > 1 {
					mapped++
				}
			}
			if mapped > 0 {
				l.file.maps.Zap(l.file, l.base, leafPages)
				n -= mapped
			}
		}
		clear(leaves[:k])
	}
}
