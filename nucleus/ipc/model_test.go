package ipc

import (
	"fmt"
	"slices"
	"testing"

	"hardtack/abi/linux"

	"pgregory.net/rapid"
)

// world is a nucleus and its reference, to which the same happens.
type world struct {
	n       *Nucleus
	r       *ref
	cores   uint32
	now     uint64
	threads []ID // all that were ever made, and some that never were
	ends    []ID
	notes   []ID
	tokens  []Token
	handles uint64
	owner   map[uint64]uint32 // of each descriptor
	table   table
}

func newWorld(tb testing.TB, cores int) *world {
	return &world{n: newNucleus(tb, cores), r: newRef(cores), cores: uint32(cores), now: 100,
		threads: []ID{0, 0xffffffff, 3}, ends: []ID{0, 0xffffffff, 2}, notes: []ID{0, 0x1ffff, 2},
		tokens: []Token{0, 1, 0xffff, 600, 7<<16 | 2}, owner: map[uint64]uint32{}}
}

// message puts a message into the current thread, if there is one, and gives it for
// the reference: the descriptors are taken from those the thread has.
func (w *world) message(core uint32, bytes, descriptors int) refMessage {
	self := w.r.current[core]
	info := MakeInfo(bytes, descriptors)
	m := refMessage{info: info}
	if self == 0 || !info.ok() {
		return m
	}
	var mine []uint64
	for h, o := range w.owner {
		if o == self && !slices.Contains(w.r.threads[self].in, h) {
			mine = append(mine, h)
		}
	}
	slices.Sort(mine)
	for len(mine) < descriptors {
		w.handles++
		w.owner[w.handles] = self
		mine = append(mine, w.handles)
	}
	t := w.n.Thread(self)
	m.desc = mine[:descriptors:descriptors]
	copy(t.Out[:], m.desc)
	words := (bytes + 7) / 8
	for range words {
		w.handles++
		m.text = append(m.text, w.handles)
	}
	if words <= ShortWords {
		copy(t.Short[:], m.text)
	} else {
		copy(t.Long[:], m.text)
	}
	return m
}

// same compares everything.
func (w *world) same(what string, got, want Effects) error {
	if got != want {
		return fmt.Errorf("%s: effects %+v, want %+v", what, got, want)
	}
	count := 0
	for i := range w.n.threads {
		if w.n.threads[i].exists {
			count++
		}
	}
	if count != len(w.r.threads) {
		return fmt.Errorf("%s: %d threads, want %d", what, count, len(w.r.threads))
	}
	for i, want := range w.r.threads {
		t := w.n.Thread(i)
		if t.where.state() != want.state || uint32(t.where.object()) != want.object || t.result != want.result || t.deadline != want.deadline {
			return fmt.Errorf("%s: thread %d is %v on %d, result %+v, deadline %d; want %v on %d, %+v, %d", what, i,
				t.where.state(), t.where.object(), t.result, t.deadline, want.state, want.object, want.result, want.deadline)
		}
		if !slices.Equal(t.In[:t.Came], want.in) {
			return fmt.Errorf("%s: thread %d got descriptors %v, want %v", what, i, t.In[:t.Came], want.in)
		}
		for _, h := range want.in {
			w.owner[h] = i
		}
		if want.state == Ready && want.result.Err == 0 && want.result.Info != 0 && want.text != nil {
			text := t.Long[:]
			if len(want.text) <= ShortWords {
				text = t.Short[:]
			}
			if !slices.Equal(text[:len(want.text)], want.text) {
				return fmt.Errorf("%s: thread %d got %v, want %v", what, i, text[:len(want.text)], want.text)
			}
			want.text = nil // the thread may overwrite it from now on
		}
	}
	for c := range w.cores {
		k := w.n.core(c)
		if k.current != w.r.current[c] || k.idle != w.r.idle[c] {
			return fmt.Errorf("%s: core %d runs %d, idle %v; want %d, %v", what, c, k.current, k.idle, w.r.current[c], w.r.idle[c])
		}
		if err := w.queue(k.run, w.r.run[c]); err != nil {
			return fmt.Errorf("%s: run queue of core %d: %v", what, c, err)
		}
		if err := w.timers(c); err != nil {
			return fmt.Errorf("%s: %v", what, err)
		}
	}
	for i, e := range w.r.ends {
		if err := w.queue(w.n.endpoints[i].queue, e.queue); err != nil {
			return fmt.Errorf("%s: endpoint %d: %v", what, i, err)
		}
		if len(e.queue) > 0 && e.receivers != w.n.endpoints[i].receivers {
			return fmt.Errorf("%s: endpoint %d: the queue is of the other kind", what, i)
		}
	}
	for i, o := range w.r.notes {
		if err := w.queue(w.n.notifications[i].queue, o.queue); err != nil {
			return fmt.Errorf("%s: notification %d: %v", what, i, err)
		}
		if o.bits != w.n.notifications[i].bits {
			return fmt.Errorf("%s: notification %d: bits %#x, want %#x", what, i, w.n.notifications[i].bits, o.bits)
		}
	}
	return nil
}

func (w *world) queue(q queue, want []uint32) error {
	var got []uint32
	prev := uint16(0)
	for i := q.head; i != 0; i = w.n.thread(i).link.next {
		if w.n.thread(i).link.prev != prev {
			return fmt.Errorf("thread %d: prev is %d, want %d", i, w.n.thread(i).link.prev, prev)
		}
		prev = i
		if got = append(got, uint32(i)); len(got) > MaxThreads {
			return fmt.Errorf("the queue is a circle")
		}
	}
	if !slices.Equal(got, want) || q.tail != prev {
		return fmt.Errorf("%v, want %v", got, want)
	}
	return nil
}

// timers checks that every thread with a deadline is in its core's list.
func (w *world) timers(core uint32) error {
	in := map[uint32]bool{}
	for i := w.n.core(core).timers; i != 0; i = w.n.thread(i).timed.next {
		if in[uint32(i)] {
			return fmt.Errorf("the list of deadlines of core %d is a circle", core)
		}
		in[uint32(i)] = true
	}
	for i, t := range w.r.threads {
		if t.core == core && t.deadline != 0 && (!in[i] || t.deadline < w.n.NextDeadline(core)) {
			return fmt.Errorf("thread %d with a deadline at %d, earliest %d, in the list: %v", i, t.deadline, w.n.NextDeadline(core), in[i])
		}
		if t.core == core && in[i] != w.n.Thread(i).hasTimer {
			return fmt.Errorf("thread %d: hasTimer %v", i, !in[i])
		}
	}
	return nil
}

// act does one random thing to both.
func (w *world) act(t *rapid.T) error {
	core := rapid.Uint32Range(0, w.cores-1).Draw(t, "core")
	n, r := w.n, w.r
	self := r.current[core]
	w.table.before(n, core)
	deadline := rapid.SampledFrom([]uint64{Forever, Forever, Forever, Now, w.now + 1, w.now + 5}).Draw(t, "deadline")
	bytes := rapid.SampledFrom([]int{0, 1, 8, 48, 49, 100, 512, 513, 0xffff}).Draw(t, "bytes")
	descs := rapid.SampledFrom([]int{0, 0, 0, 1, 4, 5}).Draw(t, "descriptors")
	badge := rapid.Uint64Range(0, 3).Draw(t, "badge")
	ep := rapid.SampledFrom(w.ends).Draw(t, "endpoint")
	note := rapid.SampledFrom(w.notes).Draw(t, "notification")
	tok := rapid.SampledFrom(w.tokens).Draw(t, "token")
	what := rapid.SampledFrom([]string{"send", "call", "call", "recv", "recv", "reply", "replyrecv", "replyrecv", "take", "take",
		"signal", "wait", "signalwait", "signalwait", "cancel", "tick", "yield", "thread", "start", "destroy", "move", "endpoint", "close", "notification", "closenote"}).Draw(t, "what")
	var got, want Effects
	switch what {
	case "send", "call":
		m := w.message(core, bytes, descs)
		if want = r.send(core, ep, badge, m, deadline, what == "call"); what == "call" {
			got = n.Call(core, ep, badge, m.info, deadline)
		} else {
			got = n.Send(core, ep, badge, m.info, deadline)
		}
	case "recv":
		got, want = n.Recv(core, ep, deadline), r.recv(core, ep, deadline, 0, refMessage{}, false)
	case "reply":
		m := w.message(core, bytes, descs)
		got, want = n.Reply(core, tok, m.info), r.reply(core, tok, m)
	case "replyrecv":
		m := w.message(core, bytes, descs)
		got, want = n.ReplyRecv(core, tok, m.info, ep, deadline), r.recv(core, ep, deadline, tok, m, true)
	case "take":
		if self != 0 {
			n.Thread(self).Came = 0
			r.threads[self].in = nil
		}
	case "signal":
		bits := rapid.Uint64Range(0, 3).Draw(t, "bits")
		fx, e := n.Signal(core, note, bits)
		wfx, we := r.signal(core, note, bits)
		if got, want = fx, wfx; e != we {
			return fmt.Errorf("signal: %v, want %v", e, we)
		}
	case "wait":
		got, want = n.Wait(core, note, deadline), r.wait(core, note, deadline)
	case "signalwait":
		bits := rapid.Uint64Range(0, 3).Draw(t, "bits")
		to := rapid.SampledFrom(w.notes).Draw(t, "signalled")
		got, want = n.SignalWait(core, to, bits, note, deadline), r.signalWait(core, to, bits, note, deadline)
	case "cancel":
		id := rapid.SampledFrom(w.threads).Draw(t, "thread")
		fx, e := n.Cancel(core, id)
		th := r.threads[id.index()]
		switch {
		case th == nil || n.Thread(id.index()).generation != id.generation():
			if e != linux.EBADF {
				return fmt.Errorf("cancel of nobody: %v", e)
			}
		case !blocked(th.state):
			if e != linux.EAGAIN {
				return fmt.Errorf("cancel of one that is not blocked: %v", e)
			}
		default:
			if e != 0 {
				return fmt.Errorf("cancel: %v", e)
			}
			ended := Errno(linux.ERESTARTSYS)
			if th.state == Replying {
				ended = linux.EINTR
			}
			want.IPI = r.interrupt(core, id.index(), ended)
		}
		want.Run = r.runs(core)
		got = fx
	case "tick":
		w.now += rapid.Uint64Range(0, 4).Draw(t, "time")
		var order []uint32
		for i := n.core(core).timers; i != 0; i = n.thread(i).timed.next {
			order = append(order, uint32(i))
		}
		got, want = n.Tick(core, w.now), r.tick(core, w.now, order)
	case "yield":
		if self != 0 {
			r.enqueue(core, self)
		}
		got, want = n.Yield(core), Effects{Run: r.schedule(core)}
	case "thread":
		home := rapid.Uint32Range(0, w.cores).Draw(t, "home")
		id, e := n.NewThread(core, home)
		if home == w.cores {
			if e != linux.EINVAL {
				return fmt.Errorf("a thread of no core: %v", e)
			}
			break
		}
		if e != 0 || r.threads[id.index()] != nil {
			return fmt.Errorf("new thread %#x: %v", id, e)
		}
		r.threads[id.index()] = &refThread{state: Stopped, core: home, call: n.Thread(id.index()).call}
		w.threads = append(w.threads, id)
	case "start", "move", "destroy":
		id := rapid.SampledFrom(w.threads).Draw(t, "thread")
		th := r.threads[id.index()]
		known := th != nil && n.Thread(id.index()).generation == id.generation()
		switch what {
		case "start":
			fx, e := n.Start(core, id)
			switch {
			case !known && e != linux.EBADF, known && th.state != Stopped && e != linux.EBUSY, known && th.state == Stopped && e != 0:
				return fmt.Errorf("start: %v", e)
			case e == 0:
				th.state = Ready
				want.IPI = r.enqueue(core, id.index())
			}
			got, want.Run = fx, r.runs(core)
		case "move":
			home := rapid.Uint32Range(0, w.cores-1).Draw(t, "home")
			e := n.Move(core, id, home)
			switch {
			case !known && e != linux.EBADF, known && th.state != Stopped && e != linux.EBUSY, known && th.state == Stopped && e != 0:
				return fmt.Errorf("move: %v", e)
			case e == 0:
				th.core = home
			}
		case "destroy":
			fx, dropped, e := n.DestroyThread(core, id)
			if !known {
				if e != linux.EBADF {
					return fmt.Errorf("destroy of nobody: %v", e)
				}
				got, want.Run = fx, r.runs(core)
				break
			}
			var lost []uint64
			got = fx
			want, lost = r.destroyThread(core, id.index())
			if e != 0 || !slices.Equal(dropped.Descriptors[:dropped.N], lost) {
				return fmt.Errorf("destroy: %v, dropped %v, want %v", e, dropped, lost)
			}
			for h, o := range w.owner {
				if o == id.index() {
					delete(w.owner, h)
				}
			}
		}
	case "endpoint":
		id, e := n.NewEndpoint(core)
		if e != 0 || r.ends[id.index()] != nil {
			return fmt.Errorf("new endpoint %#x: %v", id, e)
		}
		r.ends[id.index()] = &refEnd{generation: id.generation()}
		w.ends = append(w.ends, id, id)
	case "notification":
		id, e := n.NewNotification(core)
		if e != 0 || r.notes[id.index()] != nil {
			return fmt.Errorf("new notification %#x: %v", id, e)
		}
		r.notes[id.index()] = &refNote{generation: id.generation()}
		w.notes = append(w.notes, id, id)
	case "close":
		e := r.end(ep)
		fx, err := n.DestroyEndpoint(core, ep)
		if (e == nil) != (err == linux.EBADF) || e != nil && err != 0 {
			return fmt.Errorf("close: %v", err)
		}
		var q []uint32
		if e != nil {
			q = e.queue
			delete(r.ends, ep.index())
		}
		got, want = fx, r.refuse(core, q)
	case "closenote":
		o := r.note(note)
		fx, err := n.DestroyNotification(core, note)
		if (o == nil) != (err == linux.EBADF) || o != nil && err != 0 {
			return fmt.Errorf("close: %v", err)
		}
		var q []uint32
		if o != nil {
			q = o.queue
			delete(r.notes, note.index())
		}
		got, want = fx, r.refuse(core, q)
	}
	for _, c := range r.current {
		if c != 0 && r.threads[c].result.Token != 0 && !slices.Contains(w.tokens, r.threads[c].result.Token) {
			w.tokens = append(w.tokens, r.threads[c].result.Token, r.threads[c].result.Token)
		}
	}
	if err := w.table.after(n, what); err != nil {
		return err
	}
	return w.same(what, got, want)
}

// Random histories of some threads on some cores, with deaths, timeouts, cancelled
// waits, stale and forged names at any time.
func TestModel(t *testing.T) {
	cores := 3
	if Control() == "none" {
		cores = 1
	}
	counts := map[State]int{}
	tokens := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(&skipper{TB: nil, t: t}, cores)
		// Something to work with.
		for i := range 6 {
			id, _ := w.n.NewThread(0, uint32(i)%w.cores)
			w.r.threads[id.index()] = &refThread{state: Ready, core: uint32(i) % w.cores}
			w.threads = append(w.threads, id)
			got, _ := w.n.Start(0, id)
			want := Effects{IPI: w.r.enqueue(0, id.index())}
			want.Run = w.r.runs(0)
			if err := w.same("start", got, want); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			id, _ := w.n.NewEndpoint(0)
			w.r.ends[id.index()] = &refEnd{generation: id.generation()}
			w.ends = append(w.ends, id, id, id)
		}
		for range rapid.IntRange(20, 150).Draw(t, "steps") {
			if err := w.act(t); err != nil {
				t.Fatal(err)
			}
			for _, th := range w.r.threads {
				counts[th.state]++
			}
		}
		tokens += len(w.tokens) - 5
	})
	for s := Stopped; s <= Waiting; s++ {
		if counts[s] < enough(50) {
			t.Errorf("only %d steps with a thread that is %v", counts[s], s)
		}
	}
	if tokens < enough(50) {
		t.Errorf("only %d calls were received", tokens)
	}
}

// enough is how often something must have come up that should n times: with -short rapid
// makes a fifth of its checks.
func enough(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// skipper lets newNucleus work for a rapid test.
type skipper struct {
	testing.TB
	t *rapid.T
}

func (s *skipper) Helper()          {}
func (s *skipper) Skip(args ...any) { s.t.Skip(args...) }
