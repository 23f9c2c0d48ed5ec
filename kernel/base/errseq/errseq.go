// Package errseq counts write-back errors, so that each open file reports an error once,
// and an error that happened while the file was not open is not lost (like Linux's
// errseq).
package errseq

import (
	"sync/atomic"

	"hardtack/abi/linux"
)

// Seq is the errors of one file, disk or file system: the last error, whether anybody
// has seen it, and a count. The zero Seq has none. It needs no lock.
//
//	bits 0–11 errno, 12 seen, 13–31 count
type Seq struct{ w atomic.Uint32 }

const (
	errSeen = 1 << 12
	errOne  = 1 << 13
)

// Set notes an error.
func (s *Seq) Set(e linux.Errno) {
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
func (s *Seq) Sample() uint32 {
	w := s.w.Load()
	if w&errSeen == 0 {
		return 0
	}
	return w
}

// Check returns the error that came since *since, once, and moves *since on.
func (s *Seq) Check(since *atomic.Uint32) linux.Errno {
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
