package block

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/disk/blockdev"
)

// waiting measures for how long somebody waits for a disk.
var waiting mem.Stall

// Waited returns for how long, in nanoseconds, somebody waited for a disk, and how many
// do now.
func Waited() (nanos int64, n int) { return waiting.Total() }

// call is one goroutine's requests that it waits for.
type call struct {
	wait.Sleeper
	d *Disk
	p *Part

	left atomic.Int32  // requests not done yet
	err  atomic.Uint32 // the first error

	reqs  []*Request // made when first needed, used again
	n     int        // of reqs in use
	segs  []blockdev.Segment
	pages []mem.Frame // copies of memory that the device cannot reach, see bounce
	backs []back
	done  func(*Request)
}

// back is what a read has to copy from its pages to memory that the device
// cannot reach.
type back struct {
	to    []byte
	first int // of pages
}

// alignment is what every device asks of memory.
const alignment = 4

// window bounds the pages that a call copies at a time.
const window = 512

var calls = sync.Pool{New: func() any {
	c := &call{}
	c.done = c.requestDone
	return c
}}

// begin gets a call on a part.
func (p *Part) begin() *call {
	c := calls.Get().(*call)
	c.d, c.p = p.Disk, p
	c.err.Store(0)
	return c
}

// end gives it back, with its error.
func (c *call) end() linux.Errno {
	e := linux.Errno(c.err.Load())
	c.d, c.p = nil, nil
	calls.Put(c)
	return e
}

func (c *call) requestDone(r *Request) {
	if r.Err != 0 {
		c.err.CompareAndSwap(0, uint32(r.Err))
	}
	if c.left.Add(-1) == 0 {
		c.Wake()
	}
}

// request makes the next request; its sector counts from the part's beginning.
func (c *call) request(op blockdev.Op, sector uint64, sectors uint32, data []blockdev.Segment) *Request {
	if c.n == len(c.reqs) {
		c.reqs = append(c.reqs, new(Request))
	}
	r := c.reqs[c.n]
	c.n++
	*r = Request{Op: op, Sector: sector + c.p.Start, Sectors: sectors, Data: data, Done: c.done, part: int32(c.p.Number)}
	return r
}

// run starts all requests and waits for them, then drops what they used.
func (c *call) run() {
	c.runKeep()
	if c.err.Load() == 0 {
		for _, b := range c.backs {
			for i := 0; len(b.to) > 0; i++ {
				b.to = b.to[copy(b.to, c.pages[b.first+i].Bytes()):]
			}
		}
	}
	c.reset()
}

// reset drops the requests and what they used.
func (c *call) reset() {
	mem.PutBatch(c.pages)
	clear(c.backs)
	c.n, c.segs, c.pages, c.backs = 0, c.segs[:0], c.pages[:0], c.backs[:0]
}

// runKeep starts all requests and waits for them.
func (c *call) runKeep() {
	if c.n == 0 {
		return
	}
	c.left.Store(int32(c.n))
	for i := range c.n - 1 {
		c.reqs[i].Then(c.reqs[i+1])
	}
	c.Arm()
	c.d.SubmitAll(c.reqs[0], c.reqs[c.n-1])
	if c.left.Load() == 0 {
		return
	}
	waiting.Begin()
	for c.left.Load() != 0 {
		c.SleepUninterruptible(wait.NoDeadline)
		c.Arm()
	}
	waiting.End()
}

// transfer adds the requests for b at a sector: what the device can reach is
// given as it is, other memory is copied to pages or, of a read, from pages when
// it is done. Where that becomes much it runs what there is.
func (c *call) transfer(op blockdev.Op, fua bool, sector uint64, b []byte) {
	l := &c.d.limits
	if op == blockdev.Read {
		wait.NoteRead(uint64(len(b)))
	}
	for len(b) > 0 {
		if len(c.pages) >= window || c.n >= window {
			c.run()
		}
		n := min(len(b), int(l.MaxSectors)<<blockdev.SectorShift)
		first := len(c.segs)
		if phys, ok := mem.PhysOf(b); ok && phys&(alignment-1) == 0 {
			n = c.reach(phys, n)
		} else {
			n = c.bounce(op, b[:n])
			if n == 0 {
				c.err.CompareAndSwap(0, uint32(linux.ENOMEM))
				return
			}
		}
		c.request(op, sector, uint32(n>>blockdev.SectorShift), c.segs[first:]).FUA = fua
		b = b[n:]
		sector += uint64(n) >> blockdev.SectorShift
	}
}

// reach adds segments for memory that is physically contiguous, and returns how
// much of it they are.
func (c *call) reach(phys uint64, n int) int {
	l := &c.d.limits
	most := n
	if l.MaxSegment != 0 {
		most = int(l.MaxSegment &^ (mem.PageSize - 1))
	}
	done := 0
	for i := 0; done < n && i < l.MaxSegments; i++ {
		k := min(n-done, most)
		if end := (phys + uint64(k)) & (mem.PageSize - 1); k < n-done && end != 0 {
			k -= int(end) // the next begins at a page
		}
		c.segs = append(c.segs, blockdev.Segment{Phys: phys, Len: uint32(k)})
		phys += uint64(k)
		done += k
	}
	return done
}

// bounce adds segments of new pages instead of b, and returns how much of it
// they are; 0 without memory.
func (c *call) bounce(op blockdev.Op, b []byte) int {
	first := len(c.pages)
	want := min((len(b)+mem.PageSize-1)/mem.PageSize, c.d.limits.MaxSegments, maxSegments)
	c.pages = append(c.pages, make([]mem.Frame, want)...)
	got := mem.AllocBatch(c.pages[first:])
	c.pages = c.pages[:first+got]
	n := min(len(b), got*mem.PageSize)
	if op == blockdev.Write {
		rest := b[:n]
		for _, f := range c.pages[first:] {
			rest = rest[copy(f.Bytes(), rest):]
		}
	} else if n > 0 {
		c.backs = append(c.backs, back{b[:n], first})
	}
	c.frames(c.pages[first:], n)
	return n
}

// frames adds segments for the first n bytes of pages.
func (c *call) frames(pages []mem.Frame, n int) {
	l := &c.d.limits
	begin := len(c.segs)
	for _, f := range pages {
		k := min(n, mem.PageSize)
		n -= k
		if last := len(c.segs) - 1; last >= begin && c.segs[last].Phys+uint64(c.segs[last].Len) == f.Phys() &&
			(l.MaxSegment == 0 || c.segs[last].Len+uint32(k) <= l.MaxSegment) {
			c.segs[last].Len += uint32(k)
			continue
		}
		c.segs = append(c.segs, blockdev.Segment{Phys: f.Phys(), Len: uint32(k)})
	}
}

// Flush makes durable what has been written.
func (p *Part) Flush() linux.Errno {
	c := p.begin()
	c.request(blockdev.Flush, 0, 0, nil)
	c.run()
	return c.end()
}

// Discard gives up sectors of the part; EOPNOTSUPP where the device cannot.
func (p *Part) Discard(sector, n uint64) linux.Errno {
	return p.ranges(blockdev.Discard, false, sector, n, p.Disk.limits.MaxDiscard)
}

// WriteZeroes makes sectors zero, and keeps their blocks if keep is set;
// EOPNOTSUPP where the device cannot.
func (p *Part) WriteZeroes(sector, n uint64, keep bool) linux.Errno {
	return p.ranges(blockdev.WriteZeroes, keep, sector, n, p.Disk.limits.MaxWriteZeroes)
}

func (p *Part) ranges(op blockdev.Op, keep bool, sector, n uint64, most uint32) linux.Errno {
	if most == 0 {
		return linux.EOPNOTSUPP
	}
	if e := p.Disk.writable(); e != 0 {
		return e
	}
	if sector > p.Sectors || n > p.Sectors-sector {
		return linux.EINVAL
	}
	c := p.begin()
	blocks := uint64(p.Disk.limits.LogicalBlock >> blockdev.SectorShift)
	limit := max(uint64(most)/blocks, 1) * blocks
	for n > 0 {
		k := min(n, limit)
		c.request(op, sector, uint32(k), nil).NoUnmap = keep
		sector += k
		n -= k
		if c.n == window {
			c.run()
		}
	}
	c.run()
	return c.end()
}

// Move reads into or writes from every piece of a batch: bytes at a byte offset
// of the part. Neighbours become one command. With fua what is written is
// durable; several pieces share one flush where the device has no such writes.
// The errors are EROFS, ENOMEM, EINVAL for a piece that is outside or not made
// of whole blocks, and the medium's.
func Move[T ~struct {
	Off int64
	Buf []byte
}](p *Part, op blockdev.Op, batch []T, fua bool) linux.Errno {
	l := &p.Disk.limits
	if op == blockdev.Write && l.ReadOnly {
		return linux.EROFS
	}
	native := fua && (l.FUA || len(batch) == 1)
	size, mask := p.Bytes(), int64(l.LogicalBlock-1)
	c := p.begin()
	for i := range batch {
		t := struct {
			Off int64
			Buf []byte
		}(batch[i])
		if t.Off < 0 || t.Off > size || int64(len(t.Buf)) > size-t.Off || (t.Off|int64(len(t.Buf)))&mask != 0 {
			c.err.CompareAndSwap(0, uint32(linux.EINVAL))
			break
		}
		c.transfer(op, native, uint64(t.Off)>>blockdev.SectorShift, t.Buf)
	}
	c.run()
	e := c.end()
	if e == 0 && fua && !native {
		return p.Flush()
	}
	return e
}

// Bytes is the part's size.
func (p *Part) Bytes() int64 { return int64(p.Sectors) << blockdev.SectorShift }
