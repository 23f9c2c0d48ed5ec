package nvme

import (
	"encoding/binary"
	"sync"

	"hardtack/abi/linux"
	"hardtack/driver"
	"hardtack/kernel/disk/blockdev"
)

// pair is a submission queue with its completion queue. A command's identifier
// is its slot, which determines where its PRP list is.
type pair struct {
	c     *Controller
	index int        // immutable
	lists driver.DMA // immutable; a page per slot

	// bh is held while completions are collected and passed up.
	bh    sync.Mutex
	batch []*blockdev.Command // guarded by bh; of one disk
	owner *Disk               // guarded by bh; the batch's disk

	mu   sync.Mutex
	r    ring // guarded by mu; doorbells, size, id and vector are immutable
	up   bool // guarded by mu; the controller has the queue
	cmds []slot
	free []uint16 // guarded by mu, as cmds
}

type slot struct {
	c *blockdev.Command
	d *Disk
}

func (q *pair) alloc(p driver.Platform, depth int) (ok bool) {
	if !q.r.alloc(p, depth) {
		return false
	}
	// A queue holds one entry fewer than its size.
	q.lists, ok = p.AllocDMA(depth - 1)
	q.cmds = make([]slot, depth-1)
	q.batch = make([]*blockdev.Command, 0, depth)
	q.refill()
	q.up = true
	return ok
}

// refill frees all slots.
func (q *pair) refill() {
	clear(q.cmds)
	q.free = q.free[:0]
	for i := range q.cmds {
		q.free = append(q.free, uint16(len(q.cmds)-1-i))
	}
}

func (q *pair) submit(d *Disk, cmds []*blockdev.Command) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.up {
		return 0
	}
	n := 0
	for n < len(cmds) && len(q.free) > 0 {
		q.add(d, cmds[n])
		n++
	}
	if n > 0 {
		q.c.regs.Write32(q.r.sqDoor, q.r.tail)
	}
	return n
}

// add writes one entry. There is room: there is one slot fewer than entries.
func (q *pair) add(d *Disk, c *blockdev.Command) {
	at := q.free[len(q.free)-1]
	q.free = q.free[:len(q.free)-1]
	q.cmds[at] = slot{c, d}
	c.Tag = int32(at)
	e := (*entry)(q.r.sq.Virt[q.r.tail*sqeSize:])
	if q.r.tail++; q.r.tail == q.r.size {
		q.r.tail = 0
	}
	lba, blocks := c.Sector>>d.shift, c.Sectors>>d.shift
	switch c.Op {
	case blockdev.Read, blockdev.Write:
		e.begin(ioRead, d.id)
		flags := uint32(0)
		if c.Op == blockdev.Write {
			e[0] = ioWrite
			if c.FUA {
				flags = flagFUA
			}
		}
		e.quad(10, lba)
		e.dword(12, flags|(blocks-1))
		q.pages(e, at, c.Data)
	case blockdev.Flush:
		e.begin(ioFlush, d.id)
	case blockdev.WriteZeroes:
		e.begin(ioWriteZeroes, d.id)
		flags := uint32(flagDealloc)
		if c.NoUnmap {
			flags = 0
		}
		e.quad(10, lba)
		e.dword(12, flags|(blocks-1))
	case blockdev.Discard:
		e.begin(ioManagement, d.id)
		b := q.list(at)
		binary.LittleEndian.PutUint64(b, uint64(blocks)<<32)
		binary.LittleEndian.PutUint64(b[8:], lba)
		e.data(q.lists.Phys + uint64(at)*driver.PageSize)
		e.dword(10, 0) // one range
		e.dword(11, flagDeallocate)
	}
	e.id(at)
}

func (q *pair) list(at uint16) []byte {
	return q.lists.Virt[int(at)*driver.PageSize:][:driver.PageSize:driver.PageSize]
}

// pages writes the addresses of the data: the first page, or the used part of it, and
// the second page or the list of all that follow.
func (q *pair) pages(e *entry, at uint16, data []blockdev.Segment) {
	list := q.list(at)
	n := -1
	for _, s := range data {
		for p, end := s.Phys, s.Phys+uint64(s.Len); p < end; p = p&^(driver.PageSize-1) + driver.PageSize {
			if n < 0 {
				e.data(p)
			} else {
				binary.LittleEndian.PutUint64(list[8*n:], p)
			}
			n++
		}
	}
	switch {
	case n == 1:
		e.second(binary.LittleEndian.Uint64(list))
	case n > 1:
		e.second(q.lists.Phys + uint64(at)*driver.PageSize)
	}
}

// completed is the bottom half.
func (q *pair) completed() {
	q.bh.Lock()
	defer q.bh.Unlock()
	for {
		q.mu.Lock()
		more := q.collect()
		q.mu.Unlock()
		if len(q.batch) > 0 {
			if done := q.owner.done; done != nil {
				done(q.index, q.batch)
			}
			q.batch = q.batch[:0]
		}
		if !more {
			return
		}
	}
}

// collect takes the completed commands of one disk, and reports whether there are more.
func (q *pair) collect() (more bool) {
	if !q.up {
		return false
	}
	head := q.r.head
	for len(q.batch) < cap(q.batch) {
		x := q.r.cq.Virt[q.r.head*cqeSize:][:cqeSize]
		status := loadStatus(x)
		if status&1 != q.r.phase {
			break
		}
		at := binary.LittleEndian.Uint16(x[12:])
		if int(at) < len(q.cmds) && q.cmds[at].c != nil {
			s := q.cmds[at]
			if len(q.batch) > 0 && s.d != q.owner {
				more = true
				break
			}
			q.owner = s.d
			s.c.Err = errnoOf(status >> 1)
			q.batch = append(q.batch, s.c)
			q.cmds[at] = slot{}
			q.free = append(q.free, at)
		}
		if q.r.head++; q.r.head == q.r.size {
			q.r.head = 0
			q.r.phase ^= 1
		}
	}
	if q.r.head != head {
		q.c.regs.Write32(q.r.cqDoor, q.r.head)
	}
	return more || len(q.batch) == cap(q.batch)
}

// errnoOf translates a status: the code in bits 0 to 7, its type in bits 8 to 10.
func errnoOf(status uint16) linux.Errno {
	switch code := status & 0x7ff; {
	case code == 0:
		return 0
	case code == 0x01, code == 0x02: // opcode, field
		return linux.EOPNOTSUPP
	case code == 0x81: // capacity exceeded
		return linux.ENOSPC
	}
	return linux.EIO
}
