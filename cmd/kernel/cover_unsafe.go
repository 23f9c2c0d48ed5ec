//go:build hardtack_cover

package main

import "unsafe"

// counterBlob is the counters of the whole program, as Go's runtime has them.
type counterBlob struct {
	counters *uint32
	n        uint64
}

//go:linkname counterList internal/coverage/cfile.getCovCounterList
func counterList() []counterBlob

// counterMode is the mode that the program was built with.
//
//go:linkname counterMode internal/coverage/cfile.cmode
var counterMode coverMode

type coverMode uint8

// coverAtomic is internal/coverage.CtrModeAtomic.
const coverAtomic coverMode = 3

// list returns the counters.
func (b counterBlob) list() []uint32 { return unsafe.Slice(b.counters, b.n) }
