//go:build nucleus_rtm

package control

import (
	"errors"
	"fmt"

	"hardtack/lock/core"
)

// Name is the control's, as hardtack build --control has it.
const Name = "rtm"

// Control rtm: each operation is a hardware transaction, or the only one.
// Operations that touch too much for a transaction do not try.
type Control struct{ elided core.Elided }

// WithoutTransactions lets tests run the way that is taken when a transaction
// aborts for good, on processors that have none.
var WithoutTransactions = false

// Line is how far apart lies what different cores write. Processors fetch lines in pairs,
// and who fetches the neighbour of a line that a transaction has written aborts it.
const Line = 128

// Works tells what keeps the control from working on some cores of this processor;
// max is how many its user has room for.
func Works(cores, max int) error {
	if cores < 1 || cores > max {
		return fmt.Errorf("nucleus: %d cores: want 1 to %d", cores, max)
	}
	if !core.Transactions() && !WithoutTransactions {
		return errors.New("nucleus: built for hardware transactions (--control rtm), and this processor has none (RTM)")
	}
	return nil
}

// Enter begins an operation; what it returns is for Leave.
func (c *Control) Enter(core uint32) bool { return c.elided.Acquire(core) }

// Leave ends an operation.
func (c *Control) Leave(core uint32, in bool) { c.elided.Release(core, in) }

// EnterAlone begins an operation during which there is no other.
func (c *Control) EnterAlone(core uint32) { c.elided.AcquirePlain(core) }

// LeaveAlone ends it.
func (c *Control) LeaveAlone(core uint32) { c.elided.Release(core, false) }

// SetCores says that cores from n on do not come, unless it is called again before. The
// caller has entered alone, or nobody has entered yet.
func (*Control) SetCores(n uint32) {}

// Object guards an object among operations that run beside each other.
type Object struct{}

// Acquire waits until the object is ours.
func (*Object) Acquire() {}

// Release gives it back.
func (*Object) Release() {}

// Publish32 stores v after all that was written before, for whoever reads *p without
// the object's lock.
func Publish32(p *uint32, v uint32) { *p = v }

// Fence makes what the core wrote visible before what it reads next. It tells
// whether others may have changed what it read before.
func Fence(core uint32) bool { return false }
