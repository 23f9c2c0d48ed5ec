//go:build hardtack_cover

package main

import (
	"bytes"
	"runtime/coverage"
)

// A kernel built with --cover counts which of its statements run, and gives the host the
// counts when the machine ends well.

// saveCover sends what was counted to the host.
func (k *kernel) saveCover() {
	if k.control == nil {
		return
	}
	forgetEarly()
	var meta, counters bytes.Buffer
	err := coverage.WriteMeta(&meta)
	if err == nil {
		err = coverage.WriteCounters(&counters)
	}
	if err == nil {
		err = k.control.Cover(meta.Bytes(), counters.Bytes())
	}
	if err != nil {
		warn("coverage: %v", err)
	}
}
