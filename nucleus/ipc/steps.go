package ipc

import "hardtack/abi/linux"

// States of a thread.
const (
	Free      State = iota
	Stopped         // made, not started
	Ready           // current on its core, or in its run queue
	Sending         // in an endpoint's queue, to send or to call
	Receiving       // in an endpoint's queue
	Replying        // its call was received: it waits for the reply
	Waiting         // in a notification's queue
)

// states says of each state where a thread in it waits, and what Cancel tells it: of what
// had no effect yet that it can be done again.
var states = [8]struct {
	name      string
	blocked   bool
	queue     queueKind
	cancelled Errno
}{
	Free:      {name: "free"},
	Stopped:   {name: "stopped"},
	Ready:     {name: "ready"},
	Sending:   {"sending", true, endpointQueue, linux.ERESTARTSYS},
	Receiving: {"receiving", true, endpointQueue, linux.ERESTARTSYS},
	Replying:  {"replying", true, noQueue, linux.EINTR},
	Waiting:   {"waiting", true, notificationQueue, linux.ERESTARTSYS},
}

// queueKind is what has the queue that a thread is in.
type queueKind uint8

const (
	noQueue queueKind = iota
	endpointQueue
	notificationQueue
)

// operation is what changes states.
type operation uint8

const (
	opNewThread operation = iota
	opStart
	opSend
	opCall
	opRecv
	opReply
	opReplyRecv
	opSignal
	opWait
	opSignalWait
	opCancel
	opExpire // Tick, too
	opDestroyThread
	opDestroyEndpoint
	opDestroyNotification
)

// actor is whose state changes: that of the core's current thread, which carries out the
// operation, or another's.
type actor uint8

const (
	self actor = iota
	other
	either
)

// step is a change of one thread's state.
type step struct {
	op       operation
	who      actor
	from, to State
}

// steps is the rendezvous as a table: all changes of a thread's state that there are. The
// tests hold every operation against it, and so does each change in a build with checks.
var steps = [...]step{
	{opNewThread, other, Free, Stopped},
	{opNewThread, other, Free, Ready}, // a loose one
	{opStart, other, Stopped, Ready},

	{opSend, self, Ready, Sending}, // nobody receives
	{opSend, other, Receiving, Ready},
	{opCall, self, Ready, Sending}, // nobody receives
	{opCall, self, Ready, Replying},
	{opCall, other, Receiving, Ready},

	{opRecv, self, Ready, Receiving}, // nobody sends
	{opRecv, other, Sending, Ready},  // by Send
	{opRecv, other, Sending, Replying},
	{opReply, other, Replying, Ready},
	{opReplyRecv, other, Replying, Ready},
	{opReplyRecv, self, Ready, Receiving}, // nobody sends
	{opReplyRecv, other, Sending, Ready},  // by Send
	{opReplyRecv, other, Sending, Replying},

	{opSignal, other, Waiting, Ready},
	{opWait, self, Ready, Waiting}, // no bits are set
	{opSignalWait, other, Waiting, Ready},
	{opSignalWait, self, Ready, Waiting},

	{opCancel, other, Sending, Ready},
	{opCancel, other, Receiving, Ready},
	{opCancel, other, Replying, Ready},
	{opCancel, other, Waiting, Ready},
	{opExpire, other, Sending, Ready},
	{opExpire, other, Receiving, Ready},
	{opExpire, other, Replying, Ready},
	{opExpire, other, Waiting, Ready},

	{opDestroyThread, either, Stopped, Free},
	{opDestroyThread, either, Ready, Free},
	{opDestroyThread, either, Sending, Free},
	{opDestroyThread, either, Receiving, Free},
	{opDestroyThread, either, Replying, Free},
	{opDestroyThread, either, Waiting, Free},
	{opDestroyThread, other, Replying, Ready}, // its callers
	{opDestroyEndpoint, other, Sending, Ready},
	{opDestroyEndpoint, other, Receiving, Ready},
	{opDestroyNotification, other, Waiting, Ready},
}

// check panics, in a build with checks, unless some step leads a thread to a state.
func (t *Thread) check(to State) {
	if checking {
		checkStep(load(&t.where).state(), to)
	}
}

func checkStep(from, to State) {
	for i := range steps {
		if s := &steps[i]; s.from == from && s.to == to {
			return
		}
	}
	panic("ipc: a thread that is " + from.String() + " gets " + to.String())
}

// move changes a thread's state so that others may act on it at once.
func (t *Thread) move(to where) {
	t.check(to.state())
	publish(&t.where, to)
}
