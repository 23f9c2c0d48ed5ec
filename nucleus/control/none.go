//go:build nucleus_none

package control

import "errors"

// Name is the control's, as hardtack build --control has it.
const Name = "none"

// Control none: there is one core, and operations are not interrupted.
type Control struct{}

// Line is how far apart lies what different cores write: on lines of its own.
const Line = 64

// Works tells what keeps the control from working on some cores of this processor;
// max is how many its user has room for.
func Works(cores, max int) error {
	if cores != 1 {
		return errors.New("nucleus: built without concurrency control (--control none), for one CPU")
	}
	return nil
}

// Enter begins an operation; what it returns is for Leave.
func (*Control) Enter(core uint32) bool { return false }

// Leave ends an operation.
func (*Control) Leave(core uint32, in bool) {}

// EnterAlone begins an operation during which there is no other.
func (*Control) EnterAlone(core uint32) {}

// LeaveAlone ends it.
func (*Control) LeaveAlone(core uint32) {}

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
