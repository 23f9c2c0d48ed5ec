//go:build nucleus_rtm

package ipc

import (
	"errors"
	"fmt"

	"hardtack/lock"
)

const controlName = "rtm"

// control rtm: each operation is a hardware transaction, or the only one.
// Operations that touch too much for a transaction do not try.
type control struct{ elided lock.CoreElided }

// withoutTransactions lets tests run the way that is taken when a transaction
// aborts for good, on processors that have none.
var withoutTransactions = false

func (*control) works(cores int) error {
	if cores < 1 || cores > MaxCores {
		return fmt.Errorf("nucleus: %d cores: want 1 to %d", cores, MaxCores)
	}
	if !lock.Transactions() && !withoutTransactions {
		return errors.New("nucleus: built for hardware transactions (RTM), which this processor does not have")
	}
	return nil
}

func (c *control) enter(core uint32) bool     { return c.elided.Acquire(core) }
func (c *control) leave(core uint32, in bool) { c.elided.Release(core, in) }
func (c *control) enterAlone(core uint32)     { c.elided.AcquirePlain(core) }
func (c *control) leaveAlone(core uint32)     { c.elided.Release(core, false) }

type objectLock struct{}

func (*objectLock) acquire() {}
func (*objectLock) release() {}

func publish(w *where, v where) { *w = v }
