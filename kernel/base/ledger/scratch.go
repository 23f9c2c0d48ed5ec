package ledger

import "sync"

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
