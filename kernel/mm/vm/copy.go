package vm

import (
	"bytes"

	"hardtack/abi/linux"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/nucleus"
)

// Copies go through the direct map: the page tables are walked as the CPU would
// do it, and what they do not allow goes through Fault as the CPU's faults do.
// Only entries for user mode exist below userTop, so that a wild address can
// reach nothing else. pt is held for reading while a page is copied, which keeps
// the frame from being freed.

// page returns the frame of va, or nil if the tables do not allow the access. The
// caller holds pt for reading.
func (s *Space) page(va uint64, need pte) *[pageSize]byte {
	t := s.leaves.get(va)
	if t == nil {
		if t = s.walk(va); t == nil {
			return nil
		}
	}
	e := load(&t[index(va)])
	if e&need != need {
		return nil
	}
	return mem.PageAt(e & pteAddr)
}

// frame returns the bytes of va up to the end of its page, or nil.
func (s *Space) frame(va uint64, need pte) []byte {
	if p := s.page(va, need); p != nil {
		return p[va&pageMask:]
	}
	return nil
}

// Place returns where a byte that can be written is in the kernel's memory, while the space
// has a generation; 0: it is not there. Who uses the place is on a CPU that is about to enter
// user mode with the space, and looks at the generation before.
func (s *Space) Place(a uio.Addr) (at uintptr, gen uint64) {
	gen = s.AS.Gen.Load()
	if a >= userTop {
		return 0, 0
	}
	s.pt.RLock()
	defer s.pt.RUnlock()
	if b := s.frame(uint64(a), pteP|pteW); b != nil {
		return address(b), gen
	}
	return 0, 0
}

// CopyIn implements uio.Memory. ENOMEM means that a page was wanted and memory
// is exhausted.
func (s *Space) CopyIn(dst []byte, src uio.Addr) (int, linux.Errno) {
	va := uint64(src)
	if off := va & pageMask; va < userTop && off+uint64(len(dst)) <= pageSize {
		s.pt.RLock()
		if p := s.page(va, pteP); p != nil {
			copy(dst, p[off:])
			s.pt.RUnlock()
			return len(dst), 0
		}
		s.pt.RUnlock()
	}
	return s.copyIn(dst, va)
}

// copyIn is CopyIn page by page, with faults.
func (s *Space) copyIn(dst []byte, va uint64) (int, linux.Errno) {
	done := 0
	for done < len(dst) {
		if va >= userTop {
			return done, linux.EFAULT
		}
		s.pt.RLock()
		n := copy(dst[done:], s.frame(va, pteP))
		s.pt.RUnlock()
		if n == 0 {
			if r := s.faultIn(va, readCode); r != FaultOK {
				return done, r.errno()
			}
		}
		va += uint64(n)
		done += n
	}
	return done, 0
}

// CopyOut implements uio.Memory.
func (s *Space) CopyOut(dst uio.Addr, src []byte) (int, linux.Errno) {
	va := uint64(dst)
	if off := va & pageMask; va < userTop && off+uint64(len(src)) <= pageSize {
		s.pt.RLock()
		if p := s.page(va, pteP|pteW); p != nil {
			copy(p[off:], src)
			s.pt.RUnlock()
			return len(src), 0
		}
		s.pt.RUnlock()
	}
	return s.copyOut(va, src)
}

// copyOut is CopyOut page by page, with faults.
func (s *Space) copyOut(va uint64, src []byte) (int, linux.Errno) {
	done := 0
	for done < len(src) {
		if va >= userTop {
			return done, linux.EFAULT
		}
		s.pt.RLock()
		n := copy(s.frame(va, pteP|pteW), src[done:])
		s.pt.RUnlock()
		if n == 0 {
			if r := s.faultIn(va, writeCode); r != FaultOK {
				return done, r.errno()
			}
		}
		va += uint64(n)
		done += n
	}
	return done, 0
}

// ReadString reads a string that ends in NUL; ENAMETOOLONG if there is none in
// max bytes.
func (s *Space) ReadString(a uio.Addr, max int) (string, linux.Errno) {
	var long []byte // what came from earlier pages
	va := uint64(a)
	for max > 0 {
		if va >= userTop {
			return "", linux.EFAULT
		}
		s.pt.RLock()
		b := s.frame(va, pteP)
		b = b[:min(len(b), max)]
		if i := bytes.IndexByte(b, 0); i >= 0 {
			if long == nil {
				str := string(b[:i])
				s.pt.RUnlock()
				return str, 0
			}
			long = append(long, b[:i]...)
			s.pt.RUnlock()
			return string(long), 0
		}
		long = append(long, b...)
		n := len(b)
		s.pt.RUnlock()
		if n == 0 && s.faultIn(va, readCode) != FaultOK {
			return "", linux.EFAULT
		}
		va += uint64(n)
		max -= n
	}
	return "", linux.ENAMETOOLONG
}

// word returns the bytes of an aligned word with pt held for reading, or EFAULT
// with no lock held.
func (s *Space) word(a uio.Addr, size uint64, need pte, code uint64) ([]byte, linux.Errno) {
	va := uint64(a)
	for va < userTop && va&(size-1) == 0 {
		s.pt.RLock()
		if b := s.frame(va, need); b != nil {
			return b, 0
		}
		s.pt.RUnlock()
		if s.faultIn(va, code) != FaultOK {
			break
		}
	}
	return nil, linux.EFAULT
}

const (
	readCode  = nucleus.FaultUser
	writeCode = nucleus.FaultUser | nucleus.FaultWrite
)

// The accesses below are atomic and want aligned addresses (EFAULT).

// LoadU32 reads a word.
func (s *Space) LoadU32(a uio.Addr) (uint32, linux.Errno) {
	b, e := s.word(a, 4, pteP, readCode)
	if e != 0 {
		return 0, e
	}
	v := load32(b)
	s.pt.RUnlock()
	return v, 0
}

// StoreU32 writes a word.
func (s *Space) StoreU32(a uio.Addr, v uint32) linux.Errno {
	b, e := s.word(a, 4, pteP|pteW, writeCode)
	if e != 0 {
		return e
	}
	store32(b, v)
	s.pt.RUnlock()
	return 0
}

// CASU32 stores new if the word is old; it returns what it was before.
func (s *Space) CASU32(a uio.Addr, old, new uint32) (uint32, linux.Errno) {
	b, e := s.word(a, 4, pteP|pteW, writeCode)
	if e != 0 {
		return 0, e
	}
	v := cas32(b, old, new)
	s.pt.RUnlock()
	return v, 0
}

// LoadU64 reads a double word.
func (s *Space) LoadU64(a uio.Addr) (uint64, linux.Errno) {
	b, e := s.word(a, 8, pteP, readCode)
	if e != 0 {
		return 0, e
	}
	v := load64(b)
	s.pt.RUnlock()
	return v, 0
}

// StoreU64 writes a double word.
func (s *Space) StoreU64(a uio.Addr, v uint64) linux.Errno {
	b, e := s.word(a, 8, pteP|pteW, writeCode)
	if e != 0 {
		return e
	}
	store64(b, v)
	s.pt.RUnlock()
	return 0
}

// Key identifies a futex word: comparable, usable as a map key. ID is the
// space's, or the object's where the memory is shared.
type Key struct{ ID, Off uint64 }

// FutexKey returns the identity of a futex word. Private says that only this
// space uses it; else the page is made accessible, for writing if it can be or,
// with write, must be, and what it belongs to decides. Private and shared uses of
// one word do not meet.
func (s *Space) FutexKey(a uio.Addr, private, write bool) (Key, linux.Errno) {
	va := uint64(a)
	if va&3 != 0 {
		return Key{}, linux.EINVAL
	}
	if va >= userTop {
		return Key{}, linux.EFAULT
	}
	if private {
		return Key{s.id, va}, 0
	}
	readOnly := false
	_, e := s.word(a, 4, pteP|pteW, writeCode)
	if e != 0 && !write {
		readOnly = true
		_, e = s.word(a, 4, pteP, readCode)
	}
	if e != 0 {
		return Key{}, e
	}
	s.pt.RUnlock()
	return s.sharedKey(va, readOnly)
}

// sharedKey is FutexKey of a page that is accessible: by its object, or by the
// space if it is an own copy. An own copy that is read-only can never change.
func (s *Space) sharedKey(va uint64, readOnly bool) (Key, linux.Errno) {
	const shared = 1 // in Off, whose low bits are free
	s.mu.RLock()
	defer s.mu.RUnlock()
	v := s.at(va)
	switch {
	case v == nil || v.prot == 0:
		return Key{}, linux.EFAULT
	case v.private() && !readOnly:
		return Key{s.id, va | shared}, 0
	case v.obj == nil || v.private() && s.ownCopy(va):
		return Key{}, linux.EFAULT
	}
	m := v.obj.Mappings()
	if m == nil {
		return Key{}, linux.EFAULT
	}
	return Key{m.ID(), v.off + (va - v.start)}, 0
}

// ownCopy reports whether the page of va is anonymous; called with mu held for
// reading.
func (s *Space) ownCopy(va uint64) bool {
	s.pt.RLock()
	defer s.pt.RUnlock()
	t := s.walk(va)
	return t != nil && load(&t[index(va)])&pteAnon != 0
}
