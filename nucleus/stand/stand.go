// Package stand is where a CPU that stands by is given something to do: one word, which it
// looks at and others write.
package stand

import "sync/atomic"

// Place is a CPU's. Its owner calls Begin, Offered any number of times, and, unless that
// gave something, End; others call Offer at any time. What is offered is given to exactly
// one place, and whoever stands there gets it.
type Place struct{ word uint32 }

// Open is in the word while the owner stands by and has been offered nothing.
const Open = 1<<32 - 1

// Begin opens the place.
func (p *Place) Begin() { atomic.StoreUint32(&p.word, Open) }

// Offer gives what, neither 0 nor Open, to the owner. It reports false if nobody stands
// there, or has been offered something already.
func (p *Place) Offer(what uint32) bool { return atomic.CompareAndSwapUint32(&p.word, Open, what) }

// Offered takes what was offered, and closes the place then; 0: nothing yet.
func (p *Place) Offered() (what uint32) {
	if what = atomic.LoadUint32(&p.word); what == Open {
		return 0
	}
	atomic.StoreUint32(&p.word, 0)
	return what
}

// End closes the place. The result is what was offered before, or 0.
func (p *Place) End() (what uint32) {
	if what = atomic.SwapUint32(&p.word, 0); what == Open {
		return 0
	}
	return what
}

// Word is where the owner may wait for something other than Open.
func (p *Place) Word() *uint32 { return &p.word }
