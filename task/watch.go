package task

import "time"

// While something runs, a watcher looks around every tick: for cores that have
// come or gone, and for workers that hold a seat and do not answer because they
// are blocked in ordinary Go code. It ends with the last Run, so that an idle
// runtime does nothing at all. What Linux reports by itself (quota, cpuset,
// hotplug: see changes_linux.go) does not wait for the tick.
type watcher struct {
	on     bool // its goroutine runs
	ending bool // Close has been called
	last   machine
}

const (
	tick = 5 * time.Millisecond
	// A worker that has not looked up for so many ticks, while work waits and
	// no seat is free, loses its seat to another.
	patience = 4
)

// watch and unwatch are called with rt.mu held when the first Run begins and
// when the last one has ended.
func (rt *Runtime) watch() {
	if !rt.watcher.on {
		rt.watcher.on = true
		changes.join(rt)
		go rt.watchLoop()
	}
}

func (rt *Runtime) unwatch() {
	if rt.watcher.ending {
		rt.shut()
	}
}

func (rt *Runtime) watching() bool {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.watcher.on
}

func (rt *Runtime) ending() bool { return rt.watcher.ending }

// closed lets the runtime end with its last Run. rt.mu is held.
func (rt *Runtime) closed() {
	rt.watcher.ending = true
	if rt.runs == 0 {
		rt.shut()
	}
}

// shut wakes all workers to their end. rt.mu is held.
func (rt *Runtime) shut() {
	rt.closing.Store(true)
	for _, w := range *rt.workers.Load() {
		if w != nil {
			w.wake()
		}
	}
}

func (rt *Runtime) watchLoop() {
	t := time.NewTicker(tick)
	defer t.Stop()
	for range t.C {
		if rt.follow.Load() {
			rt.refresh()
		}
		rt.mu.Lock()
		if rt.runs == 0 {
			rt.watcher.on = false
			changes.leave(rt)
			rt.mu.Unlock()
			return
		}
		rt.lookForBlocked()
		rt.mu.Unlock()
	}
}

// refresh fits the seats to the machine.
func (rt *Runtime) refresh() {
	m := look()
	rt.mu.Lock()
	if !rt.follow.Load() || m.same(rt.watcher.last) {
		rt.mu.Unlock()
		return
	}
	before := len(rt.watcher.last.cpus)
	rt.watcher.last = m
	moves := rt.resize(min(m.cores(), MaxWorkers), m.cpus)
	rt.mu.Unlock()
	moves.run()
	m.tellGo(before)
}

// lookForBlocked takes the seats of workers that have not looked at their flags
// for some time, when there is something to do for others. rt.mu is held.
func (rt *Runtime) lookForBlocked() {
	for i := 0; i < len(rt.lost); {
		w := rt.lost[i]
		if w.beat.Load() == w.seen {
			i++
			continue
		}
		// It is back: it counts as running again.
		rt.lost = without(rt.lost, w)
		rt.surplus = append(rt.surplus, w)
		rt.press()
	}
	work := rt.queued.Load() > 0 || len(rt.orphans) > 0
	for _, w := range *rt.workers.Load() {
		work = work || w != nil && w.hasShared()
	}
	if work && len(rt.free) > 0 {
		rt.call()
		return
	}
	for _, s := range rt.seats {
		w := s.holder
		if w == nil {
			continue
		}
		beat := w.beat.Load()
		if beat != w.seen || !work {
			w.seen, w.silent = beat, 0
			continue
		}
		if w.silent++; w.silent < patience {
			w.want() // so that it has something to answer
			continue
		}
		w.silent = 0
		rt.stand(w)
		rt.lost = append(rt.lost, w)
		rt.counts.retaken++
		rt.call()
	}
}

// SetWorkers changes the number of workers, from now on fixed. More are there
// at once. Fewer: the seats to go are left at their holders' next spawn or join
// (a task that does neither is let finish), and what those had to do, spawned
// tasks and running ones, goes to the workers that stay. It does not wait.
func (rt *Runtime) SetWorkers(n int) error {
	rt.made()
	if err := checkWorkers(n); err != nil {
		return err
	}
	rt.mu.Lock()
	if rt.ending() {
		rt.mu.Unlock()
		return ErrClosed
	}
	rt.follow.Store(false)
	moves := rt.resize(n, rt.watcher.last.cpus)
	rt.mu.Unlock()
	moves.run()
	return nil
}

// Workers is the number of seats: how many tasks run at once.
func (rt *Runtime) Workers() int {
	rt.made()
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.active()
}

func (rt *Runtime) active() int {
	n := 0
	for _, s := range rt.seats {
		if !s.gone.Load() {
			n++
		}
	}
	return n
}

// resize makes the number of seats n, on these cores. rt.mu is held; the caller
// runs the moves without it.
func (rt *Runtime) resize(n int, cpus []int) moves {
	usable := map[int]bool{}
	for _, c := range cpus {
		usable[c] = true
	}
	have := rt.active()
	// A pinned seat goes with its core; then the free ones, then the last ones.
	lost := func(s *Seat) bool { return rt.pinned && !usable[s.cpu] }
	var out moves
	remove := func(match func(*Seat) bool, down int) {
		for i := len(rt.seats) - 1; i >= 0 && have > down; i-- {
			if s := rt.seats[i]; !s.gone.Load() && match(s) {
				rt.removeSeat(s)
				have--
			}
		}
	}
	remove(lost, 0)
	remove(func(s *Seat) bool { return s.holder == nil }, n)
	remove(func(*Seat) bool { return true }, n)
	for ; have < n; have++ {
		rt.addSeat(cpus)
	}
	for _, s := range rt.seats {
		if s.gone.Load() && len(s.tenants) > 0 {
			to := rt.successor()
			for _, t := range s.tenants {
				out = append(out, move{t, to})
			}
			to.tenants = append(to.tenants, s.tenants...)
			s.tenants = nil
		}
	}
	rt.seatCount.Store(int32(have))
	rt.coreChange(have)
	return out
}

func (rt *Runtime) removeSeat(s *Seat) {
	s.gone.Store(true)
	if s.holder != nil {
		s.holder.ring(flagLeave)
		return
	}
	for i, f := range rt.free {
		if f == s {
			rt.setFree(append(rt.free[:i], rt.free[i+1:]...))
			break
		}
	}
}

// addSeat revives a seat that was removed and left, or makes a new one.
func (rt *Runtime) addSeat(cpus []int) {
	var s *Seat
	taken := map[int]int{}
	for _, t := range rt.seats {
		if !t.gone.Load() {
			taken[t.cpu]++
		} else if t.holder == nil && s == nil {
			s = t
		}
	}
	if s == nil {
		s = &Seat{rt: rt, id: len(rt.seats)}
		rt.seats = append(rt.seats, s)
	}
	s.cpu = -1
	for _, c := range cpus { // the core with the fewest seats
		if s.cpu < 0 || taken[c] < taken[s.cpu] {
			s.cpu = c
		}
	}
	s.gone.Store(false)
	rt.setFree(append(rt.free, s))
	if rt.runs > 0 {
		rt.call()
	}
}
