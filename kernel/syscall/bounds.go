package syscall

import (
	"bytes"
	"fmt"
	"sync/atomic"

	"hardtack/kernel/reserve"
)

// worst is how often each call was measured and the most that one call allocated, points
// of reservation not counted; only where checks.Bounds.
var worst [tableSize]struct{ calls, bytes atomic.Uint64 }

// noteBytes compares what a call allocated with its bound, and says whether that holds.
// A call allocates at least what is alive of it at once: the comparison is stricter than
// the bound.
func noteBytes(nr, n uint64) bool {
	w := &worst[nr]
	w.calls.Add(1)
	b := reserve.Table[nr]
	holds := !b.Known || n <= uint64(b.Transient)+uint64(b.Lasting)
	for old := w.bytes.Load(); n > old; old = w.bytes.Load() {
		if !w.bytes.CompareAndSwap(old, n) {
			continue
		}
		if !holds {
			println("bounds:", table[nr].Name, "allocated", n, "bytes, its bound is", b.Transient+b.Lasting)
		}
		break
	}
	return holds
}

// BoundsText is a line for each call that was measured: its name, how often it was made,
// the most bytes that one allocated, and its bound, or - where it has none.
func BoundsText() []byte {
	var b bytes.Buffer
	for nr := range worst {
		calls := worst[nr].calls.Load()
		if calls == 0 || table[nr] == nil {
			continue
		}
		bound := "-"
		if x := reserve.Table[nr]; x.Known {
			bound = fmt.Sprint(x.Transient + x.Lasting)
		}
		fmt.Fprintf(&b, "%s %d %d %s\n", table[nr].Name, calls, worst[nr].bytes.Load(), bound)
	}
	return b.Bytes()
}
