package task

import (
	"runtime"
	"sync/atomic"

	"hardtack/lock/core"
)

// A Seat is the right of one worker to run: there is one for each core that the
// runtime may use. A worker without a seat sleeps, with one exception: when it
// comes back from waiting and no seat is free, it goes on without, as surplus,
// and the next worker that finds nothing to do makes up for it.
//
// A seat that is removed is left at the holder's next spawn or join. The worker
// shares all its tasks and waits as an orphan until another worker, with
// nothing to do of its own, gives its seat to it: stack, queue and all.
type Seat struct {
	rt      *Runtime    // immutable
	id      int         // immutable
	cpu     int         // the core, -1 for any
	gone    atomic.Bool // removed; set under Runtime.mu
	holder  *Worker     // guarded by Runtime.mu
	tenants []Tenant    // guarded by Runtime.mu; see tenant.go
}

// Index numbers the seats from zero.
func (s *Seat) Index() int { return s.id }

// sit gives s, which is nobody's, to w. rt.mu is held.
func (rt *Runtime) sit(w *Worker, s *Seat) {
	s.holder = w
	w.seat.Store(s)
}

// stand takes w's seat from it. rt.mu is held.
func (rt *Runtime) stand(w *Worker) {
	s := w.seat.Load()
	if s == nil {
		rt.surplus = without(rt.surplus, w)
		rt.lost = without(rt.lost, w)
		rt.press()
		return
	}
	w.seat.Store(nil)
	s.holder = nil
	if !s.gone.Load() {
		rt.setFree(append(rt.free, s))
	}
}

func (rt *Runtime) setFree(free []*Seat) {
	rt.free = free
	rt.freeSeats.Store(int32(len(free)))
}

// press tells idle workers that others want their seats. rt.mu is held.
func (rt *Runtime) press() { rt.pressed.Store(len(rt.orphans)+len(rt.surplus) > 0) }

func without[T comparable](list []T, w T) []T {
	for i, v := range list {
		if v == w {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}

// call fills a free seat, if there is one: with an orphan, a surplus worker, a
// sleeping one, or a new one, in this order. rt.mu is held.
func (rt *Runtime) call() {
	if len(rt.free) == 0 {
		return
	}
	s := rt.free[len(rt.free)-1]
	var w *Worker
	switch {
	case len(rt.orphans) > 0:
		w, rt.orphans = rt.orphans[0], rt.orphans[1:]
	case len(rt.surplus) > 0:
		w, rt.surplus = rt.surplus[0], rt.surplus[1:]
	case len(rt.spares) > 0:
		w, rt.spares = rt.spares[len(rt.spares)-1], rt.spares[:len(rt.spares)-1]
	default:
		if w = rt.newWorker(); w == nil {
			return
		}
		rt.setFree(rt.free[:len(rt.free)-1])
		rt.sit(w, s)
		rt.alive.Add(1)
		go w.loop()
		return
	}
	rt.setFree(rt.free[:len(rt.free)-1])
	rt.press()
	rt.sit(w, s)
	w.wake()
}

// wakeIfSeat fills a free seat because there is work.
func (rt *Runtime) wakeIfSeat() {
	if rt.freeSeats.Load() > 0 {
		rt.mu.Lock()
		rt.call()
		rt.mu.Unlock()
	}
}

// giveSeat lets another worker run while w waits for something.
func (w *Worker) giveSeat() {
	rt := w.rt
	rt.mu.Lock()
	rt.stand(w)
	rt.waiting++
	rt.call()
	rt.mu.Unlock()
}

// takeSeat is the way back.
func (w *Worker) takeSeat() {
	rt := w.rt
	rt.mu.Lock()
	rt.waiting--
	if n := len(rt.free); n > 0 {
		s := rt.free[n-1]
		rt.setFree(rt.free[:n-1])
		rt.sit(w, s)
	} else {
		rt.surplus = append(rt.surplus, w)
		rt.press()
	}
	rt.mu.Unlock()
	w.settle()
}

// leaveSeat is called on the way after flagLeave; top is the first free frame.
func (w *Worker) leaveSeat(top uint32) {
	rt := w.rt
	rt.mu.Lock()
	s := w.seat.Load()
	if s == nil || !s.gone.Load() {
		rt.mu.Unlock()
		return
	}
	rt.stand(w)
	if n := len(rt.free); n > 0 {
		rt.sit(w, rt.free[n-1])
		rt.setFree(rt.free[:n-1])
		rt.mu.Unlock()
		w.settle()
		return
	}
	rt.mu.Unlock()
	w.share(top, true)
	w.event(evOrphan, int64(s.id))
	rt.mu.Lock()
	rt.orphans = append(rt.orphans, w)
	rt.press()
	rt.call()
	rt.mu.Unlock()
	for w.seat.Load() == nil {
		<-w.note
	}
	w.counts.moves.Add(1)
	w.settle()
	w.event(evAdopted, int64(w.seat.Load().id))
}

// loop is a worker's life: it holds a seat, or rests.
func (w *Worker) loop() {
	finished := false
	defer func() {
		if !finished { // Goexit in a task: the worker goes on in another goroutine
			w.depth, w.scopes = 0, w.scopes[:1]
			go w.loop()
		}
	}()
	if w.rt.pinned {
		runtime.LockOSThread()
	}
	w.self.Store(core.Self())
	w.settle()
	for idle := 0; ; idle++ {
		w.answer()
		switch {
		case w.mustRest():
			if !w.rest() {
				finished = true
				return
			}
			idle = 0
		case w.work():
			idle = 0
		case idle < searchSpins:
			pause(idle)
		case idle < searchSpins+searchYields:
			runtime.Gosched()
		default:
			if !w.rest() {
				finished = true
				return
			}
			idle = 0
		}
	}
}

// answer puts the flags back that are for spawning workers.
func (w *Worker) answer() {
	if atomic.LoadUintptr(&w.limit) == 0 {
		atomic.StoreUintptr(&w.limit, w.end)
		flags := w.flags.Swap(0)
		if flags&flagTrace != 0 && w.rt.tracesSpawns() {
			w.ring(flagTrace)
		}
		if flags&flagCheck != 0 {
			w.ring(flagCheck)
		}
	}
	w.beat.Store(w.beat.Load() + 1)
}

// mustRest tells that others need the seat more, or that there is none.
func (w *Worker) mustRest() bool {
	s := w.seat.Load()
	return s == nil || s.gone.Load() || w.rt.pressed.Load() || w.rt.closing.Load()
}

// work finds something to run.
func (w *Worker) work() bool {
	rt := w.rt
	if rt.queued.Load() > 0 {
		root, f := rt.takeQueued()
		switch {
		case root != nil:
			w.runRoot(root)
			return true
		case f != nil:
			w.runStolen(f, &w.frames[0])
			return true
		}
	}
	return w.stealAny(&w.frames[0])
}

// rest gives the seat back and sleeps until it gets one. False means that the
// worker is not needed any more.
func (w *Worker) rest() bool {
	rt := w.rt
	rt.mu.Lock()
	rt.stand(w)
	if len(rt.orphans)+len(rt.surplus) > 0 {
		rt.call()
	}
	if rt.closing.Load() || len(rt.spares) > len(rt.seats) {
		rt.dismiss(w)
		rt.mu.Unlock()
		return false
	}
	rt.spares = append(rt.spares, w)
	rt.mu.Unlock()
	w.forget()

	// Whoever shares from now on sees the free seat. Whoever did before is seen here.
	if rt.anyWork() {
		rt.wakeIfSeat()
	}
	w.event(evPark, 0)
	for w.seat.Load() == nil {
		<-w.note
		if rt.closing.Load() {
			rt.mu.Lock()
			if w.seat.Load() == nil {
				rt.spares = without(rt.spares, w)
				rt.dismiss(w)
				rt.mu.Unlock()
				return false
			}
			rt.mu.Unlock()
		}
	}
	w.counts.wakes.Add(1)
	w.settle()
	w.event(evUnpark, 0)
	return true
}

// settle binds the thread of a pinned worker to its seat's core.
func (w *Worker) settle() {
	if !w.rt.pinned {
		return
	}
	w.rt.mu.Lock()
	s, cpu := w.seat.Load(), -1
	if s != nil {
		cpu = s.cpu
	}
	w.rt.mu.Unlock()
	if cpu >= 0 && cpu != w.bound && bind(cpu) {
		w.bound = cpu
	}
}
