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

// transactor is the processor's transactions, or a test's.
type transactor interface {
	begin(word *uint32) (status uint32) // as xbegin
	end()                               // as xend
	inside() bool                       // as xtest
	// take sets *word from 0 to 1 and tells whether it did: the step of a holder
	// that is no transaction, which aborts all that are.
	take(word *uint32) bool
}

// hardware is nil where transactions do not work.
var hardware = func() transactor {
	if checking || !transactions() { // the checks do not fit into a transaction
		return nil
	}
	return processor{}
}()

// Transactions tells whether hardware transactions work here. Without them the
// locks of this package that use them are plain locks.
func Transactions() bool { return hardware != nil }

type processor struct{}

func (processor) begin(word *uint32) uint32 { return xbegin(word) }
func (processor) end()                      { xend() }
func (processor) inside() bool              { return xtest() }
func (processor) take(word *uint32) bool    { return atomic.CompareAndSwapUint32(word, 0, 1) }
