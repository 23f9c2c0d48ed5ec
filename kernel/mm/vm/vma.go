package vm

import (
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/fs/vfs"
)

// allMaps counts the mappings of all spaces. They are in the kernel's heap, about
// 100 bytes each, so there may be no more of them than the machine has frames
// (a fortieth of its memory), or leastMaps. Spaces with few are not held to it:
// one greedy program does not keep the others from mapping anything.
var allMaps atomic.Int64

const (
	leastMaps = 16384
	fewMaps   = 256
)

// tooMany reports whether a space may not come to have n mappings, more of them new.
func tooMany(n, more int) bool {
	return n > fewMaps && (int64(n) > settings.MaxMapCount.Get() || allMaps.Load()+int64(more) > int64(max(mem.Total(), leastMaps)))
}

// full reports whether n mappings more are too many. The caller holds mu.
func (s *Space) full(n int) bool { return n > 0 && tooMany(s.vmas.len()+n, n) }

// guardGap is kept free below a stack that may grow.
const guardGap = 256 * pageSize

// Flags of a mapping.
const (
	vShared    uint32 = 1 << iota
	vGrowsDown        // a stack
	vDontFork         // MADV_DONTFORK
	vWipe             // MADV_WIPEONFORK
	vLocked           // mlock
	vOnFault          // … without populating
	vNoReserve        // MAP_NORESERVE
	vMayWrite         // mprotect may add PROT_WRITE
	vNoExec           // mprotect may not add PROT_EXEC
	vSpecial          // the kernel's own pages
	vShmem            // the object is memory, not a file: counted as such
	vAccount          // counted though it cannot be written to: it has pages of before
)

// vma is one mapping. It is guarded as Space.vmas is, but for used.
type vma struct {
	start, end uint64
	off        uint64 // of start in the object, bytes
	prot       uint32
	flags      uint32
	used       uint32 // atomic: 1 once an entry may have been made
	obj        mem.Object
	file       *vfs.File // holds a reference; nil for anonymous memory
	name       string
}

// page returns the object's page number at va.
func (v *vma) page(va uint64) uint64 { return (v.off + (va - v.start)) >> pageShift }

// low returns where the hole below the mapping ends.
func (v *vma) low() uint64 {
	if v.flags&vGrowsDown != 0 && v.start > guardGap {
		return v.start - guardGap
	}
	return v.start
}

// bits returns the entry bits of a page of v that may be read; write adds pteW.
func (v *vma) bits() pte {
	if v.prot == 0 {
		return pteU | pteA | pteNX
	}
	if v.prot&linux.PROT_EXEC != 0 {
		return pteP | pteU | pteA
	}
	return pteP | pteU | pteA | pteNX
}

// private reports whether stores stay in this space.
func (v *vma) private() bool { return v.flags&vShared == 0 }

// kernels reports whether v shows what the kernel keeps up to date.
func (v *vma) kernels() bool { return v.flags&(vSpecial|vMayWrite) == vSpecial }

// writes reports whether stores may reach the object, now or after mprotect.
func (v *vma) writes() bool { return v.flags&(vShared|vMayWrite) == vShared|vMayWrite }

// committed reports whether the mapping may use up memory of its own.
func (v *vma) committed() bool {
	return v.private() && (v.prot&linux.PROT_WRITE != 0 || v.flags&vAccount != 0) && v.flags&vNoReserve == 0
}

// joins reports whether w, which begins where v ends, continues v.
func (v *vma) joins(w *vma) bool {
	return v.end == w.start && v.prot == w.prot && v.flags == w.flags && v.file == w.file && v.name == w.name &&
		v.obj == w.obj && (v.obj == nil || v.off+(v.end-v.start) == w.off) && v.flags&vGrowsDown == 0
}

// find returns the index of the first mapping that ends above addr; it may
// begin above it too. The caller holds mu or pt.
func (s *Space) find(addr uint64) int {
	n, h := s.vmas.len(), int(s.hint.Load())
	if h <= n && (h == 0 || s.vmas.at(h-1).end <= addr) {
		if h == n || addr < s.vmas.at(h).end {
			return h
		}
		if h+1 == n || addr < s.vmas.at(h+1).end {
			return h + 1
		}
	}
	i := s.vmas.find(addr)
	s.hint.Store(uint32(i))
	return i
}

// at returns the mapping of addr or nil.
func (s *Space) at(addr uint64) *vma {
	if h := int(s.hint.Load()); h < s.vmas.len() {
		if v := s.vmas.at(h); addr-v.start < v.end-v.start {
			return v
		}
	}
	if i := s.find(addr); i < s.vmas.len() && s.vmas.at(i).start <= addr {
		return s.vmas.at(i)
	}
	return nil
}

// free reports whether nothing is mapped in [start, end).
func (s *Space) free(start, end uint64) bool {
	i := s.find(start)
	return i == s.vmas.len() || s.vmas.at(i).start >= end
}

// The functions below change the list: the caller holds mu and pt for writing.

// dup takes what another mapping of the same object needs.
func (s *Space) dup(v *vma) {
	if v.obj == nil {
		return
	}
	b := v.backing()
	b.hold(1)
	s.born = append(s.born, b)
}

// bury has what v held released when the locks are.
func (s *Space) bury(v *vma) {
	if v.obj != nil {
		s.dead = append(s.dead, v.backing())
	}
}

// split makes addr a boundary and returns the index of the first mapping that
// begins at or above it.
func (s *Space) split(addr uint64) int {
	i := s.find(addr)
	if i == s.vmas.len() || s.vmas.at(i).start >= addr {
		return i
	}
	v := *s.vmas.at(i)
	s.dup(&v)
	s.vmas.at(i).end = addr
	v.off += addr - v.start
	v.start = addr
	s.vmas.insert(i+1, &v)
	return i + 1
}

// splits returns how many mappings more a change of [start, end) may make.
func (s *Space) splits(start, end uint64) int {
	n := 0
	if v := s.at(start); v != nil && v.start < start {
		n++
	}
	if v := s.at(end - 1); v != nil && v.end > end {
		n++
	}
	return n
}

// merge joins mappings of indices i-1 … j that continue each other.
func (s *Space) merge(i, j int) {
	i, j = max(i, 1), min(j, s.vmas.len()-1)
	for ; i <= j; j-- {
		v, w := s.vmas.at(j-1), s.vmas.at(j)
		if !v.joins(w) {
			continue
		}
		v.end = w.end
		v.used |= w.used
		s.bury(w)
		s.vmas.remove(j, j+1)
	}
}

// hole returns the bounds of the hole that would be there without the
// mappings [i, j).
func (s *Space) hole(i, j int) (lo, hi uint64) {
	hi = 1 << 47
	if i > 0 {
		lo = s.vmas.at(i - 1).end
	}
	if j < s.vmas.len() {
		hi = s.vmas.at(j).start
	}
	return lo, hi
}

// insert adds a mapping to a free place, joined with its neighbours if it
// continues them.
func (s *Space) insert(v vma) {
	i := s.find(v.start)
	s.vmas.insert(i, &v)
	s.grow(&v)
	s.merge(i, i+1)
}

// grow and shrink keep the sums.
func (s *Space) grow(v *vma) {
	s.size += v.end - v.start
	s.peak = max(s.peak, s.size)
	if v.flags&vLocked != 0 {
		s.locked += v.end - v.start
	}
	if v.committed() {
		s.commit(int64(v.end - v.start))
	}
}

func (s *Space) shrink(v *vma) {
	s.size -= v.end - v.start
	if v.flags&vLocked != 0 {
		s.locked -= v.end - v.start
	}
	if v.committed() {
		s.commit(-int64(v.end - v.start))
	}
}

// remove unmaps [start, end), which has boundaries at both ends.
func (s *Space) remove(g *gather, start, end uint64) {
	i := s.find(start)
	j := i
	for ; j < s.vmas.len() && s.vmas.at(j).start < end; j++ {
		v := s.vmas.at(j)
		s.zapRange(g, v, v.start, v.end, zapAll)
		s.shrink(v)
		s.bury(v)
	}
	if i == j {
		return
	}
	lo, hi := s.hole(i, j)
	s.prune(g, s.vmas.at(i).start, s.vmas.at(j-1).end, lo, hi)
	s.vmas.remove(i, j)
	if hi > s.holeTop {
		s.holeTop = min(hi, s.mmapBase)
	}
}

// unmap unmaps whatever is in [start, end).
func (s *Space) unmap(start, end uint64) {
	if s.free(start, end) {
		return
	}
	s.split(start)
	s.split(end)
	g := s.gather()
	s.remove(g, start, end)
	g.done()
}
