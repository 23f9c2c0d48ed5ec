package syscall

import (
	"bytes"
	"fmt"
	"sync/atomic"

	"hardtack/kernel/base/checks"
	"hardtack/kernel/reserve"
)

// worst is how often each call was measured and the most that one call allocated, points
// of reservation not counted; only where checks.Bounds.
var worst [TableSize]struct{ calls, bytes atomic.Uint64 }

// noteBytes compares what a call allocated with its bound, and says whether that holds.
// What is measured is all that the call allocated, which is compared with the most that
// is alive of it at once. Where it is more, it must be no more than the call allocates in
// all; where that is not known, than twice the bound: it may have dropped some.
func noteBytes(nr, n uint64) bool {
	w := &worst[nr]
	w.calls.Add(1)
	b := reserve.Table[nr]
	limit := uint64(b.Allocated)
	if limit == 0 {
		limit = 2 * (uint64(b.Transient) + uint64(b.Lasting))
	}
	holds := !b.Known || n <= limit
	for old := w.bytes.Load(); n > old; old = w.bytes.Load() {
		if !w.bytes.CompareAndSwap(old, n) {
			continue
		}
		if !holds {
			println("bounds:", table[nr].Name, "allocated", n, "bytes, its bound is", b.Transient+b.Lasting, "and", b.Allocated, "in all")
			checks.PrintSites()
		}
		break
	}
	return holds
}

// BoundsText is a line for each call that was measured: its name, how often it was made,
// the most bytes that one allocated, its bound and the most that it
// allocates in all, or "unbounded:" and why it has none.
func BoundsText() []byte {
	var b bytes.Buffer
	for nr := range worst {
		calls := worst[nr].calls.Load()
		if calls == 0 || table[nr] == nil {
			continue
		}
		bound := "unbounded: " + reserve.Unbounded[nr]
		if x := reserve.Table[nr]; x.Known {
			bound = fmt.Sprint(x.Transient+x.Lasting, " ", x.Allocated)
		}
		fmt.Fprintf(&b, "%s %d %d %s\n", table[nr].Name, calls, worst[nr].bytes.Load(), bound)
	}
	return b.Bytes()
}
