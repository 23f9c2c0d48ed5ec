package block

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/errseq"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/disk/blockdev"
)

// cache is the pages of a disk that programs read and write through its device
// file (file systems have their own). It is the whole disk's: a partition and
// the disk that it is on agree. Written pages go to the disk when somebody
// syncs or closes the last open file, when they become many, or after
// writebackAfter.
//
// A page is in the map or gone. It is valid when its content is the disk's or
// newer, and dirty when it is newer.
type cache struct {
	d *Disk // immutable

	mu    sync.Mutex
	pages map[uint64]*page // guarded by mu; by number
	dirty map[uint64]*page // guarded by mu
	ring  []*page          // guarded by mu; all pages, for the clock
	hand  int              // guarded by mu

	count   atomic.Int64 // pages
	errors  errseq.Seq   // failed writes, for fsync
	writing atomic.Bool  // a goroutine writes back
	armed   atomic.Bool  // the timer is set
	timer   *time.Timer  // immutable
}

// page is one page of a disk.
type page struct {
	index uint64      // immutable
	used  atomic.Bool // since the clock's hand passed

	mu    sync.Mutex
	frame mem.Frame // guarded by mu
	valid bool      // guarded by mu
	dirty bool      // guarded by mu; with cache.mu to change it
	gone  bool      // guarded by mu
}

const (
	// MaxReadAhead pages are read ahead at most where a file is read in order,
	// minAhead the first time; fillPages while somebody waits for the first.
	MaxReadAhead = 256
	minAhead     = 32
	fillPages    = 64
	// batchPages are written at once: several commands under way.
	batchPages = 1024
	// evictAtOnce pages are looked for when there are too many.
	evictAtOnce = 32
)

var (
	// cacheShare is the part of memory that a disk's cache may take, dirtyPages
	// how many may be dirty before writers wait.
	cacheShare     = 8
	dirtyPages     = 4096
	writebackAfter = 5 * time.Second
)

func (c *cache) init(d *Disk) {
	c.d = d
	c.pages, c.dirty = map[uint64]*page{}, map[uint64]*page{}
	c.timer = time.AfterFunc(time.Hour, c.background)
	c.timer.Stop()
}

// limit is how many pages the cache may have.
func (c *cache) limit() int { return max(mem.Total()/cacheShare, 256) }

// get returns a page, locked; a new one is not valid.
func (c *cache) get(index uint64) (*page, linux.Errno) {
	for {
		c.mu.Lock()
		p := c.pages[index]
		if p == nil {
			var e linux.Errno
			p, e = c.add(index)
			c.mu.Unlock()
			return p, e
		}
		c.mu.Unlock()
		p.mu.Lock()
		if !p.gone {
			p.used.Store(true)
			return p, 0
		}
		p.mu.Unlock()
	}
}

// add makes a page, locked; mu is held.
func (c *cache) add(index uint64) (*page, linux.Errno) {
	if len(c.pages) >= c.limit() {
		c.evict(evictAtOnce)
	}
	f, ok := mem.Alloc()
	if !ok {
		c.evict(evictAtOnce)
		if f, ok = mem.Alloc(); !ok {
			return nil, linux.ENOMEM
		}
	}
	p := &page{index: index, frame: f}
	p.mu.TryLock() // always: nobody knows it. To wait here would be against the order.
	c.pages[index] = p
	c.ring = append(c.ring, p)
	c.count.Store(int64(len(c.pages)))
	return p, 0
}

// evict drops up to n clean pages that were not used lately; mu is held.
func (c *cache) evict(n int) {
	for range 2 * len(c.ring) {
		if n == 0 || len(c.ring) == 0 {
			return
		}
		if c.hand >= len(c.ring) {
			c.hand = 0
		}
		p := c.ring[c.hand]
		if p.used.Swap(false) || !p.mu.TryLock() {
			c.hand++
			continue
		}
		if p.dirty {
			p.mu.Unlock()
			c.hand++
			continue
		}
		c.drop(p)
		p.mu.Unlock()
		last := len(c.ring) - 1
		c.ring[c.hand], c.ring[last] = c.ring[last], nil
		c.ring = c.ring[:last]
		n--
	}
}

// drop takes a page out, except for the ring; mu and the page's are held.
func (c *cache) drop(p *page) {
	p.gone = true
	p.frame.Put()
	p.frame = 0
	delete(c.pages, p.index)
	if p.dirty {
		p.dirty = false
		delete(c.dirty, p.index)
	}
	c.count.Store(int64(len(c.pages)))
}

// bytes is how much of page index is on the disk.
func (c *cache) bytes(index uint64) int {
	return int(min(mem.PageSize, c.d.limits.Sectors<<blockdev.SectorShift-index<<mem.PageShift))
}

// fill makes a locked page valid, and up to more pages behind it that are not
// in the cache.
func (c *cache) fill(p *page, more int) linux.Errno {
	var batch [fillPages]*page
	batch[0] = p
	n := 1 + c.absent(batch[1:min(more+1, fillPages)], p.index+1)
	call := c.d.Whole().begin()
	call.pagesOf(blockdev.Read, c, batch[:n])
	call.run()
	e := call.end()
	for i, q := range batch[:n] {
		if e == 0 {
			q.valid = true
		}
		if i > 0 {
			q.mu.Unlock()
		}
	}
	if e != 0 && n > 1 { // whose fault?
		return c.fill(p, 0)
	}
	return e
}

// absent makes pages from a number on, locked, up to the first that is there.
func (c *cache) absent(out []*page, from uint64) (n int) {
	last := (c.d.limits.Sectors<<blockdev.SectorShift - 1) >> mem.PageShift
	c.mu.Lock()
	defer c.mu.Unlock()
	for n < len(out) && from+uint64(n) <= last && c.pages[from+uint64(n)] == nil {
		p, e := c.add(from + uint64(n))
		if e != 0 {
			break
		}
		out[n] = p
		n++
	}
	return n
}

// ahead is a read of pages that nobody has asked for yet. They are locked until
// it is done: who wants one waits there. If it fails they are not valid, and who
// wants one tries himself.
type ahead struct {
	Request
	pages []*page
	segs  []blockdev.Segment
}

func (a *ahead) finished(r *Request) {
	for _, p := range a.pages {
		p.valid = r.Err == 0
		p.mu.Unlock()
	}
}

// prefetch starts to read pages from a number on, up to n or the first that is
// there, and does not wait.
func (c *cache) prefetch(from uint64, n int) {
	n = min(n, c.limit()/4)
	most := min(c.d.limits.MaxSegments, int(c.d.limits.MaxSectors>>3))
	var first, last *Request
	for n > 0 {
		a := &ahead{pages: make([]*page, min(n, most))}
		got := c.absent(a.pages, from)
		if got == 0 {
			break
		}
		a.pages = a.pages[:got]
		bytes := 0
		for _, p := range a.pages {
			k := c.bytes(p.index)
			a.segs = append(a.segs, blockdev.Segment{Phys: p.frame.Phys(), Len: uint32(k)})
			bytes += k
		}
		a.Request = Request{Op: blockdev.Read, Sector: from << (mem.PageShift - blockdev.SectorShift),
			Sectors: uint32(bytes >> blockdev.SectorShift), Data: a.segs, Done: a.finished}
		if last != nil {
			last.Then(&a.Request)
		} else {
			first = &a.Request
		}
		last = &a.Request
		from += uint64(got)
		n -= got
	}
	if first != nil {
		c.d.SubmitAll(first, last)
	}
}

// pagesOf adds the requests for locked pages, in order of their number.
func (c *call) pagesOf(op blockdev.Op, of *cache, pages []*page) {
	most := min(c.d.limits.MaxSegments, maxSegments, int(c.d.limits.MaxSectors>>3))
	for len(pages) > 0 {
		n := 1
		for n < len(pages) && n < most && pages[n].index == pages[0].index+uint64(n) {
			n++
		}
		first, bytes := len(c.segs), 0
		for _, p := range pages[:n] {
			k := of.bytes(p.index)
			bytes += k
			c.segs = append(c.segs, blockdev.Segment{Phys: p.frame.Phys(), Len: uint32(k)})
		}
		c.request(op, pages[0].index<<(mem.PageShift-blockdev.SectorShift), uint32(bytes>>blockdev.SectorShift), c.segs[first:])
		pages = pages[n:]
	}
}

// read copies bytes of the disk to v.
func (c *cache) read(who *caller.Ctx, v *uio.Vec, off, n int64) (done int, e linux.Errno) {
	for n > 0 && e == 0 && !(done > 0 && caller.KilledAt(who, off)) {
		p, err := c.get(uint64(off) >> mem.PageShift)
		if err != 0 {
			e = err
			break
		}
		at := int(off & (mem.PageSize - 1))
		if !p.valid {
			e = c.fill(p, int((int64(at)+n-1)>>mem.PageShift))
		}
		if e == 0 {
			var m int
			m, e = v.CopyOut(p.frame.Bytes()[at:min(int64(at)+n, int64(c.bytes(p.index)))])
			done += m
			off += int64(m)
			n -= int64(m)
		}
		p.mu.Unlock()
	}
	if done > 0 {
		e = 0
	}
	return done, e
}

// write copies bytes from v into the cache.
func (c *cache) write(who *caller.Ctx, v *uio.Vec, off, n int64) (done int, e linux.Errno) {
	for n > 0 && e == 0 && !(done > 0 && caller.KilledAt(who, off)) {
		var p *page
		if p, e = c.get(uint64(off) >> mem.PageShift); e != 0 {
			break
		}
		at := int(off & (mem.PageSize - 1))
		room := c.bytes(p.index)
		k := int(min(int64(room-at), n))
		if !p.valid && k < room {
			e = c.fill(p, 0)
		}
		if e == 0 {
			var m int
			m, e = v.CopyIn(p.frame.Bytes()[at : at+k])
			switch {
			case m == k:
				p.valid = true
			case !p.valid: // the rest of the page is nothing
				m = 0
			}
			if m > 0 {
				c.mark(p)
			}
			done += m
			off += int64(m)
			n -= int64(m)
		}
		p.mu.Unlock()
		if e == 0 {
			c.balance()
		}
	}
	if done > 0 {
		e = 0
	}
	return done, e
}

// mark makes a locked page dirty.
func (c *cache) mark(p *page) {
	p.used.Store(true)
	if p.dirty {
		return
	}
	c.mu.Lock()
	p.dirty = true
	c.dirty[p.index] = p
	c.mu.Unlock()
	if !c.armed.Load() && c.armed.CompareAndSwap(false, true) {
		c.timer.Reset(writebackAfter)
	}
}

// balance keeps dirty pages few: half of the limit starts a writer, all of it
// makes the caller one.
func (c *cache) balance() {
	c.mu.Lock()
	n := len(c.dirty)
	c.mu.Unlock()
	limit := min(dirtyPages, c.limit()/2)
	switch {
	case n >= limit:
		c.writeBack(0, ^uint64(0))
	case n >= limit/2 && c.writing.CompareAndSwap(false, true):
		go func() {
			c.writeBack(0, ^uint64(0))
			c.writing.Store(false)
		}()
	}
}

// background is the timer's: what is dirty is written.
func (c *cache) background() {
	c.armed.Store(false)
	c.writeBack(0, ^uint64(0))
}

// writeBack writes the dirty pages first … last and waits for that.
func (c *cache) writeBack(first, last uint64) (e linux.Errno) {
	c.mu.Lock()
	if len(c.dirty) == 0 {
		c.mu.Unlock()
		return 0
	}
	list := make([]*page, 0, len(c.dirty))
	for i, p := range c.dirty {
		if i >= first && i <= last {
			list = append(list, p)
		}
	}
	c.mu.Unlock()
	slices.SortFunc(list, func(a, b *page) int {
		if a.index < b.index {
			return -1
		}
		return 1
	})
	for len(list) > 0 {
		n := min(len(list), batchPages)
		if err := c.writePages(list[:n]); err != 0 {
			e = err
		}
		list = list[n:]
	}
	return e
}

// writePages writes those of the pages that are still dirty. One that cannot be
// written is dropped: it is not the disk's content, and there is nobody who
// could write it later.
func (c *cache) writePages(list []*page) linux.Errno {
	locked := make([]*page, 0, len(list))
	for _, p := range list {
		p.mu.Lock()
		if p.gone || !p.dirty {
			p.mu.Unlock()
			continue
		}
		locked = append(locked, p)
	}
	e := c.put(locked)
	if e != 0 && len(locked) > 1 { // save what can be
		for _, p := range locked {
			if err := c.put([]*page{p}); err != 0 {
				c.lose(p)
			}
		}
	} else if e != 0 {
		c.lose(locked[0])
	}
	c.mu.Lock()
	for _, p := range locked {
		if p.dirty {
			p.dirty = false
			delete(c.dirty, p.index)
		}
	}
	c.mu.Unlock()
	for _, p := range locked {
		p.mu.Unlock()
	}
	return e
}

func (c *cache) put(pages []*page) linux.Errno {
	if len(pages) == 0 {
		return 0
	}
	call := c.d.Whole().begin()
	call.pagesOf(blockdev.Write, c, pages)
	call.run()
	return call.end()
}

// lose gives up what could not be written; fsync tells once.
func (c *cache) lose(p *page) {
	p.valid = false
	c.errors.Set(linux.EIO)
	Log("%s: what was written to sector %d is lost", c.d.Name, p.index<<(mem.PageShift-blockdev.SectorShift))
}

// forget drops the pages that touch [off, off+n) after writing them, so that
// what goes to the disk without the cache and what comes through it agree.
func (c *cache) forget(off, n int64) linux.Errno {
	if c.count.Load() == 0 || n <= 0 {
		return 0
	}
	first, last := uint64(off)>>mem.PageShift, uint64(off+n-1)>>mem.PageShift
	e := c.writeBack(first, last)
	c.mu.Lock()
	var list []*page
	if last-first < uint64(len(c.pages)) {
		for i := first; i <= last; i++ {
			if p := c.pages[i]; p != nil {
				list = append(list, p)
			}
		}
	} else {
		for i, p := range c.pages {
			if i >= first && i <= last {
				list = append(list, p)
			}
		}
	}
	c.mu.Unlock()
	for _, p := range list {
		p.mu.Lock()
		if !p.gone && !p.dirty {
			p.valid = false
		}
		p.mu.Unlock()
	}
	return e
}

// clear drops all clean pages (BLKFLSBUF, the last close).
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.ring {
		p.used.Store(false)
	}
	c.evict(len(c.ring))
}
