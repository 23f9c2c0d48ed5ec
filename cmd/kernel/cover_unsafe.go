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

// list returns the counters.
func (b counterBlob) list() []uint32 { return unsafe.Slice(b.counters, b.n) }
