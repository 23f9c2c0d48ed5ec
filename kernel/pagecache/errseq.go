package pagecache

import (
	"sync/atomic"

	"hardtack/abi/linux"
)

// ErrSeq counts errors of writing so that each open file hears of one once (as
// Linux's errseq). The word is the last error, whether anybody has seen it, and a
// count:
//
//	bits 0–11 errno, 12 seen, 13–31 count
type ErrSeq struct{ w atomic.Uint32 }

const (
	errSeen = 1 << 12
	errOne  = 1 << 13
)

// Set notes an error.
func (s *ErrSeq) Set(e linux.Errno) {
	for {
		w := s.w.Load()
		next := w&^(errSeen-1) | uint32(e)
		if w&errSeen != 0 || w == 0 {
			next = next&^errSeen + errOne
		}
		if s.w.CompareAndSwap(w, next) {
			return
		}
	}
}

// Sample is what a file remembers when it is opened: an error that nobody has seen
// yet will be news to it.
func (s *ErrSeq) Sample() uint32 {
	w := s.w.Load()
	if w&errSeen == 0 {
		return 0
	}
	return w
}

// Check returns the error that came since *since, once, and moves *since on.
func (s *ErrSeq) Check(since *atomic.Uint32) linux.Errno {
	w := s.w.Load()
	if w == since.Load() {
		return 0
	}
	if w&errSeen == 0 {
		s.w.CompareAndSwap(w, w|errSeen)
		w |= errSeen
	}
	if since.Swap(w) == w {
		return 0 // another thread told it
	}
	return linux.Errno(w & (errSeen - 1))
}
