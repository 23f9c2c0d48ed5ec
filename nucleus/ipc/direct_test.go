package ipc

import (
	"testing"

	"pgregory.net/rapid"
)

// What the kernel does with loose threads, one CPU at a time: it enters, operates,
// leaves, and has whoever is ready.

type looseWorld struct {
	n     *Nucleus
	ready map[uint32]bool
	ends  []ID
	regs  [6]Registers
	plain bool // never the short way
	short int

	queued, goesOn int // of those
}

func newLoose(t *rapid.T, plain bool) *looseWorld {
	w := &looseWorld{n: newNucleus(&skipper{t: t}, 1), ready: map[uint32]bool{}, plain: plain}
	w.n.SetLoose()
	for i := range uint32(5) {
		id, err := w.n.NewThread(0, 0)
		if err != 0 {
			t.Fatal(err)
		}
		if i != 4 { // one is hosted
			w.n.Direct(id.Index(), &w.regs[id.Index()])
		}
		w.ready[id.Index()] = true
	}
	for range 2 {
		ep, _ := w.n.NewEndpoint(0)
		w.ends = append(w.ends, ep)
	}
	return w
}

// after takes everybody who is ready from the nucleus.
func (w *looseWorld) after() {
	w.n.Put(0)
	for i := w.n.Take(0, 0); i != 0; i = w.n.Take(0, 0) {
		w.ready[i] = true
	}
}

// came has what a thread got in its registers, the short way, where the long one
// leaves it.
func (w *looseWorld) came(next uint32, r *Registers) {
	w.ready[next] = true
	t := w.n.Thread(next)
	t.Short = [ShortWords]uint64{r[r8], r[r9], r[r12], r[r13], r[r14], r[r15]}
	t.result = Result{Info: Info(r[infoReg]), Badge: r[badgeReg], Token: Token(r[tokenReg])}
}

func (w *looseWorld) call(self uint32, ep ID, badge uint64, regs *Registers) {
	delete(w.ready, self)
	if !w.plain {
		next := w.n.CallDirect(0, self, w.n.EndpointAt(ep), ep, badge, regs)
		switch {
		case next == Queued|ep.Index():
			w.queued++
		case next != 0:
			w.came(next, &w.regs[next])
		}
		if next != 0 {
			w.short++
			return
		}
	}
	w.enter(self, regs)
	w.n.Call(0, ep, badge, MakeInfo(48, 0), Forever)
	w.after()
}

func (w *looseWorld) replyRecv(self uint32, tok Token, ep ID, regs *Registers) {
	delete(w.ready, self)
	if !w.plain {
		with := *regs
		with[tokenReg] = uint64(tok)
		next := w.n.ReplyDirect(0, self, w.n.EndpointAt(ep), ep, &with)
		switch {
		case next&GoesOn != 0 && w.goesOn%2 == 0: // as where nobody takes the caller
			w.goesOn++
			w.came(self, &with)
			w.n.Requeue(0, next&^GoesOn)
			w.after()
		case next&GoesOn != 0:
			w.goesOn++
			w.came(self, &with)
			w.came(next&^GoesOn, &w.regs[next&^GoesOn])
		case next != 0:
			w.came(next, &w.regs[next])
		}
		if next != 0 {
			w.short++
			return
		}
	}
	w.enter(self, regs)
	w.n.ReplyRecv(0, tok, MakeInfo(48, 0), ep, Forever)
	w.after()
}

func (w *looseWorld) enter(self uint32, regs *Registers) {
	w.n.Enter(0, self)
	w.n.Thread(self).Short = [ShortWords]uint64{regs[r8], regs[r9], regs[r12], regs[r13], regs[r14], regs[r15]}
}

// The short way of a call does what the long one does, to everything, and takes itself
// out where it cannot.
func TestDirect(t *testing.T) {
	short, queued, goesOn := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		a, b := newLoose(t, false), newLoose(t, true)
		worlds := []*looseWorld{a, b}
		for step := range rapid.IntRange(10, 80).Draw(t, "steps") {
			var ready []uint32
			for i := range uint32(6) {
				if a.ready[i] {
					ready = append(ready, i)
				}
				if a.ready[i] != b.ready[i] {
					t.Fatalf("step %d: thread %d is ready: %v, want %v", step, i, a.ready[i], b.ready[i])
				}
			}
			what := rapid.SampledFrom([]string{"call", "call", "reply", "reply", "reply", "cancel", "close"}).Draw(t, "what")
			if len(ready) == 0 {
				what = "cancel"
			}
			regs := Registers{sentReg: uint64(MakeInfo(48, 0)) | 7<<32, r8: uint64(step), r9: 1, r12: 4, r13: 5, r14: 6, r15: uint64(step) << 8}
			badge := rapid.Uint64().Draw(t, "badge")
			e := rapid.IntRange(0, 1).Draw(t, "endpoint")
			switch what {
			case "call", "reply":
				self := rapid.SampledFrom(ready).Draw(t, "thread")
				tok := a.n.Result(self).Token
				if rapid.IntRange(0, 9).Draw(t, "forge") == 0 {
					tok = Token(rapid.Uint64().Draw(t, "token"))
				}
				for _, w := range worlds {
					if what == "call" {
						w.call(self, w.ends[e], badge, &regs)
					} else {
						w.replyRecv(self, tok, w.ends[e], &regs)
					}
				}
			case "cancel":
				i := rapid.Uint32Range(1, 5).Draw(t, "thread")
				for _, w := range worlds {
					w.n.Cancel(0, makeID(int(i), w.n.Thread(i).generation))
					w.after()
				}
			case "close":
				for _, w := range worlds {
					w.n.DestroyEndpoint(0, w.ends[e])
					w.after()
					w.ends[e], _ = w.n.NewEndpoint(0)
				}
			}
			for i := range uint32(6) {
				x, y := a.n.Thread(i), b.n.Thread(i)
				same := x.where == y.where && x.link == y.link && x.call == y.call && x.result == y.result && x.deadline == y.deadline
				if a.ready[i] && x.result.Info != 0 && x.result.Err == 0 {
					same = same && x.Short == y.Short
				}
				if !same {
					t.Fatalf("step %d, %s: thread %d is\n%+v, want\n%+v", step, what, i, x, y)
				}
			}
			for k := range a.n.endpoints {
				if x, y := &a.n.endpoints[k], &b.n.endpoints[k]; x.queue != y.queue || x.queue.head != 0 && x.receivers != y.receivers {
					t.Fatalf("step %d, %s: endpoint %d has %+v, receivers %v, want %+v, %v", step, what, k, x.queue, x.receivers, y.queue, y.receivers)
				}
			}
		}
		short, queued, goesOn = short+a.short, queued+a.queued, goesOn+a.goesOn
	})
	if short < enough(100) || queued < enough(20) || goesOn < enough(20) {
		t.Errorf("the short way was taken %d times only, %d to wait in the queue, %d to go on with the next call", short, queued, goesOn)
	}
}
