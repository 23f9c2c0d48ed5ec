package vm

import (
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/mem"
	"hardtack/nucleus"
)

// aroundMax is the maximum of pages mapped for one fault. If a program touches fresh
// memory in order, each fault maps twice as many; if it reads a file, a fault maps the
// pages of the aligned neighbourhood that are already in memory.
const aroundMax = 16

// scarce is the number of spare frames below which nothing is mapped ahead.
const scarce = 1024

// Fault handles a page fault at addr; code has nucleus.Fault* bits.
//
//maxlive:point because a call meets any number of pages that are not there, one after the other
func (s *Space) Fault(addr, code uint64) FaultResult {
	if addr >= userTop {
		return FaultMapErr
	}
	s.mu.RLock()
	v := s.at(addr)
	if v == nil {
		s.mu.RUnlock()
		if r := s.growStack(addr); r != FaultOK {
			return r
		}
		s.mu.RLock()
		if v = s.at(addr); v == nil {
			s.mu.RUnlock()
			return FaultMapErr
		}
	}
	r := FaultAccErr
	switch {
	case v.prot == 0,
		code&nucleus.FaultWrite != 0 && v.prot&linux.PROT_WRITE == 0,
		code&nucleus.FaultFetch != 0 && v.prot&linux.PROT_EXEC == 0:
	default:
		r = s.handle(v, addr&^pageMask, code&nucleus.FaultWrite != 0, false)
	}
	s.mu.RUnlock()
	if s.doomed.Load() { // after the page was mapped: see Reap
		return FaultBus
	}
	return r
}

// handle makes the page of va, which v allows, accessible. The caller holds mu
// for reading. With all, the pages behind it are wanted too (populate).
func (s *Space) handle(v *vma, va uint64, write, all bool) FaultResult {
	t := s.makeLeaf(va)
	if t == nil {
		return FaultOOM
	}
	if atomic.LoadUint32(&v.used) == 0 {
		atomic.StoreUint32(&v.used, 1)
	}
	for {
		slot := &t[index(va)]
		e := atomic.LoadUint64(slot)
		r := retry
		switch {
		case e == 0 && v.obj == nil && write:
			r = s.anonWrite(v, t, va, all)
		case e == 0 && v.obj == nil:
			r = s.anonRead(v, t, va)
		case e == 0:
			r = s.object(v, t, va, write)
		case e&pteP == 0: // being replaced
			s.pt.RLock()
			s.pt.RUnlock() //nolint:staticcheck // waits for whoever replaces it
		case !write || e&pteW != 0:
			return FaultOK // another thread was faster
		case v.private():
			r = s.unshare(v, t, va, e)
		default:
			r = s.makeWritable(v, slot, va, e)
		}
		if r != retry {
			return r
		}
	}
}

// retry makes handle start over; callers never see it.
const retry FaultResult = 255

// window returns how many pages from va a fault on fresh memory maps, and expects the
// next fault behind them.
func (s *Space) window(v *vma, t *table, va uint64, all bool) int {
	n := uint64(1)
	last := s.ahead.Load()
	if all {
		n = aroundMax
	} else if last&^pageMask == va {
		n = min(2*(last&pageMask), aroundMax)
	}
	if n > 1 {
		n = min(n, (v.end-va)>>pageShift, 512-uint64(index(va)))
		if mem.Spare() < scarce && !all {
			n = 1
		}
		i := index(va)
		for k := uint64(1); k < n; k++ {
			if atomic.LoadUint64(&t[i+uint(k)]) != 0 {
				n = k
			}
		}
	}
	s.ahead.Store(va + n<<pageShift | n)
	return int(n)
}

// anonWrite maps fresh zeroed pages.
func (s *Space) anonWrite(v *vma, t *table, va uint64, all bool) FaultResult {
	var fresh [aroundMax]mem.Frame
	n := s.window(v, t, va, all)
	if n == 1 {
		var ok bool
		if fresh[0], ok = mem.Alloc(); !ok {
			return FaultOOM
		}
	} else if n = mem.AllocBatch(fresh[:n]); n == 0 {
		return FaultOOM
	}
	bits := v.bits() | pteW | pteD | pteAnon
	i := index(va)
	mapped := int64(0)
	for k, f := range fresh[:n] {
		f.Zero()
		if atomic.CompareAndSwapUint64(&t[i+uint(k)], 0, f.Phys()|bits) {
			mapped++
		} else {
			f.Put()
		}
	}
	s.resident(mapped, 0, 0)
	return FaultOK
}

// anonRead maps the shared page of zeroes.
func (s *Space) anonRead(v *vma, t *table, va uint64) FaultResult {
	e := zeroFrame.Phys() | v.bits()
	i := index(va)
	for k := range uint(s.window(v, t, va, false)) {
		atomic.CompareAndSwapUint64(&t[i+k], 0, e)
	}
	return FaultOK
}

// unshare gives the space its own copy of a page that it may only read now.
func (s *Space) unshare(v *vma, t *table, va uint64, e pte) FaultResult {
	slot := &t[index(va)]
	old := frameOf(e)
	if e&pteAnon != 0 && old.Refs() == 1 {
		// Only this space refers to it, and fork waits for mu.
		if atomic.CompareAndSwapUint64(slot, e, e|pteW|pteD) {
			return FaultOK
		}
		return retry
	}
	f, ok := mem.Alloc()
	if !ok {
		return FaultOOM
	}
	if old == zeroFrame {
		f.Zero()
	}
	s.pt.Lock()
	if !s.suspend(slot, va, e) {
		s.pt.Unlock()
		f.Put()
		return retry
	}
	if old != zeroFrame {
		f.Copy(old)
	}
	atomic.StoreUint64(slot, f.Phys()|v.bits()|pteW|pteD|pteAnon)
	s.pt.Unlock()
	switch {
	case old == zeroFrame:
		s.resident(1, 0, 0)
		return FaultOK
	case e&pteAnon != 0:
	case v.flags&vShmem != 0:
		s.resident(1, 0, -1)
	default:
		s.resident(1, -1, 0)
	}
	old.Put()
	return FaultOK
}

// suspend takes an entry away from all CPUs before another frame is put there:
// none may see the new page while another still sees the old one. The entry is
// not 0 meanwhile, which keeps faults from filling it. False: it has changed.
// The caller holds pt for writing.
func (s *Space) suspend(slot *pte, va uint64, e pte) bool {
	if !atomic.CompareAndSwapUint64(slot, e, e&^pteP) {
		return false
	}
	mmu.Invalidate(&s.AS, va, va+pageSize)
	return true
}

// object maps a page of the mapping's object into an empty entry.
func (s *Space) object(v *vma, t *table, va uint64, write bool) FaultResult {
	// Memory objects have no use for hearing of the first store.
	forWrite := !v.private() && v.prot&linux.PROT_WRITE != 0 && (write || v.flags&vShmem != 0)
	seq := s.zapped.Load()
	i := v.page(va)
	p, e := v.obj.Page(i, forWrite)
	if e != 0 {
		return pageError(e)
	}
	slot := &t[index(va)]
	if write && v.private() {
		f, ok := mem.Alloc()
		if !ok {
			p.Put()
			return FaultOOM
		}
		f.Copy(p)
		p.Put()
		s.pt.RLock()
		ok = s.zapped.Load() == seq && atomic.CompareAndSwapUint64(slot, 0, f.Phys()|v.bits()|pteW|pteD|pteAnon)
		s.pt.RUnlock()
		if !ok { // perhaps the object ends before it now
			f.Put()
			return retry
		}
		s.resident(1, 0, 0)
		return FaultOK
	}
	bits := v.bits()
	if forWrite {
		bits |= pteW | pteD
	}
	s.pt.RLock()
	if s.zapped.Load() != seq || !atomic.CompareAndSwapUint64(slot, 0, p.Phys()|bits) {
		s.pt.RUnlock()
		p.Put()
		return retry
	}
	n := int64(1)
	if c, ok := v.obj.(mem.Cacher); ok && !write {
		s.pt.RUnlock()
		n += s.around(v, t, va, c, seq, bits&^pteA)
	} else {
		s.pt.RUnlock()
	}
	s.countObject(v, n)
	return FaultOK
}

func (s *Space) countObject(v *vma, n int64) {
	if v.flags&vShmem != 0 {
		s.resident(0, 0, n)
	} else {
		s.resident(0, n, 0)
	}
}

// around maps the neighbours of va that are in memory, and returns how many.
func (s *Space) around(v *vma, t *table, va uint64, c mem.Cacher, seq uint64, bits pte) int64 {
	const span = aroundMax * pageSize
	from, to := max(va&^(span-1), v.start), min(va&^(span-1)+span, v.end)
	n := int64(0)
	for a := from; a < to; a += pageSize {
		slot := &t[index(a)]
		if atomic.LoadUint64(slot) != 0 {
			continue
		}
		f, ok := c.Cached(v.page(a))
		if !ok {
			continue
		}
		s.pt.RLock()
		ok = s.zapped.Load() == seq && atomic.CompareAndSwapUint64(slot, 0, f.Phys()|bits)
		s.pt.RUnlock()
		if !ok {
			f.Put()
			break
		}
		n++
	}
	return n
}

// makeWritable makes a shared page writable, which its object hears of.
func (s *Space) makeWritable(v *vma, slot *pte, va uint64, e pte) FaultResult {
	seq := s.zapped.Load()
	p, errno := v.obj.Page(v.page(va), true)
	if errno != 0 {
		return pageError(errno)
	}
	old := frameOf(e)
	s.pt.Lock()
	ok := s.zapped.Load() == seq
	if ok && p == old {
		ok = atomic.CompareAndSwapUint64(slot, e, e|pteW|pteD)
	} else if ok = ok && s.suspend(slot, va, e); ok { // a hole was filled
		atomic.StoreUint64(slot, p.Phys()|v.bits()|pteW|pteD)
	}
	s.pt.Unlock()
	if !ok {
		p.Put()
		return retry
	}
	old.Put() // the entry's own, or the one that Page gave us
	return FaultOK
}

func pageError(e linux.Errno) FaultResult {
	if e == linux.ENOMEM {
		return FaultOOM
	}
	return FaultBus
}

// growStack extends a stack down to addr, if one is above.
func (s *Space) growStack(addr uint64) FaultResult {
	addr &^= pageMask
	s.mu.RLock()
	i := s.find(addr)
	no := i == s.vmas.len() || s.vmas.at(i).flags&vGrowsDown == 0 && s.vmas.at(i).start > addr
	s.mu.RUnlock()
	if no {
		return FaultMapErr
	}
	s.lock()
	defer s.unlock()
	if i = s.find(addr); i == s.vmas.len() {
		return FaultMapErr
	}
	v := s.vmas.at(i)
	if v.start <= addr {
		return FaultOK // another thread was faster
	}
	if v.flags&vGrowsDown == 0 || addr < lowest() || v.end-addr > s.limit(linux.RLIMIT_STACK) {
		return FaultMapErr
	}
	if i > 0 { // what nobody can reach is a guard by itself
		if below := s.vmas.at(i - 1); below.prot != 0 && below.flags&vGrowsDown == 0 && below.end+guardGap > addr {
			return FaultMapErr
		}
	}
	if s.afford(v, v.start-addr) != 0 {
		return FaultMapErr
	}
	s.shrink(v)
	v.start = addr
	s.grow(v)
	return FaultOK
}

// Zap implements mem.Mapper: it unmaps the pages first … first+n-1 of an object,
// with copies private copies too. It is called under the object's locks.
func (s *Space) Zap(o mem.Object, first, n uint64, copies bool) {
	what := zapObject
	if copies {
		what = zapAll
	}
	lo, hi := first<<pageShift, (first+n)<<pageShift
	if first >= 1<<51 {
		return
	}
	if n >= 1<<51-first {
		hi = 1 << 63
	}
	s.pt.Lock()
	s.zapped.Add(1)
	g := s.gather()
	for i := range s.vmas.len() {
		v := s.vmas.at(i)
		if v.obj != o || v.off >= hi || v.off+(v.end-v.start) <= lo {
			continue
		}
		start, end := v.start, v.end
		if lo > v.off {
			start += lo - v.off
		}
		if hi-v.off < v.end-v.start {
			end = v.start + (hi - v.off)
		}
		s.zapRange(g, v, start, end, what)
	}
	g.done()
	s.pt.Unlock()
}

// Protect implements mem.Mapper: the next store to one of the pages first … first+n-1
// of an object is a fault again.
func (s *Space) Protect(o mem.Object, first, n uint64) {
	lo, hi := first<<pageShift, (first+n)<<pageShift
	s.pt.Lock()
	s.zapped.Add(1) // who is about to map one writable asks the object again
	g := s.gather()
	for i := range s.vmas.len() {
		v := s.vmas.at(i)
		if v.obj != o || v.private() || v.off >= hi || v.off+(v.end-v.start) <= lo || atomic.LoadUint32(&v.used) == 0 {
			continue
		}
		start, end := v.start, v.end
		if lo > v.off {
			start += lo - v.off
		}
		if hi-v.off < v.end-v.start {
			end = v.start + (hi - v.off)
		}
		s.protectRange(g, start, end)
	}
	g.done()
	s.pt.Unlock()
}

// protectRange takes the write bits of [start, end) away; the caller holds pt for writing.
func (s *Space) protectRange(g *gather, start, end uint64) {
	for va := start; va < end; {
		t, at, stop := s.next(va, end)
		if t == nil {
			return
		}
		for i, last := index(at), index(stop-pageSize); i <= last; i++ {
			if e := t[i&511]; e&pteW != 0 {
				atomic.StoreUint64(&t[i&511], e&^(pteW|pteD))
				page := at + uint64(i-index(at))<<pageShift
				g.touch(page, page+pageSize)
			}
		}
		va = stop
	}
}
