package ipc

import (
	"fmt"
	"slices"
	"testing"
)

// operations are the names of act's steps as operations of the table.
var operations = map[string]operation{"send": opSend, "call": opCall, "recv": opRecv, "reply": opReply,
	"replyrecv": opReplyRecv, "signal": opSignal, "wait": opWait, "signalwait": opSignalWait, "cancel": opCancel,
	"tick": opExpire, "thread": opNewThread, "start": opStart, "destroy": opDestroyThread,
	"close": opDestroyEndpoint, "closenote": opDestroyNotification}

// table holds what happens to threads against the table of steps.
type table struct {
	states  [MaxThreads]State
	current uint32
	taken   [len(steps)]int // how often each step was
}

// before notes the states of all threads and who is current on the core.
func (b *table) before(n *Nucleus, core uint32) {
	b.current = n.Current(core)
	for i := range b.states {
		b.states[i] = n.threads[i].where.state()
	}
}

// after says which change since before is no step of the operation.
func (b *table) after(n *Nucleus, what string) error {
	op, changes := operations[what]
	for i, from := range b.states {
		to := n.threads[i].where.state()
		if to == from {
			continue
		}
		step := slices.IndexFunc(steps[:], func(s step) bool {
			return changes && s.op == op && s.from == from && s.to == to && (s.who == either || (s.who == self) == (b.current == uint32(i)))
		})
		if step < 0 {
			return fmt.Errorf("%s: thread %d, %v, got %v, which is no step of it", what, i, from, to)
		}
		b.taken[step]++
	}
	return nil
}

// course is a nucleus of one core whose operations are held against the table.
type course struct {
	*testing.T
	n     *Nucleus
	table table
	end   ID // an endpoint
	note  ID
}

// do carries out an operation.
func (c *course) do(what string, f func()) {
	c.Helper()
	c.table.before(c.n, 0)
	f()
	if err := c.table.after(c.n, what); err != nil {
		c.Fatal(err)
	}
}

func (c *course) thread() (id ID) {
	c.do("thread", func() { id, _ = c.n.NewThread(0, 0) })
	return id
}

// current makes a ready thread the core's current one; 0: a new one.
func (c *course) current(id ID) ID {
	if id == 0 {
		id = c.thread()
		c.do("start", func() { c.n.Start(0, id) })
	}
	for c.n.Current(0) != id.Index() {
		c.n.Yield(0)
	}
	return id
}

func (c *course) send(deadline uint64) {
	c.do("send", func() { c.n.Send(0, c.end, 0, 0, deadline) })
}

func (c *course) call(deadline uint64) {
	c.do("call", func() { c.n.Call(0, c.end, 0, 0, deadline) })
}

func (c *course) recv(deadline uint64) {
	c.do("recv", func() { c.n.Recv(0, c.end, deadline) })
}

// in makes a thread that is in a state, until a deadline; at objects of its own.
func (c *course) in(s State, deadline uint64) (id ID) {
	c.end, _ = c.n.NewEndpoint(0)
	c.note, _ = c.n.NewNotification(0)
	switch s {
	case Stopped:
		return c.thread()
	case Replying:
		c.current(0)
		c.recv(Forever)
	}
	id = c.current(0)
	switch s {
	case Sending:
		c.send(deadline)
	case Receiving:
		c.recv(deadline)
	case Replying:
		c.call(deadline)
	case Waiting:
		c.do("wait", func() { c.n.Wait(0, c.note, deadline) })
	}
	if got := c.n.Thread(id.Index()).where.state(); got != s {
		c.Fatalf("the thread is %v, want %v", got, s)
	}
	return id
}

// served makes a thread current that has received a call from the caller, at an endpoint
// of its own.
func (c *course) served() (server, caller ID) {
	c.end, _ = c.n.NewEndpoint(0)
	caller = c.current(0)
	c.call(Forever)
	server = c.current(0)
	c.recv(Forever)
	return server, caller
}

func (c *course) replyRecv(server ID) {
	c.do("replyrecv", func() { c.n.ReplyRecv(0, c.n.Result(server.Index()).Token, 0, c.end, Forever) })
}

// Every step of the table is taken, and none that is not in it.
func TestSteps(t *testing.T) {
	c := &course{T: t, n: newNucleus(t, 1)}
	for s := Stopped; s <= Waiting; s++ {
		id := c.in(s, Forever)
		c.do("destroy", func() { c.n.DestroyThread(0, id) })
	}
	for s := Sending; s <= Waiting; s++ {
		id := c.in(s, Forever)
		c.do("cancel", func() { c.n.Cancel(0, id) })
		c.in(s, 1)
		c.do("tick", func() { c.n.Tick(0, 2) })
	}
	for _, s := range []State{Sending, Receiving} {
		c.in(s, Forever)
		c.do("close", func() { c.n.DestroyEndpoint(0, c.end) })
	}
	c.in(Waiting, Forever)
	c.do("closenote", func() { c.n.DestroyNotification(0, c.note) })

	c.in(Receiving, Forever)
	c.current(0)
	c.send(Forever)
	c.in(Sending, Forever)
	c.current(0)
	c.recv(Forever)
	server, _ := c.served()
	c.do("reply", func() { c.n.Reply(0, c.n.Result(server.Index()).Token, 0) })
	server, _ = c.served()
	c.replyRecv(server)
	for _, next := range []func(uint64){c.send, c.call} {
		server, _ = c.served()
		c.current(0)
		next(Forever)
		c.current(server)
		c.replyRecv(server)
	}
	server, _ = c.served()
	c.do("destroy", func() { c.n.DestroyThread(0, server) })

	c.in(Waiting, Forever)
	c.current(0)
	c.do("signal", func() { c.n.Signal(0, c.note, 1) })
	c.in(Waiting, Forever)
	own, _ := c.n.NewNotification(0)
	c.current(0)
	c.do("signalwait", func() { c.n.SignalWait(0, c.note, 1, own, Forever) })

	c.n = newNucleus(t, 1)
	c.n.SetLoose()
	c.thread()
	for i, n := range c.table.taken {
		if s := steps[i]; n == 0 {
			t.Errorf("no thread took step %d, from %v to %v", i, s.from, s.to)
		}
	}
}

// A build with checks does not go on when a thread takes a step that there is not.
func TestWrongStep(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a stopped thread may wait for a reply")
		}
	}()
	checkStep(Stopped, Replying)
}
