package task

import (
	"runtime"
	"sync/atomic"
)

// A Worker is a goroutine that runs tasks, with the stack of those it has
// spawned. It needs a Seat to run; how seats change hands is told in seat.go.
type Worker struct {
	// The owner reads this line at each spawn; others write it to be noticed.
	limit uintptr // frames from here on make a spawn call pushed: w.end, or 0
	split uintptr // owner: address of the first private frame
	depth int32   // owner: which of acts runs
	end   uintptr // owner: address of the last frame made ready
	_     [32]byte

	word  atomic.Uint64 // the deque, a word
	flags atomic.Uint32 // why limit is 0
	_     [52]byte

	frames []Frame // immutable length; a frame is made ready before use
	rt     *Runtime
	id     int           // immutable: its place in the runtime's table
	acts   []*activation // owner: one for each depth; the first stands for none
	scopes []scopeMark   // owner: what the running tasks belong to, innermost last
	rng    uint64        // owner

	nextAll *Worker // immutable: the runtime's next one, see clock_unsafe.go
	ticks   uint32  // owner: Runtime.ticks when it last looked at its Run's context

	seat   atomic.Pointer[Seat] // nil: runs without, or sleeps; changed under rt.mu
	note   chan struct{}        // one token: a wake-up
	bound  int                  // owner, pinned runtimes: the core its thread is bound to, or -1
	beat   atomic.Uint32        // changes while the worker looks at its flags
	seen   uint32               // watcher: beat when it last looked
	silent int                  // watcher: how often it was the same
	counts counts
	self   atomic.Uintptr // its goroutine, as lock.Self tells
}

// The bits of Worker.flags.
const (
	flagWant  = 1 << iota // somebody found nothing to steal
	flagLeave             // its seat has been removed
	flagAbort             // some scope has been aborted
	flagTrace             // each spawn is recorded
	flagCheck             // no spawn takes the short way; never goes down
)

// ring makes the worker's next spawn call pushed.
func (w *Worker) ring(flag uint32) {
	w.flags.Or(flag)
	atomic.StoreUintptr(&w.limit, 0)
}

// pushed is the slow end of a spawn: f is beyond the limit.
func (f *Frame) pushed() {
	w := f.w
	if f.addr() >= w.end && !w.extend() {
		panic(ErrDepth)
	}
	w.lookUp(w.index(f) + 1)
}

// rung tells whether somebody wants the worker to look up.
func (w *Worker) rung() bool { return atomic.LoadUintptr(&w.limit) == 0 }

// lookUp answers who rang; top is the first free frame.
func (w *Worker) lookUp(top uint32) {
	w.checkContext()
	// The limit first: a ring in between is then answered once too often, not lost.
	atomic.StoreUintptr(&w.limit, w.end)
	flags := w.flags.Swap(0)
	if flags&flagCheck != 0 {
		w.ring(flagCheck)
	}
	w.beat.Store(w.beat.Load() + 1)
	if flags&(flagTrace|flagAbort) != 0 {
		w.lookUpRarely(top, flags)
	}
	if flags&flagWant != 0 {
		if w.share(top, false) {
			w.rt.wakeIfSeat()
		} else {
			w.ring(flagWant) // all is stolen: share the next spawn, since the asker may be asleep
		}
	}
	if flags&flagLeave != 0 {
		w.leaveSeat(top)
	}
}

// lookUpRarely serves tracing and aborts, whose flags stay up.
func (w *Worker) lookUpRarely(top, flags uint32) {
	if flags&flagTrace != 0 && w.rt.tracesSpawns() {
		w.ring(flagTrace)
		w.event(evSpawn, int64(top)-1)
	}
	if flags&flagAbort != 0 {
		for _, m := range w.scopes {
			if m.s.ended() {
				w.ring(flagAbort) // until all of them have unwound
				break
			}
		}
		if w.scope().ended() {
			w.ring(flags & (flagWant | flagLeave)) // served after the unwinding
			panic(abortSignal{})
		}
	}
}

// extend makes frames ready up to twice as far, or tells that the stack is full.
func (w *Worker) extend() bool {
	have := int((w.end-w.frames[0].addr())/frameSize) + 1
	if have > w.rt.depth {
		return false
	}
	w.ready(have, min(2*have, w.rt.depth+1))
	return true
}

func (w *Worker) ready(from, to int) {
	for i := from; i < to; i++ {
		w.frames[i].w = w
		if w.frames[i].ext == nil {
			w.frames[i].ext = noJob
		}
	}
	w.end = w.frames[to-1].addr()
	if to > w.rt.depth { // those beyond, for late panics
		for i := to; i < len(w.frames)-1; i++ {
			w.frames[i].w, w.frames[i].ext = w, noJob
		}
	}
}

// share makes private frames stealable, the older half or all of them.
func (w *Worker) share(top uint32, all bool) bool {
	for {
		old := word(w.word.Load())
		next, ok := old.share(top)
		if !ok {
			return false
		}
		if all {
			next = pack(old.tail(), top)
		}
		k := len(w.scopes) - 1
		for i := next.split(); i > old.split(); i-- {
			f := &w.frames[i-1]
			for k > 0 && f.addr() < w.scopes[k].base.addr() {
				k--
			}
			f.scope = w.scopes[k].s
			f.state.Store(0)
		}
		if w.word.CompareAndSwap(uint64(old), uint64(next)) {
			w.split = w.frames[next.split()].addr()
			w.counts.shares.Add(1)
			w.event(evShare, int64(next.split()-old.split()))
			return true
		}
	}
}

// takeBack makes f private, or tells that it has been stolen.
func (w *Worker) takeBack(f *Frame) bool {
	if f.addr() >= w.split {
		return true
	}
	i := w.index(f)
	for {
		old := word(w.word.Load())
		next, ok := old.takeBack(i)
		if !ok {
			return false
		}
		if w.word.CompareAndSwap(uint64(old), uint64(next)) {
			w.split = w.frames[next.split()].addr()
			return true
		}
	}
}

// release forgets frame f, whose thief is done; none above it is in use.
func (w *Worker) release(f *Frame) {
	i := w.index(f)
	w.word.Store(uint64(word(0).release(i)))
	w.split = f.addr()
}

// steal takes v's oldest shared frame.
func (v *Worker) steal() *Frame {
	for {
		old := word(v.word.Load())
		next, i, ok := old.steal()
		if !ok {
			return nil
		}
		if v.word.CompareAndSwap(uint64(old), uint64(next)) {
			return &v.frames[i]
		}
	}
}

// offer has w share its first spawn if a seat is free: who sleeps there asked
// those that were busy then.
func (w *Worker) offer() {
	if w.rt.freeSeats.Load() > 0 {
		w.ring(flagWant)
	}
}

func (v *Worker) hasShared() bool {
	s := word(v.word.Load())
	return s.tail() < s.split()
}

// want asks v to share, if it has not been asked yet.
func (v *Worker) want() {
	if v.flags.Load()&flagWant == 0 {
		v.ring(flagWant)
	}
}

// stealAny tries every other worker once, from a random one on, and runs what
// it gets on top of base.
func (w *Worker) stealAny(base *Frame) bool {
	all := *w.rt.workers.Load()
	w.rng ^= w.rng << 13
	w.rng ^= w.rng >> 7
	w.rng ^= w.rng << 17
	k := int(w.rng % uint64(len(all)))
	for range all {
		if v := all[k]; v != w && v != nil {
			if f := v.steal(); f != nil {
				w.runStolen(f, base)
				return true
			}
			v.want()
		}
		if k++; k == len(all) {
			k = 0
		}
	}
	return false
}

// runStolen runs the task in v, another worker's frame, on top of base.
func (w *Worker) runStolen(v *Frame, base *Frame) {
	if v.fn == fnNone {
		v.finish(stateDone)
		return
	}
	v.state.Or(uint32(w.id+1) << stateThief)
	w.counts.steals.Add(1)
	w.event(evSteal, int64(v.w.id))
	how := uint32(stateDone | stateFailed)
	a := w.enter(base, v.scope)
	w.offer()
	defer func() {
		if how&stateFailed != 0 {
			v.fault = w.failed(a, recover())
		}
		w.leave(a)
		w.event(evStolenEnd, int64(v.w.id))
		v.finish(how)
	}()
	if v.scope.ended() {
		panic(abortSignal{})
	}
	if v.fn == fnJob {
		v.ext.run(Ctx{a})
	} else {
		v.a = (*functions.Load())[v.fn](base, v.a, v.b)
	}
	how = stateDone
}

// finish hands v back to its owner.
func (v *Frame) finish(how uint32) {
	owner := v.w
	if v.state.Or(how)&stateWaiting != 0 {
		owner.wake()
	}
}

// await waits until the thief of f is done. Meanwhile it runs what is stolen
// from that thief, on top of base: while the thief runs f, all it has to give
// was spawned by f. So a join works for its own children only, and a mutex that
// the parent holds cannot be wanted by what runs here.
func (w *Worker) await(f *Frame, base *Frame) {
	for idle := 0; ; idle++ {
		state := f.state.Load()
		if state&stateDone != 0 {
			return
		}
		if thief := int(state>>stateThief) - 1; thief >= 0 {
			v := (*w.rt.workers.Load())[thief]
			if v == nil {
				continue // it is done and has gone meanwhile
			}
			if got := v.steal(); got != nil {
				if f.state.Load()&stateDone != 0 {
					// The thief had begun another task: got need not be f's.
					w.rt.stray(got)
					return
				}
				w.counts.helps.Add(1)
				w.runStolen(got, base)
				idle = 0
				continue
			}
			v.want()
		}
		if w.rt.helpAny && w.stealAny(base) {
			idle = 0
			continue
		}
		switch {
		case idle < joinSpins:
			pause(idle)
		case idle < joinSpins+joinYields:
			runtime.Gosched()
		default:
			w.sleepOn(f)
			idle = 0
		}
	}
}

// sleepOn gives the seat away until f is done.
func (w *Worker) sleepOn(f *Frame) {
	w.event(evJoinSleep, 0)
	w.giveSeat()
	for {
		old := f.state.Load()
		if old&stateDone != 0 {
			break
		}
		if old&stateWaiting == 0 && !f.state.CompareAndSwap(old, old|stateWaiting) {
			continue
		}
		<-w.note
	}
	w.takeSeat()
	w.event(evJoinWake, 0)
}

// wake leaves a token. A token too many only makes the sleeper look once more.
func (w *Worker) wake() {
	select {
	case w.note <- struct{}{}:
	default:
	}
}

// unwind drops the spawned tasks from base on that nobody has begun and waits
// for the others: their parent is going away.
func (w *Worker) unwind(base *Frame) {
	b := w.index(base)
	for i := b; w.frames[i].w != nil; i++ { // the last is never made ready
		w.frames[i].ext.drop()
		w.frames[i].ext.below()
	}
	for {
		old := word(w.word.Load())
		if old.split() <= b {
			return
		}
		next := pack(old.tail(), max(old.tail(), b))
		if !w.word.CompareAndSwap(uint64(old), uint64(next)) {
			continue
		}
		// What is still there has been stolen; help from above all of it.
		top := &w.frames[max(old.split(), b)]
		w.split = w.frames[next.split()].addr()
		for i := next.split(); i > b; i-- {
			w.await(&w.frames[i-1], top)
		}
		if old.tail() > b {
			w.release(base)
		}
		return
	}
}
