package driver

import "sync/atomic"

// Held is whether a card keeps frames back that it was given, to be told of them all at once.
// Both sides write their own word before they look at the other's, so one of them sees that
// the frames must go.
type Held struct {
	n    atomic.Int32 // calls of Hold without their Flush
	kept atomic.Bool  // there are frames that the card was not told of
}

// Hold has frames kept until Flush.
func (h *Held) Hold() { h.n.Add(1) }

// Flush ends a Hold, and reports whether the card must be told of frames now.
func (h *Held) Flush() bool { return h.n.Add(-1) == 0 && h.kept.Swap(false) }

// Keep reports whether frames that were just queued stay until Flush.
func (h *Held) Keep() bool {
	if h.n.Load() == 0 {
		return false
	}
	h.kept.Store(true)
	return h.n.Load() != 0
}
