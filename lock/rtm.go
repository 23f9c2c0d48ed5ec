package lock

import "sync/atomic"

// What xbegin returns (Intel SDM volume 1, 16.3.5).
const (
	started      = ^uint32(0)
	statusXabort = 1 << 0                  // by XABORT; bits 31:24 are its operand
	statusRetry  = 1 << 1                  // another try may succeed
	statusHeld   = statusXabort | 0xff<<24 // xbegin itself: the word was not 0
	statusMask   = statusXabort | 0xff<<24
)

func wasHeld(status uint32) bool { return status&statusMask == statusHeld }

// hardware tells whether transactions work here.
var hardware = !checking && transactions() // the checks do not fit into a transaction

// modelled is a test's model of the instructions, or nil.
var modelled transactor

type transactor interface {
	begin(word *uint32) (status uint32) // as xbegin
	end()                               // as xend
	inside() bool                       // as xtest
	// take sets *word from 0 to 1 and tells whether it did: the step of a holder
	// that is no transaction, which aborts all that are.
	take(word *uint32) bool
	cycles() uint64
}

// Transactions tells whether hardware transactions work here: a fact of the processor
// and of the hypervisor that this run has met. Without them the locks of this package
// that use them are plain locks.
func Transactions() bool { return hardware || modelled != nil }

func begin(word *uint32) uint32 {
	if modelled != nil {
		return modelled.begin(word)
	}
	return xbegin(word)
}

func take(word *uint32) bool {
	if modelled != nil {
		return modelled.take(word)
	}
	return atomic.CompareAndSwapUint32(word, 0, 1)
}

func cycles() uint64 {
	if modelled != nil {
		return modelled.cycles()
	}
	return Cycles()
}
