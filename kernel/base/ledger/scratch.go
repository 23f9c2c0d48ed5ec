package ledger

import (
	"sync"
	"sync/atomic"
	"time"

	"hardtack/kernel/base/wait"
)

var scratch = sync.Pool{New: func() any { return new(Sum) }}

// Scratch returns an empty sum for a part of another. Sums that are passed to methods of
// interfaces are in the heap, and they are made for each open file when there is least of it:
// when somebody has to be killed for memory.
func Scratch() *Sum { return scratch.Get().(*Sum) }

// Done gives a sum of Scratch back.
func (s *Sum) Done() {
	*s = Sum{}
	scratch.Put(s)
}

// AddPartDone is AddPart of a sum of Scratch, which it gives back.
func (s *Sum) AddPartDone(o *Sum, part, whole int64) {
	s.AddPart(o, part, whole)
	o.Done()
}

// pauseAfter is how long sums are added up before others have their turn.
const pauseAfter = 250 * time.Microsecond

var (
	started = time.Now()
	paused  atomic.Int64 // when Pause last let others run, after started
)

// Pause lets others run, in user mode too, if that has not happened for a while. It is called between the parts of what
// may be very many, without locks that others want.
func Pause() {
	if now := int64(time.Since(started)); now-paused.Load() > int64(pauseAfter) {
		wait.Rest()
		paused.Store(int64(time.Since(started)))
	}
}
