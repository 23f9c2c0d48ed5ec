package task

import "sync/atomic"

// A Frame is a place for one task on a worker's stack of spawned tasks, and the
// argument of a function in the fast form: the first place that is free there.
// It takes one cache line.
//
// Who may touch what: a private frame is its worker's alone. A shared frame is
// only read, by the thief that stole it. A stolen frame belongs to its thief
// until state says done, the owner may look at state.
type Frame struct {
	w     *Worker       // immutable: whose stack it is on
	state atomic.Uint32 // see below; means nothing in a private frame
	fn    ID            // what to run: a number from Register, or a reserved one
	a, b  uint64        // arguments; a is the result when the state says done
	ext   job           // ordinary form: the typed part, kept for the next spawn here
	scope *scope        // set when shared: what may abort the task
	fault *Panic        // set before stateFailed: how the stolen task ended
}

// noJob is the ext of a frame in which nothing has been spawned yet. It looks
// like a slot as far as slotWith looks.
var noJob job = &emptySlot{fn: noFunc}

type emptySlot struct {
	fn    func() // first: see slotWith
	after job
}

func noFunc() {}

func (*emptySlot) run(Ctx)           {}
func (*emptySlot) early(Ctx) *Panic  { return nil }
func (*emptySlot) sweepBelow()       {}
func (*emptySlot) below() bool       { return false }
func (*emptySlot) fetched() bool     { return true }
func (s *emptySlot) following() *job { return &s.after }
func (*emptySlot) drop()             {}
func (*emptySlot) forget()           {}
func (*emptySlot) ofGroup() bool     { return false }

// The bits of Frame.state. Sharing clears it; the thief adds its number; the
// owner adds waiting before it parks; the thief adds done, with failed, last,
// and does not touch the frame after it.
const (
	stateDone    = 1 << iota
	stateWaiting     // the owner's worker sleeps until done
	stateFailed      // fault says why
	stateThief   = 8 // the thief's number plus one, from this bit on
)

// The reserved numbers in Frame.fn.
const (
	fnNone  ID = iota // a hole: its task was taken from the middle of the stack
	fnJob             // ext
	fnFirst           // the first that Register gives
)

// Mine takes back the task forked at f, if nobody has stolen it. After true the
// caller runs it, by an ordinary call with f as the frame; after false it gets
// the result from Join.
func (f *Frame) Mine() bool { return f.addr() >= f.w.split || f.w.takeBack(f) }

// Join waits for the stolen task at f and gives its result. It panics with a
// *Panic if the task did.
func (f *Frame) Join() uint64 {
	w := f.w
	w.await(f, f.Next())
	w.release(f)
	if f.state.Load()&stateFailed != 0 {
		w.rethrow(f)
	}
	return f.a
}

// Room tells how many tasks can be forked from f on, one above the other, before the
// stack is full. A recursion that may be deeper than the stack asks, and goes on by
// ordinary calls without forks when there is none: its memory is then bounded, and all
// that is below is still there to be stolen.
//
//	func walk(f *task.Frame, n *node) int {
//		if f.Room() == 0 {
//			return n.walk()
//		}
//		…
func (f *Frame) Room() int {
	w := f.w
	return w.rt.depth - int(w.index(f))
}

// Worker tells which worker runs the caller.
func (f *Frame) Worker() *Worker { return f.w }
