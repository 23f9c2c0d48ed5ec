package vm

import (
	"sync/atomic"

	"hardtack/kernel/base/mem"
)

// Residency says what of a range is in memory, in bytes (/proc/PID/smaps).
type Residency struct {
	RSS, PSS, PSSDirty         uint64
	SharedClean, SharedDirty   uint64
	PrivateClean, PrivateDirty uint64
	Referenced, Anonymous      uint64
}

// Residency looks at the pages mapped in [start, end). A page is shared if
// somebody else refers to it too, besides the file that it is of; the marks are
// the CPU's since the last fork.
func (s *Space) Residency(start, end uint64) (r Residency) {
	for va := start; va < end; {
		s.pt.RLock()
		t, at, stop := s.next(va, end)
		if t == nil {
			s.pt.RUnlock()
			break
		}
		for i, last := index(at), index(stop-pageSize); i <= last; i++ {
			if e := load(&t[i&511]); e != 0 && frameOf(e) != zeroFrame {
				r.add(e)
			}
		}
		s.pt.RUnlock()
		va = stop
	}
	return r
}

// Add adds the sizes of another range.
func (r *Residency) Add(o *Residency) {
	r.RSS += o.RSS
	r.PSS += o.PSS
	r.PSSDirty += o.PSSDirty
	r.SharedClean += o.SharedClean
	r.SharedDirty += o.SharedDirty
	r.PrivateClean += o.PrivateClean
	r.PrivateDirty += o.PrivateDirty
	r.Referenced += o.Referenced
	r.Anonymous += o.Anonymous
}

func (r *Residency) add(e pte) {
	users := int64(frameOf(e).Refs())
	dirty := e&pteD != 0
	if e&pteAnon != 0 {
		r.Anonymous += mem.PageSize
		dirty = true // there is no copy elsewhere
	} else {
		users-- // the object's own
	}
	r.RSS += mem.PageSize
	r.PSS += mem.PageSize / uint64(max(users, 1))
	if dirty {
		r.PSSDirty += mem.PageSize / uint64(max(users, 1))
	}
	if e&pteA != 0 {
		r.Referenced += mem.PageSize
	}
	switch shared := users > 1; {
	case shared && dirty:
		r.SharedDirty += mem.PageSize
	case shared:
		r.SharedClean += mem.PageSize
	case dirty:
		r.PrivateDirty += mem.PageSize
	default:
		r.PrivateClean += mem.PageSize
	}
}

// What ClearReferenced goes over.
const (
	AllPages = iota
	AnonymousMappings
	FileMappings
)

// ClearReferenced forgets which pages were used since the last time (clear_refs).
func (s *Space) ClearReferenced(which int) {
	s.Maps(func(m MapInfo) bool {
		if which == AnonymousMappings && m.File != nil || which == FileMappings && m.File == nil {
			return true
		}
		s.pt.Lock()
		defer s.pt.Unlock()
		for va := m.Start; va < m.End; {
			t, at, stop := s.next(va, m.End)
			if t == nil {
				break
			}
			for i, last := index(at), index(stop-pageSize); i <= last; i++ {
				if load(&t[i&511])&(pteP|pteA) == pteP|pteA {
					atomic.AndUint64(&t[i&511], ^pteA)
				}
			}
			va = stop
		}
		mmu.Invalidate(&s.AS, m.Start, m.End)
		return true
	})
}

// ResetPeak lets the greatest number of resident pages be what it is now.
func (s *Space) ResetPeak() { s.hwm.Store(s.pages()) }
