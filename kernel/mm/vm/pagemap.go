package vm

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/mem"
)

// Bits of an entry of /proc/PID/pagemap; below them is the frame's number.
const (
	pagemapExclusive = 1 << 56
	pagemapFile      = 1 << 61
	pagemapPresent   = 1 << 63
	pagemapFrame     = 1<<55 - 1
)

// Pagemap fills entries for the pages from va on; frames says whether the numbers of
// frames are shown.
func (s *Space) Pagemap(va uint64, entries []uint64, frames bool) {
	clear(entries)
	end := va + uint64(len(entries))*pageSize
	for at := va; at < end; {
		s.pt.RLock()
		t, first, stop := s.next(at, end)
		if t == nil {
			s.pt.RUnlock()
			return
		}
		for p := first; p < stop; p += pageSize {
			if e := load(&t[index(p)]); e&pteP != 0 {
				entries[(p-va)/pageSize] = pagemapEntry(e, frames)
			}
		}
		s.pt.RUnlock()
		at = stop
	}
}

func pagemapEntry(e pte, frames bool) uint64 {
	v := uint64(pagemapPresent)
	users := int64(frameOf(e).Refs())
	if e&pteAnon == 0 && frameOf(e) != zeroFrame {
		v |= pagemapFile
		users--
	}
	if users <= 1 && frameOf(e) != zeroFrame {
		v |= pagemapExclusive
	}
	if frames {
		v |= e & pteAddr >> pageShift & pagemapFrame
	}
	return v
}

// UserTop is the first address that programs cannot map.
const UserTop = userTop

// Peek copies from another program's memory whatever the protection of a mapping, and
// Poke into it; the latter gives a private mapping a page of its own. EIO where nothing
// is mapped.
func (s *Space) Peek(b []byte, from uint64) (int, linux.Errno) {
	done := 0
	for done < len(b) {
		n := min(len(b)-done, int(pageSize-from&pageMask))
		if !s.forced(from, false, func(p []byte) { copy(b[done:done+n], p) }) {
			return done, linux.EIO
		}
		done, from = done+n, from+uint64(n)
	}
	return done, 0
}

// Poke is Peek the other way.
func (s *Space) Poke(b []byte, to uint64) (int, linux.Errno) {
	done := 0
	for done < len(b) {
		n := min(len(b)-done, int(pageSize-to&pageMask))
		if !s.forced(to, true, func(p []byte) { copy(p, b[done:done+n]) }) {
			return done, linux.EIO
		}
		done, to = done+n, to+uint64(n)
	}
	return done, 0
}

// forced calls fn with the bytes of a page from va on.
func (s *Space) forced(va uint64, write bool, fn func(p []byte)) bool {
	need, code := pteP, uint64(readCode)
	if write {
		need, code = pteP|pteW, writeCode
	}
	for range 16 { // somebody may take the page away again
		if va >= userTop {
			return false
		}
		s.pt.RLock()
		if p := s.frame(va, need); p != nil {
			fn(p)
			s.pt.RUnlock()
			return true
		}
		s.pt.RUnlock()
		if s.Fault(va, code) != FaultOK {
			return !write && s.hidden(va, fn)
		}
	}
	return false
}

// hidden reads a page of a mapping without access (PROT_NONE).
func (s *Space) hidden(va uint64, fn func(p []byte)) bool {
	s.mu.RLock()
	v := s.at(va)
	s.mu.RUnlock()
	if v == nil || v.prot != 0 {
		return false
	}
	s.pt.RLock()
	defer s.pt.RUnlock()
	t := s.walk(va)
	if t == nil {
		return false
	}
	if e := load(&t[index(va)]); e&pteAddr != 0 {
		fn(mem.PageAt(e & pteAddr)[va&pageMask:])
	} else {
		fn(make([]byte, pageSize)[va&pageMask:])
	}
	return true
}
