package main

import (
	"fmt"
	"slices"
	"time"

	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/mem"
	"hardtack/nucleus"
)

// The frames of rings between processes of different clusters (monitor.Memory).

// LendFrames takes frames of this kernel, the first one.
func (h host) LendFrames(n int) []uint32 {
	list := make([]uint32, 0, n)
	for range n {
		f, ok := mem.AllocZeroed()
		if !ok {
			h.ReturnFrames(list)
			return nil
		}
		list = append(list, uint32(f))
	}
	return list
}

// ReturnFrames gives them up. Processes of this kernel may still have mapped them.
func (h host) ReturnFrames(frames []uint32) {
	for _, f := range frames {
		mem.Frame(f).Put()
	}
}

// MapFrames maps frames of the first cluster. This kernel's reference keeps them from its
// allocator.
func (h host) MapFrames(frames []uint32) bool {
	if !nucleus.MapFrames(frames) {
		return false
	}
	for _, f := range frames {
		mem.Adopt(mem.Frame(f))
	}
	return true
}

// UnmapFrames waits until that reference is the last: of what processes have done with the frames
// something may be under way.
func (h host) UnmapFrames(frames []uint32) {
	used := func(f uint32) bool { return mem.Frame(f).Refs() > 1 }
	for pause := time.Millisecond; slices.ContainsFunc(frames, used); pause = min(2*pause, time.Second) {
		time.Sleep(pause)
	}
	nucleus.UnmapFrames(frames)
}

// ringsLedger charges root for rings between two other clusters.
func (k *kernel) ringsLedger(charge ledger.Charge) {
	if m := k.others.monitor; m != nil {
		charge(0, 0, ledger.FilePages, int64(m.LentToOthers())*mem.PageSize)
	}
}

// ringsText is /proc/hardtack/rings.
func (k *kernel) ringsText() []byte {
	return fmt.Appendf(nil, "lent %d mapped %d\n", k.others.monitor.Lent(), nucleus.SharedFrames())
}
