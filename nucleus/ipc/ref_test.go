package ipc

import (
	"hardtack/abi/linux"
	"slices"
)

// ref is the nucleus once more, slow and obvious: slices for queues, nothing in
// place, one operation at a time. The tests do the same to both and compare.
type ref struct {
	threads map[uint32]*refThread
	ends    map[uint32]*refEnd
	notes   map[uint32]*refNote
	run     [][]uint32
	current []uint32
	idle    []bool
}

type refThread struct {
	state    State
	core     uint32
	object   uint32
	msg      refMessage
	calls    bool
	badge    uint64
	call     uint64
	deadline uint64
	result   Result
	in       []uint64 // descriptors not taken
	text     []uint64 // what was received last
}

type refMessage struct {
	info Info
	text []uint64
	desc []uint64
}

type refEnd struct {
	generation uint64
	queue      []uint32
	receivers  bool
}

type refNote struct {
	generation uint64
	queue      []uint32
	bits       uint64
}

func newRef(cores int) *ref {
	r := &ref{threads: map[uint32]*refThread{}, ends: map[uint32]*refEnd{}, notes: map[uint32]*refNote{},
		run: make([][]uint32, cores), current: make([]uint32, cores), idle: make([]bool, cores)}
	for i := range r.idle {
		r.idle[i] = true
	}
	return r
}

func (r *ref) end(id ID) *refEnd {
	if e := r.ends[id.index()]; e != nil && e.generation == id.generation() {
		return e
	}
	return nil
}

func (r *ref) note(id ID) *refNote {
	if e := r.notes[id.index()]; e != nil && e.generation == id.generation() {
		return e
	}
	return nil
}

func (r *ref) ready(by, i uint32, res Result) (ipi uint64) {
	t := r.threads[i]
	t.state, t.object, t.deadline, t.result = Ready, 0, 0, res
	return r.enqueue(by, i)
}

func (r *ref) enqueue(by, i uint32) (ipi uint64) {
	c := r.threads[i].core
	r.run[c] = append(r.run[c], i)
	if r.idle[c] && c != by {
		r.idle[c] = false
		return 1 << c
	}
	return 0
}

func (r *ref) schedule(core uint32) uint32 {
	r.current[core] = 0
	if len(r.run[core]) > 0 {
		r.current[core] = r.run[core][0]
		r.run[core] = r.run[core][1:]
	}
	r.idle[core] = r.current[core] == 0
	return r.current[core]
}

func (r *ref) runs(core uint32) uint32 {
	if r.current[core] == 0 {
		return r.schedule(core)
	}
	return r.current[core]
}

func (r *ref) failed(core uint32, e Errno) Effects {
	if c := r.current[core]; c != 0 {
		r.threads[c].result = Result{Err: e}
	}
	return Effects{Run: r.runs(core)}
}

func (r *ref) block(core uint32, s State, object uint32, deadline uint64) Effects {
	t := r.threads[r.current[core]]
	t.state, t.object = s, object
	if deadline != Forever {
		t.deadline = deadline
	}
	return Effects{Run: r.schedule(core)}
}

func (r *ref) give(to *refThread, m refMessage) {
	to.text = m.text
	to.in = append(to.in, m.desc...)
}

func (r *ref) send(core uint32, ep ID, badge uint64, m refMessage, deadline uint64, call bool) Effects {
	self := r.current[core]
	if self == 0 {
		return r.failed(core, 0)
	}
	t, e := r.threads[self], r.end(ep)
	switch {
	case e == nil:
		return r.failed(core, linux.EBADF)
	case !m.info.ok():
		return r.failed(core, linux.EMSGSIZE)
	case call && len(t.in) > 0:
		return r.failed(core, linux.EBUSY)
	case (len(e.queue) == 0 || !e.receivers) && deadline == Now:
		return r.failed(core, linux.EAGAIN)
	}
	if call {
		t.call++
	}
	if len(e.queue) == 0 || !e.receivers {
		e.receivers = false
		e.queue = append(e.queue, self)
		t.msg, t.badge, t.calls = m, badge, call
		return r.block(core, Sending, ep.index(), deadline)
	}
	to := e.queue[0]
	e.queue = e.queue[1:]
	r.give(r.threads[to], m)
	res := Result{Info: m.info, Badge: badge}
	if !call {
		t.result = Result{}
		ipi := r.ready(core, to, res)
		return Effects{Run: self, IPI: ipi}
	}
	res.Token = token(uint16(self), t.call)
	if r.threads[to].core == core { // straight to the receiver
		o := r.threads[to]
		o.state, o.object, o.deadline, o.result = Ready, 0, 0, res
		t.state, t.object = Replying, to
		if deadline != Forever {
			t.deadline = deadline
		}
		r.current[core] = to
		return Effects{Run: to}
	}
	ipi := r.ready(core, to, res)
	fx := r.block(core, Replying, to, deadline)
	fx.IPI = ipi
	return fx
}

// answer is the reply's part of an operation; it tells whether somebody got it.
func (r *ref) answer(self uint32, tok Token, m refMessage) bool {
	c := r.threads[uint32(tok.caller())]
	if c == nil || c.state != Replying || c.object != self || Token(uint64(tok.caller())|c.call<<16) != tok {
		return false
	}
	r.give(c, m)
	return true
}

func (r *ref) reply(core uint32, tok Token, m refMessage) Effects {
	self := r.current[core]
	switch {
	case self == 0:
		return r.failed(core, 0)
	case tok.caller() == 0 || tok.caller() >= MaxThreads:
		return r.failed(core, linux.EINVAL)
	case !m.info.ok():
		return r.failed(core, linux.EMSGSIZE)
	case !r.answer(self, tok, m):
		return r.failed(core, linux.EPIPE)
	}
	r.threads[self].result = Result{}
	return Effects{Run: self, IPI: r.ready(core, uint32(tok.caller()), Result{Info: m.info})}
}

func (r *ref) recv(core uint32, ep ID, deadline uint64, tok Token, m refMessage, replies bool) Effects {
	self := r.current[core]
	if self == 0 {
		return r.failed(core, 0)
	}
	t, e := r.threads[self], r.end(ep)
	switch {
	case e == nil:
		return r.failed(core, linux.EBADF)
	case replies && (tok.caller() >= MaxThreads || tok != 0 && tok.caller() == 0 || uint32(tok.caller()) == self):
		return r.failed(core, linux.EINVAL)
	case replies && !m.info.ok():
		return r.failed(core, linux.EMSGSIZE)
	case len(t.in) > 0:
		return r.failed(core, linux.EBUSY)
	}
	from := uint32(0)
	if len(e.queue) > 0 && !e.receivers {
		from = e.queue[0]
	} else if deadline == Now {
		return r.failed(core, linux.EAGAIN)
	}
	caller := uint32(0)
	if replies && r.answer(self, tok, m) {
		caller = uint32(tok.caller())
	}
	done := Result{Info: m.info}
	if from == 0 {
		e.receivers = true
		e.queue = append(e.queue, self)
		if caller != 0 && r.threads[caller].core == core {
			c := r.threads[caller]
			c.state, c.object, c.deadline, c.result = Ready, 0, 0, done
			t.state, t.object = Receiving, ep.index()
			if deadline != Forever {
				t.deadline = deadline
			}
			r.current[core] = caller
			return Effects{Run: caller}
		}
		ipi := uint64(0)
		if caller != 0 {
			ipi = r.ready(core, caller, done)
		}
		fx := r.block(core, Receiving, ep.index(), deadline)
		fx.IPI = ipi
		return fx
	}
	fx := Effects{Run: self}
	if caller != 0 {
		fx.IPI = r.ready(core, caller, done)
	}
	e.queue = e.queue[1:]
	s := r.threads[from]
	r.give(t, s.msg)
	t.result = Result{Info: s.msg.info, Badge: s.badge}
	if s.calls {
		t.result.Token = token(uint16(from), s.call)
		s.state, s.object = Replying, self
	} else {
		fx.IPI |= r.ready(core, from, Result{})
	}
	return fx
}

func (r *ref) signal(core uint32, id ID, bits uint64) (Effects, Errno) {
	o := r.note(id)
	switch {
	case o == nil:
		return Effects{Run: r.runs(core)}, linux.EBADF
	case bits == 0:
		return Effects{Run: r.runs(core)}, linux.EINVAL
	}
	o.bits |= bits
	var fx Effects
	if len(o.queue) > 0 {
		w := o.queue[0]
		o.queue = o.queue[1:]
		fx.IPI = r.ready(core, w, Result{Badge: o.bits})
		o.bits = 0
	}
	fx.Run = r.runs(core)
	return fx, 0
}

func (r *ref) wait(core uint32, id ID, deadline uint64) Effects {
	self := r.current[core]
	o := r.note(id)
	switch {
	case self == 0:
		return r.failed(core, 0)
	case o == nil:
		return r.failed(core, linux.EBADF)
	case o.bits != 0:
		r.threads[self].result = Result{Badge: o.bits}
		o.bits = 0
		return Effects{Run: self}
	case deadline == Now:
		return r.failed(core, linux.EAGAIN)
	}
	o.queue = append(o.queue, self)
	return r.block(core, Waiting, id.index(), deadline)
}

func (r *ref) signalWait(core uint32, to ID, bits uint64, id ID, deadline uint64) Effects {
	self := r.current[core]
	peer, o := r.note(to), r.note(id)
	switch {
	case self == 0:
		return r.failed(core, 0)
	case peer == nil || o == nil:
		return r.failed(core, linux.EBADF)
	case bits == 0:
		return r.failed(core, linux.EINVAL)
	}
	waits := o.bits == 0 && deadline != Now && (peer != o || len(o.queue) > 0)
	if waits && len(peer.queue) > 0 && r.threads[peer.queue[0]].core == core { // straight to the waiter
		w := peer.queue[0]
		peer.queue = peer.queue[1:]
		t := r.threads[w]
		t.state, t.object, t.deadline, t.result = Ready, 0, 0, Result{Badge: peer.bits | bits}
		peer.bits = 0
		o.queue = append(o.queue, self)
		r.block(core, Waiting, id.index(), deadline)
		if r.current[core] != 0 { // not the one that block chose
			r.run[core] = append([]uint32{r.current[core]}, r.run[core]...)
		}
		r.current[core], r.idle[core] = w, false
		return Effects{Run: w}
	}
	first, _ := r.signal(core, to, bits)
	second := r.wait(core, id, deadline)
	return Effects{Run: second.Run, IPI: first.IPI | second.IPI}
}

// unlink takes a thread out of whatever queue it is in.
func (r *ref) unlink(i uint32) {
	drop := func(q []uint32) []uint32 {
		return slices.DeleteFunc(slices.Clone(q), func(x uint32) bool { return x == i })
	}
	for _, e := range r.ends {
		e.queue = drop(e.queue)
	}
	for _, o := range r.notes {
		o.queue = drop(o.queue)
	}
	for c := range r.run {
		r.run[c] = drop(r.run[c])
	}
}

func blocked(s State) bool { return s >= Sending }

func (r *ref) interrupt(by, i uint32, e Errno) (ipi uint64) {
	r.unlink(i)
	return r.ready(by, i, Result{Err: e})
}

// tick wakes in the given order, which is the nucleus' own affair.
func (r *ref) tick(core uint32, now uint64, order []uint32) (fx Effects) {
	for _, i := range order {
		if t := r.threads[i]; t.core == core && blocked(t.state) && t.deadline != 0 && t.deadline <= now {
			fx.IPI |= r.interrupt(core, i, linux.ETIMEDOUT)
		}
	}
	fx.Run = r.runs(core)
	return fx
}

func (r *ref) destroyThread(core, i uint32) (fx Effects, dropped []uint64) {
	t := r.threads[i]
	if t.state == Sending {
		dropped = append(dropped, t.msg.desc...)
	}
	dropped = append(dropped, t.in...)
	r.unlink(i)
	if r.current[t.core] == i {
		r.current[t.core] = 0
		if t.core != core {
			fx.IPI = 1 << t.core
		}
	}
	delete(r.threads, i)
	for k := uint32(0); k < MaxThreads; k++ {
		if c := r.threads[k]; c != nil && c.state == Replying && c.object == i {
			fx.IPI |= r.ready(core, k, Result{Err: linux.EPIPE})
		}
	}
	fx.Run = r.runs(core)
	return fx, dropped
}

func (r *ref) refuse(core uint32, q []uint32) (fx Effects) {
	for _, i := range q {
		fx.IPI |= r.ready(core, i, Result{Err: linux.EPIPE})
	}
	fx.Run = r.runs(core)
	return fx
}
