//go:build hardtack_cover

package main

import (
	"bytes"
	"runtime/coverage"
)

// A kernel built with --cover notes which of its statements run, and gives the host its
// notes when the machine ends well.

// saveCover sends what was noted to the host.
func (k *kernel) saveCover() {
	if k.control == nil {
		return
	}
	forgetEarly()
	var meta, counters bytes.Buffer
	err := coverage.WriteMeta(&meta)
	if err == nil {
		// WriteCounters accepts no other mode, since statements may run meanwhile. What
		// they would add is lost.
		counterMode = coverAtomic
		err = coverage.WriteCounters(&counters)
	}
	if err == nil {
		err = k.control.Cover(meta.Bytes(), counters.Bytes())
	}
	if err != nil {
		warn("coverage: %v", err)
	}
}
