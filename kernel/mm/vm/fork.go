package vm

import (
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/settings"
)

// What a program used since its last fork, both sides will most likely use again
// at once, and a copy now costs less than the faults. The CPU's own marks tell:
//
//   - Private pages that were written (dirty): the stack, the allocator's data.
//     The first few are copied; the others are shared until written.
//   - Pages of files that were accessed: the code that runs. Their entries are
//     copied; the others are left to faults, as Linux leaves all of them.
//
// The marks are cleared then, so that the next fork sees what came since.
const (
	eagerData  = 12
	eagerStack = 4
	eagerFile  = 128
)

// Fork returns a copy with one user; private pages are shared until written.
// The caller sets Limits of the new space.
func (s *Space) Fork(who *caller.Ctx) (*Space, linux.Errno) {
	n, e := New()
	if e != 0 {
		return nil, e
	}
	n.mu.Lock() // which nobody else knows yet, so that mu comes before any pt
	s.lock()
	if tooMany(s.vmas.len(), s.vmas.len()) ||
		settings.OvercommitMemory.Get() == overcommitNever && !s.mayCommit(uint64(max(s.committed, 0))) {
		s.unlock()
		n.mu.Unlock()
		n.Release()
		return nil, linux.ENOMEM
	}
	n.brkStart, n.brk = s.brkStart, s.brk
	n.SetOwner(s.owner.Load())
	n.dumpable.Store(s.dumpable.Load())
	n.Barriers.Store(s.Barriers.Load())
	n.mmapBase, n.holeTop, n.holeMin = s.mmapBase, s.holeTop, s.holeMin
	n.vmas = s.vmas.clone()
	c := forker{from: s, to: n, data: eagerData, stack: eagerStack, files: eagerFile}
	for i := 0; i < n.vmas.len(); {
		w := n.vmas.at(i)
		if w.flags&vDontFork != 0 {
			n.vmas.remove(i, i+1)
			n.holeTop = n.mmapBase
			continue
		}
		w.flags &^= vLocked | vOnFault
		b := w.backing()
		b.hold(1)
		n.grow(w)
		used := w.used != 0 && w.private() && w.flags&vWipe == 0
		w.used = 0
		switch {
		case e != 0 || !used:
		case caller.Killed(who):
			e = linux.EINTR
		case !c.copy(w):
			e = linux.ENOMEM
		}
		i++
	}
	if c.hi > c.lo {
		mmu.Invalidate(&s.AS, c.lo, c.hi)
	}
	n.resident(c.anon, c.file, c.shmem)
	n.mu.Unlock()
	zapped := s.zapped.Load()
	s.pt.Unlock()
	n.registerAll()
	// With mu held the objects know s until here, and from here on n.
	if s.zapped.Load() != zapped {
		n.forgetFiles()
	}
	s.mu.Unlock()
	if e != 0 {
		n.Release()
		return nil, e
	}
	return n, 0
}

// registerAll tells the objects of all mappings of a space that nobody uses yet.
func (s *Space) registerAll() {
	for i := 0; i < s.vmas.len(); i++ {
		b := s.vmas.at(i).backing()
		k := 1
		for i+1 < s.vmas.len() && b.same(s.vmas.at(i+1)) {
			i++
			k++
		}
		b.register(s, k)
	}
}

// forgetFiles unmaps all pages of objects.
func (s *Space) forgetFiles() {
	s.pt.Lock()
	g := s.gather()
	for i := range s.vmas.len() {
		if v := s.vmas.at(i); v.obj != nil {
			s.zapRange(g, v, v.start, v.end, zapObject)
		}
	}
	g.done()
	s.pt.Unlock()
}

// forker copies the private mappings' pages of one space to another that nobody
// uses yet.
type forker struct {
	from, to           *Space
	data, stack, files int    // pages that may still be copied at once
	anon, file, shmem  int64  // pages the copy has
	lo, hi             uint64 // where entries of from changed
}

// copy shares or copies the pages of v, a mapping of the copy; false means out of
// memory.
func (c *forker) copy(v *vma) bool {
	eager := &c.data
	if v.flags&vGrowsDown != 0 {
		eager = &c.stack
	}
	for va := v.start; va < v.end; {
		t, at, stop := c.from.next(va, v.end)
		if t == nil {
			break
		}
		va = stop
		var to *table
		changed := false
		for i, last, checked := index(at), index(stop-pageSize), uint(0); i <= last; i++ {
			if i >= checked {
				if checked = i + 8; t.none(i, last, pteAnon|pteA) {
					i += 7
					continue
				}
			}
			e := t[i&511]
			if e&(pteAnon|pteA) == 0 {
				continue // part of a file that was not used, or nothing
			}
			f := frameOf(e)
			if e&pteAnon == 0 && (e&pteP == 0 || c.files == 0 || f == zeroFrame) {
				continue
			}
			if to == nil {
				v.used = 1
				if to = c.to.makeLeaf(at); to == nil {
					return false
				}
			}
			switch {
			case e&pteAnon == 0:
				c.files--
				if v.flags&vShmem != 0 {
					c.shmem++
				} else {
					c.file++
				}
				atomic.AndUint64(&t[i], ^pteA)
				changed = true
				f.Get()
				to[i] = e
				continue
			case e&(pteW|pteD) == pteW|pteD && *eager > 0:
				n, ok := mem.Alloc()
				if !ok {
					return false
				}
				*eager--
				n.Copy(f)
				atomic.AndUint64(&t[i], ^pteD)
				changed = true
				to[i] = e&^(pteAddr|pteD) | n.Phys()
			default:
				if e&pteW != 0 {
					atomic.AndUint64(&t[i], ^(pteW | pteD))
					changed = true
				}
				f.Get()
				to[i] = e &^ (pteW | pteD)
			}
			c.anon++
		}
		if changed {
			if c.hi == 0 {
				c.lo = at
			}
			c.hi = stop
		}
	}
	return true
}
