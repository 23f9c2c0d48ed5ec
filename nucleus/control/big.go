//go:build !nucleus_none && !nucleus_fine && !nucleus_rtm

package control

import (
	"fmt"

	"hardtack/lock/core"
)

// Control big: one operation at a time. Cores queue for the lock, but for virtual
// ones: a hypervisor may stop the next in the queue for a time slice, and then nobody
// gets on. Linux gives up its queue locks for the same reason (virt_spin_lock).
type Control struct{ queue core.Queue }

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
func (c *Control) Enter(core uint32) (in bool) {
	if alwaysQueue || !Virtual || !c.queue.Seize() {
		c.wait(core)
	}
	return
}

// wait is Enter but for the one case that is worth its place at every caller's.
func (c *Control) wait(core uint32) {
	if !alwaysQueue && Virtual {
		c.queue.AwaitSeize()
	} else if !c.queue.Join(core) {
		c.queue.Await(core)
	}
}

// Leave ends an operation.
func (c *Control) Leave(core uint32, in bool) { c.queue.Release(core) }

// EnterAlone begins an operation during which there is no other.
func (c *Control) EnterAlone(core uint32) { c.Enter(core) }

// LeaveAlone ends it.
func (c *Control) LeaveAlone(core uint32) { c.queue.Release(core) }

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
