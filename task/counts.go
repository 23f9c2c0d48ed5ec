package task

import "sync/atomic"

// counts are a worker's; it alone adds to them.
type counts struct{ shares, steals, helps, moves, wakes atomic.Uint64 }

func (c *counts) reset() {
	for _, n := range []*atomic.Uint64{&c.shares, &c.steals, &c.helps, &c.moves, &c.wakes} {
		n.Store(0)
	}
}

// runtimeCounts are guarded by Runtime.mu.
type runtimeCounts struct {
	retaken, changes uint64
	old              counts // of workers that are no more
}

// Stats are counts since the runtime was made.
type Stats struct {
	Workers  int    // seats
	Running  int    // workers that hold one, or run without
	Sleeping int    // workers that have nothing to do
	Waiting  int    // workers that sleep in a join or in Block
	Orphans  int    // workers that wait for a seat since theirs was removed
	Shares   uint64 // times that tasks were made stealable
	Steals   uint64 // tasks begun by another worker than the one that spawned them
	Helps    uint64 // those among them that were run in a join
	Wakes    uint64 // times that a worker was woken
	Moves    uint64 // workers taken over by another seat in the middle of a task
	Changes  uint64 // of the number of workers
	Retaken  uint64 // seats taken from workers that were blocked
}

// Stats tells what the runtime does and has done.
func (rt *Runtime) Stats() Stats {
	rt.made()
	rt.mu.Lock()
	defer rt.mu.Unlock()
	s := Stats{Workers: rt.active(), Running: len(rt.surplus), Sleeping: len(rt.spares), Waiting: rt.waiting,
		Orphans: len(rt.orphans), Changes: rt.counts.changes, Retaken: rt.counts.retaken}
	add := func(c *counts) {
		s.Shares += c.shares.Load()
		s.Steals += c.steals.Load()
		s.Helps += c.helps.Load()
		s.Wakes += c.wakes.Load()
		s.Moves += c.moves.Load()
	}
	add(&rt.counts.old)
	for _, w := range *rt.workers.Load() {
		if w != nil {
			add(&w.counts)
		}
	}
	for _, t := range rt.seats {
		if t.holder != nil {
			s.Running++
		}
	}
	return s
}
