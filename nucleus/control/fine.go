//go:build nucleus_fine

package control

import (
	"fmt"
	"sync/atomic"

	"hardtack/lock/core"
)

// Name is the control's, as hardtack build --control has it.
const Name = "fine"

// Control fine: operations run beside each other, and lock the objects they touch.
// Making and destroying objects excludes all others.
type Control struct{ readers core.Readers }

// Line is how far apart lies what different cores write: on lines of its own.
const Line = 64

// Works tells what keeps the control from working on some cores of this processor;
// max is how many its user has room for.
func Works(cores, max int) error {
	if cores < 1 || cores > max {
		return fmt.Errorf("nucleus: %d cores: want 1 to %d", cores, max)
	}
	return nil
}

// Enter begins an operation; what it returns is for Leave.
func (c *Control) Enter(core uint32) bool { c.readers.RAcquire(core); return false }

// Leave ends an operation.
func (c *Control) Leave(core uint32, in bool) { c.readers.RRelease(core) }

// EnterAlone begins an operation during which there is no other.
func (c *Control) EnterAlone(core uint32) { c.readers.Acquire(core) }

// LeaveAlone ends it.
func (c *Control) LeaveAlone(core uint32) { c.readers.Release(core) }

// SetCores says that cores from n on do not come, unless it is called again before. The
// caller has entered alone, or nobody has entered yet.
func (c *Control) SetCores(n uint32) { c.readers.SetCores(n) }

// Object guards an object among operations that run beside each other.
type Object struct{ ticket core.Ticket }

// Acquire waits until the object is ours. Virtual cores do not queue, as under big.
func (o *Object) Acquire() {
	if !Virtual || !o.ticket.Seize() {
		o.wait()
	}
}

// wait is Acquire but for the one case that is worth its place at every caller's.
func (o *Object) wait() {
	if Virtual {
		o.ticket.AwaitSeize()
	} else {
		o.ticket.Spin()
	}
}

// Release gives it back.
func (o *Object) Release() { o.ticket.Release() }

// Publish32 stores v after all that was written before, for whoever reads *p without
// the object's lock.
func Publish32(p *uint32, v uint32) { core.StoreRelease32(p, v) }

const maxCores = core.MaxCores

// fences are words to exchange, a cache line for each core: a locked instruction is
// a full barrier, and quicker than MFENCE.
var fences [maxCores]struct {
	word uint32
	_    [60]byte
}

// Fence makes what the core wrote visible before what it reads next. It tells
// whether others may have changed what it read before.
func Fence(core uint32) bool {
	atomic.SwapUint32(&fences[core%maxCores].word, 0)
	return true
}
