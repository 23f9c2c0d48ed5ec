package vm

import (
	"sync"
	"sync/atomic"

	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
)

// pte is a page-table entry (Intel SDM vol. 3, 4.5).
type pte = uint64

const (
	pteP  pte = 1 << 0 // present
	pteW  pte = 1 << 1 // writable
	pteU  pte = 1 << 2 // user mode may use it
	pteA  pte = 1 << 5 // accessed; set from the start for the page that was faulted on
	pteD  pte = 1 << 6 // dirty; likewise for a store. Only fork looks at the two.
	pteNX pte = 1 << 63

	// pteAnon (ignored by the CPU): a private page of this space.
	pteAnon pte = 1 << 9

	pteAddr pte = 0x000ffffffffff000

	// pteLink is what a table entry that points to a lower table has.
	pteLink = pteP | pteW | pteU | pteA
)

func frameOf(e pte) mem.Frame { return mem.FrameOf(e & pteAddr) }

// table is one page table of any level.
type table [512]pte

func tableOf(e pte) *table { return (*table)(mem.WordsAt(e & pteAddr)) }

const (
	leafShift = 21 // a leaf table maps 2 MiB
	midShift  = 30
	topShift  = 39
	leafSpan  = 1 << leafShift
)

// leafCache remembers leaf tables: number of the 2 MiB they map, plus 1, above
// the frame number in leafBits bits; 0 is none. Tables are freed with mu and pt
// held for writing, and forgotten here then, so that who holds either lock for
// reading may use what it finds. Where a stack and the other mappings lie is random: there
// are many slots so that a program's stack and data seldom share one.
type leafCache [leafSlots]atomic.Uint64

const leafSlots = 64

const leafBits = 37

func (c *leafCache) slot(va uint64) *atomic.Uint64 { return &c[va>>leafShift&(leafSlots-1)] }

// get returns the leaf table of va if it is remembered.
func (c *leafCache) get(va uint64) *table {
	if x := c.slot(va).Load(); x>>leafBits == va>>leafShift+1 {
		return (*table)(mem.WordsAt(x << (64 - leafBits) >> (64 - leafBits - pageShift)))
	}
	return nil
}

// leaf returns the table with the entry of va, or nil. The caller holds pt or mu.
func (s *Space) leaf(va uint64) *table {
	if t := s.leaves.get(va); t != nil {
		return t
	}
	return s.walk(va)
}

// walk is leaf without looking at what is remembered; it remembers.
func (s *Space) walk(va uint64) *table {
	e := atomic.LoadUint64(&s.root[va>>topShift&511])
	if e == 0 {
		return nil
	}
	e = atomic.LoadUint64(&tableOf(e)[va>>midShift&511])
	if e == 0 {
		return nil
	}
	e = atomic.LoadUint64(&tableOf(e)[va>>leafShift&511])
	if e == 0 {
		return nil
	}
	s.leaves.slot(va).Store((va>>leafShift+1)<<leafBits | e&pteAddr>>pageShift)
	return tableOf(e)
}

// makeLeaf is leaf that makes the tables on the way; nil means out of memory.
// The caller holds mu.
func (s *Space) makeLeaf(va uint64) *table {
	if t := s.leaf(va); t != nil {
		return t
	}
	t := s.root
	for shift := topShift; shift >= leafShift; shift -= 9 {
		p := &t[va>>uint(shift)&511]
		e := atomic.LoadUint64(p)
		if e == 0 {
			f, ok := mem.AllocZeroed()
			if !ok {
				return nil
			}
			e = f.Phys() | pteLink
			if atomic.CompareAndSwapUint64(p, 0, e) {
				s.tables.Add(1)
			} else { // another thread was faster
				f.Put()
				e = atomic.LoadUint64(p)
			}
		}
		t = tableOf(e)
	}
	return t
}

// next finds the first leaf table at or after va and before end. It returns the
// table, where in it to begin and where its part of the range stops; or nil.
func (s *Space) next(va, end uint64) (t *table, at, stop uint64) {
	if t = s.leaves.get(va); t != nil && va < end {
		return t, va, min((va>>leafShift+1)<<leafShift, end)
	}
	for va < end {
		e := atomic.LoadUint64(&s.root[va>>topShift&511])
		if e == 0 {
			va = (va>>topShift + 1) << topShift
			continue
		}
		e = atomic.LoadUint64(&tableOf(e)[va>>midShift&511])
		if e == 0 {
			va = (va>>midShift + 1) << midShift
			continue
		}
		mid := tableOf(e)
		for {
			if e = atomic.LoadUint64(&mid[va>>leafShift&511]); e != 0 {
				return tableOf(e), va, min((va>>leafShift+1)<<leafShift, end)
			}
			va = (va>>leafShift + 1) << leafShift
			if va >= end || va&(1<<midShift-1) == 0 {
				break
			}
		}
	}
	return nil, end, end
}

// index is the place of va's entry in its leaf table.
func index(va uint64) uint { return uint(va >> pageShift & 511) }

// none reports whether the eight entries from i on, none of them behind last,
// have no bit of mask.
func (t *table) none(i, last uint, mask pte) bool {
	if i+7 > last || i+8 > uint(len(t)) {
		return false
	}
	g := (*[8]pte)(t[i : i+8])
	return (g[0]|g[1]|g[2]|g[3]|g[4]|g[5]|g[6]|g[7])&mask == 0
}

// gatherMax frames are collected before they are freed together.
const gatherMax = 1024

// gather collects frames whose entries are gone until every CPU has forgotten
// the translations; then they are freed. Its user holds pt for writing.
type gather struct {
	s                 *Space
	lo, hi            uint64 // what must be forgotten
	quiet             bool   // no CPU has the space loaded
	rests             bool   // the space has no users: pt and mu may be given up in between
	caller            *caller.Ctx
	pace              caller.Pace
	looks             int // how often rest was called
	n, nt             int
	anon, file, shmem int64 // resident pages taken away
	frames            [gatherMax]mem.Frame
	tables            [16]mem.Frame
}

var gathers = sync.Pool{New: func() any { return new(gather) }}

func (s *Space) gather() *gather {
	g := gathers.Get().(*gather)
	g.s, g.lo, g.hi, g.quiet = s, ^uint64(0), 0, false
	g.rests, g.caller, g.pace, g.looks = false, nil, caller.Pace{}, 0
	g.n, g.nt, g.anon, g.file, g.shmem = 0, 0, 0, 0, 0
	return g
}

// touch notes that translations of [start, end) are stale.
func (g *gather) touch(start, end uint64) {
	g.lo, g.hi = min(g.lo, start), max(g.hi, end)
}

// flush frees what was collected.
func (g *gather) flush() {
	if g.hi > g.lo && !g.quiet {
		mmu.Invalidate(&g.s.AS, g.lo, g.hi)
	}
	mem.PutBatch(g.frames[:g.n])
	mem.PutZeroed(g.tables[:g.nt])
	if g.nt > 0 {
		g.s.tables.Add(-int64(g.nt))
	}
	if g.anon|g.file|g.shmem != 0 {
		g.s.notePeak()
		g.s.resident(-g.anon, -g.file, -g.shmem)
	}
	g.lo, g.hi, g.n, g.nt = ^uint64(0), 0, 0, 0
	g.anon, g.file, g.shmem = 0, 0, 0
}

// done flushes and gives the gather back.
func (g *gather) done() {
	g.flush()
	g.s, g.caller = nil, nil
	gathers.Put(g)
}

// restLooks calls of rest look at the clock once: a small process ends without that.
const restLooks = 16

// rest frees what was collected, and gives way to others, if it is time to. It looks at the clock
// where some frames were collected, or at every 16th call.
func (g *gather) rest() {
	if !g.rests {
		return
	}
	if g.looks++; g.looks%restLooks != 0 && g.n+g.nt*32 < gatherMax/2 || !g.pace.Due() {
		return
	}
	g.flush()
	g.s.pt.Unlock()
	g.s.mu.Unlock()
	g.pace.Rest(g.caller)
	g.s.mu.Lock()
	g.s.pt.Lock()
}

// resident changes the numbers of resident pages.
func (s *Space) resident(anon, file, shmem int64) {
	if anon != 0 {
		s.anon.Add(anon)
	}
	if file != 0 {
		s.file.Add(file)
	}
	if shmem != 0 {
		s.shmem.Add(shmem)
	}
}

// What zapRange takes away.
const (
	zapAll    = iota
	zapObject // the object's pages only, private copies stay
)

// zapRange empties the entries of [start, end), which are in v. The caller
// holds pt for writing.
func (s *Space) zapRange(g *gather, v *vma, start, end uint64, what int) {
	if atomic.LoadUint32(&v.used) == 0 {
		return
	}
	shmem := v.flags&vShmem != 0
	for va := start; va < end; {
		g.rest()
		t, at, stop := s.next(va, end)
		if t == nil {
			return
		}
		if g.n+512 > gatherMax {
			g.flush()
		}
		first, last := index(at), index(stop-pageSize)
		hit := false
		checked := first
		for i := first; i <= last; i++ {
			if i >= checked {
				if checked = i + 8; t.none(i, last, ^pte(0)) {
					i += 7
					continue
				}
			}
			e := t[i&511]
			if e == 0 {
				continue
			}
			f := frameOf(e)
			hit = true
			switch {
			case e&pteAnon != 0:
				if what == zapObject {
					continue
				}
				g.anon++
			case f == zeroFrame:
				t[i] = 0
				continue
			case shmem:
				g.shmem++
			default:
				g.file++
			}
			t[i] = 0
			g.frames[g.n] = f
			g.n++
		}
		if hit {
			g.touch(at, stop)
		}
		va = stop
	}
}

// prune frees the tables that map parts of [start, end) and lie wholly in the
// hole [lo, hi) around it. Their entries are empty already. The caller holds
// mu and pt for writing.
func (s *Space) prune(g *gather, start, end, lo, hi uint64) {
	s.pruneTable(g, s.root, topShift, 0, start, end, lo, hi)
}

// pruneTable does that for the entries of t, each of which maps 1<<shift bytes;
// t itself begins at base.
func (s *Space) pruneTable(g *gather, t *table, shift uint, base, start, end, lo, hi uint64) {
	span := uint64(1) << shift
	for i := (start - base) >> shift; i <= (end-1-base)>>shift; i++ {
		e := t[i&511]
		if e == 0 {
			continue
		}
		b := base + i<<shift
		if shift > leafShift {
			s.pruneTable(g, tableOf(e), shift-9, b, max(start, b), min(end, b+span), lo, hi)
		}
		if b < lo || b+span > hi {
			continue
		}
		t[i&511] = 0
		if shift == leafShift {
			s.leaves.slot(b).Store(0)
		}
		if g.nt == len(g.tables) {
			g.flush()
		}
		g.tables[g.nt] = frameOf(e)
		g.nt++
		g.touch(b, b+span)
	}
}
