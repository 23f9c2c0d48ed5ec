package vm

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/settings"
)

// Shared is memory that several mappings share: MAP_SHARED|MAP_ANONYMOUS and
// System V segments. Its pages come at the first touch and go with the last
// mapping (or with Drop, for a segment).
type Shared struct {
	maps mem.Mappings
	refs atomic.Int64 // mappings, and the segment's own

	user *accounts.User // of a segment: who made it; immutable once mapped

	mu     sync.Mutex
	limit  uint64            // pages; immutable
	whole  bool              // all pages are committed; immutable once mapped
	chunks map[uint64]*chunk // guarded by mu
	n      atomic.Int64      // pages present
}

// chunkPages pages are indexed by one chunk.
const chunkPages = 64

type chunk [chunkPages]mem.Frame

// newShared returns an object of so many pages with the reference of its first mapping.
func newShared(n uint64) *Shared {
	o := &Shared{chunks: make(map[uint64]*chunk), limit: n}
	o.refs.Store(1)
	return o
}

// NewShared returns an object of so many pages; Detach drops the caller's reference.
func NewShared(n uint64) *Shared { return newShared(n) }

// segmentPages are the pages of all segments. They stay when processes end, so users share
// half of memory.
var segmentPages = accounts.LatePool{Make: func() *accounts.Pool { return accounts.NewPool(int64(max(mem.Total()/2, 64))) }}

// SegmentsOf returns how many bytes of segments a user has.
func SegmentsOf(uid uint32) int64 {
	return segmentPages.Get().Of(accounts.UserOf(uid)) * mem.PageSize
}

// keep counts a page that is to stay without a process, if that is one.
func (o *Shared) keep() bool {
	if o.user == nil {
		return true
	}
	p := segmentPages.Get()
	if !p.Charge(o.user, 1) {
		return false
	}
	if !mem.Keep(o.user.UID == 0, p.Of(o.user)) {
		p.Release(o.user, 1)
		return false
	}
	return true
}

// unkeep undoes keep for n pages.
func (o *Shared) unkeep(n int) {
	if o.user != nil && n > 0 {
		segmentPages.Get().Release(o.user, int64(n))
		mem.Unkeep(n)
	}
}

// NewSegment is NewShared for memory that a program asked for and that stays without
// processes. With reserve all of it is committed at once; nil if that is too much.
func NewSegment(n uint64, reserve bool, user *accounts.User) *Shared {
	reserve = reserve || settings.OvercommitMemory.Get() == overcommitNever
	if n > 1<<40 || reserve && !mayCommit(n<<pageShift, 0) {
		return nil
	}
	o := newShared(n)
	o.user = user
	if reserve {
		o.charge()
	}
	return o
}

// charge commits all pages, until the last reference goes.
func (o *Shared) charge() {
	o.whole = true
	allCommitted.Add(int64(o.limit << pageShift))
}

// Page returns page i, made at the first touch.
func (o *Shared) Page(i uint64, _ bool) (mem.Frame, linux.Errno) {
	if i >= o.limit {
		return 0, linux.EFAULT
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.chunks == nil { // it ended while somebody was about to map it
		return 0, linux.EFAULT
	}
	c := o.chunks[i/chunkPages]
	if c == nil || c[i%chunkPages] == 0 {
		if !o.keep() {
			return 0, linux.ENOSPC
		}
		n, ok := mem.AllocZeroed()
		if !ok {
			o.unkeep(1)
			return 0, linux.ENOMEM
		}
		if c == nil {
			c = new(chunk)
			o.chunks[i/chunkPages] = c
		}
		c[i%chunkPages] = n
		o.n.Add(1)
	}
	c[i%chunkPages].Get()
	return c[i%chunkPages], 0
}

// Cached returns page i if it was touched.
func (o *Shared) Cached(i uint64) (mem.Frame, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.chunks[i/chunkPages]; c != nil && c[i%chunkPages] != 0 {
		c[i%chunkPages].Get()
		return c[i%chunkPages], true
	}
	return 0, false
}

// Punch frees pages first … first+n-1; they read as zero then.
func (o *Shared) Punch(first, n uint64) linux.Errno { return o.PunchOf(o, first, n) }

// PunchOf is Punch for an object that shows o's pages as its own.
func (o *Shared) PunchOf(shown mem.Object, first, n uint64) linux.Errno {
	if n == 0 {
		return 0
	}
	o.mu.Lock()
	from, to := first/chunkPages, (first+n-1)/chunkPages
	if to-from < uint64(len(o.chunks)) {
		for base := from; base <= to; base++ {
			o.punch(base, first, n)
		}
	} else {
		for base := range o.chunks {
			o.punch(base, first, n)
		}
	}
	o.mu.Unlock()
	o.maps.Zap(shown, first, n)
	return 0
}

// punch frees the pages of one chunk that are wanted, and the chunk with the
// last. The caller holds mu.
func (o *Shared) punch(base, first, n uint64) {
	c := o.chunks[base]
	if c == nil {
		return
	}
	left := false
	for j := range c {
		if i := base*chunkPages + uint64(j); c[j] != 0 && i-first < n {
			c[j].Put()
			c[j] = 0
			o.n.Add(-1)
			o.unkeep(1)
		}
		left = left || c[j] != 0
	}
	if !left {
		delete(o.chunks, base)
	}
}

// Mappings is the register of who maps it.
func (o *Shared) Mappings() *mem.Mappings { return &o.maps }

// Resident returns how many pages there are.
func (o *Shared) Resident() int64 { return o.n.Load() }

// Attach and Detach count the mappings; the last frees the pages.
func (o *Shared) Attach() { o.refs.Add(1) }

// Detach drops a reference.
func (o *Shared) Detach() {
	if o.refs.Add(-1) != 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.chunks {
		for _, f := range c {
			if f != 0 {
				f.Put()
			}
		}
	}
	o.chunks = nil
	o.unkeep(int(o.n.Load()))
	o.n.Store(0)
	if o.whole {
		allCommitted.Add(-int64(o.limit << pageShift))
	}
}
