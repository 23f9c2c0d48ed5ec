package core

import "sync/atomic"

// What xbegin returns (Intel SDM volume 1, 16.3.5).
const (
	Started      = ^uint32(0)
	statusXabort = 1 << 0                  // by XABORT; bits 31:24 are its operand
	StatusRetry  = 1 << 1                  // another try may succeed
	statusHeld   = statusXabort | 0xff<<24 // xbegin itself: the word was not 0
	statusMask   = statusXabort | 0xff<<24
)

// WasHeld tells whether a status says that the word was not 0.
func WasHeld(status uint32) bool { return status&statusMask == statusHeld }

// hardware tells whether transactions work here.
var hardware = !checking && transactions() // the checks do not fit into a transaction

// Model is a test's model of the instructions, or nil.
var Model Transactor

// A Transactor is what a processor has for transactions.
type Transactor interface {
	Begin(word *uint32) (status uint32) // as XBEGIN
	End()                               // as XEND
	Inside() bool                       // as XTEST
	// Take sets *word from 0 to 1 and tells whether it did: the step of a holder
	// that is no transaction, which aborts all that are.
	Take(word *uint32) bool
	Cycles() uint64
}

// Transactions tells whether hardware transactions work here: a fact of the processor
// and of the hypervisor that this run has met.
func Transactions() bool { return hardware || Model != nil }

// Begin begins a transaction that has *word in its read set, and returns Started if the
// word is 0. See xbegin.
func Begin(word *uint32) uint32 {
	if Model != nil {
		return Model.Begin(word)
	}
	return xbegin(word)
}

// End commits.
func End() {
	if Model != nil {
		Model.End()
	} else {
		xend()
	}
}

// Inside tells whether the caller is in a transaction.
func Inside() bool {
	if Model != nil {
		return Model.Inside()
	}
	return hardware && xtest()
}

// Take sets *word from 0 to 1, which aborts the transactions that have read it, and
// tells whether it did.
func Take(word *uint32) bool {
	if Model != nil {
		return Model.Take(word)
	}
	return atomic.CompareAndSwapUint32(word, 0, 1)
}

// Now is Cycles, or a model's.
func Now() uint64 {
	if Model != nil {
		return Model.Cycles()
	}
	return Cycles()
}
