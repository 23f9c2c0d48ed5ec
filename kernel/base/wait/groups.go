package wait

import (
	"math/bits"
	"sync/atomic"
)

// Threads that wait are grouped by the processors that they may run on, so that a processor
// finds the first one for itself without a search: it looks at the group of all processors,
// at its own, and at those of other sets.

// maxSets is how many sets of more than one processor, but not all, have a group. A thread
// with another set then waits for one of its processors, where the fewest wait.
const maxSets = 16

// turnGroup is the threads that may run on the same processors.
type turnGroup struct {
	cpus           atomic.Uint64 // 0: nobody has waited in it yet
	fair, realTime turnHeap
	waiting        int // guarded by turnQueue.lock
}

// groups are guarded by turnQueue.lock; what is atomic, anybody may read.
type groups struct {
	all  turnGroup
	one  [64]turnGroup
	sets [maxSets]turnGroup

	pinned uint64       // processors whose group in one is not empty
	inSets atomic.Int32 // how many wait in sets
}

// wanted is the processors that threads wait for which may not run on all. The nucleus looks
// at it, too.
var wanted = new(atomic.Uint64)

// everyCPU is all processors there are.
func everyCPU() uint64 { return 1<<uint64(processors) - 1 }

// off is the processors that run nothing at the moment.
var off atomic.Uint64

func thisCPU() int {
	if processors == 1 || hooks.CPU == nil {
		return 0
	}
	return hooks.CPU()
}

// of returns the group for threads that may run on some processors.
func (q *groups) of(allowed uint64) *turnGroup {
	if gone := off.Load(); gone != 0 {
		// Who has none left gets a new set when it enters user mode.
		allowed &^= gone
	}
	if allowed == 0 {
		return &q.all
	}
	if allowed&(allowed-1) == 0 {
		return q.alone(bits.TrailingZeros64(allowed))
	}
	var free *turnGroup
	for i := range q.sets {
		switch g := &q.sets[i]; {
		case g.waiting == 0:
			free = g
		case g.cpus.Load() == allowed:
			return g
		}
	}
	if free != nil {
		free.cpus.Store(allowed)
		return free
	}
	least := -1
	for m := allowed; m != 0; m &= m - 1 {
		if i := bits.TrailingZeros64(m); least < 0 || q.one[i].waiting < q.one[least].waiting {
			least = i
		}
	}
	return q.alone(least)
}

// alone returns a processor's own group.
func (q *groups) alone(cpu int) *turnGroup {
	g := &q.one[cpu]
	g.cpus.Store(1 << cpu)
	return g
}

// enter chooses the group that a thread waits in.
func (q *groups) enter(t *Turn) *turnGroup {
	g := &q.all
	if t.allowed != 0 {
		g = q.of(t.allowed)
	}
	t.group = g
	if g == &q.all { // nobody asks how many wait there
		return g
	}
	g.waiting++
	q.count(g, 1)
	return g
}

// leave is called when a thread no longer waits.
func (q *groups) leave(t *Turn) {
	if g := t.group; g != &q.all {
		g.waiting--
		q.count(g, -1)
	}
}

// count keeps account of a group whose number of threads changed by n.
func (q *groups) count(g *turnGroup, n int32) {
	if cpus := g.cpus.Load(); cpus&(cpus-1) != 0 {
		q.inSets.Add(n)
	} else if q.pinned |= cpus; g.waiting == 0 {
		q.pinned &^= cpus
	}
	w := q.pinned
	if q.inSets.Load() != 0 {
		for i := range q.sets {
			if s := &q.sets[i]; s.waiting != 0 {
				w |= s.cpus.Load()
			}
		}
	}
	if w != wanted.Load() {
		wanted.Store(w)
	}
}

// first returns the first real-time thread that may run on a processor, and the first of the
// others. Called with the lock held.
func (q *groups) first(cpu int) (realTime, fair *Turn) {
	realTime, fair = q.all.realTime.first, q.all.fair.first
	if wanted.Load() == 0 {
		return realTime, fair
	}
	realTime, fair = earlier(realTime, q.one[cpu].realTime.first), earlier(fair, q.one[cpu].fair.first)
	if q.inSets.Load() != 0 {
		for i := range q.sets {
			if g := &q.sets[i]; g.cpus.Load()>>cpu&1 != 0 {
				realTime = earlier(realTime, g.realTime.first)
				fair = earlier(fair, g.fair.first)
			}
		}
	}
	return realTime, fair
}

func earlier(a, b *Turn) *Turn {
	if b == nil || a != nil && a.before(b) {
		return a
	}
	return b
}

// leastFair returns the least key of the threads that may run on this processor and are not
// real-time; 0: there is none.
func (q *groups) leastFair() int64 {
	if wanted.Load() == 0 {
		return q.all.fair.least.Load()
	}
	return q.leastFairOn(thisCPU())
}

func (q *groups) leastFairOn(cpu int) int64 {
	key := lesser(q.all.fair.least.Load(), q.one[cpu].fair.least.Load())
	if q.inSets.Load() != 0 {
		for i := range q.sets {
			if g := &q.sets[i]; g.cpus.Load()>>cpu&1 != 0 {
				key = lesser(key, g.fair.least.Load())
			}
		}
	}
	return key
}

// leastRealTime is leastFair for real-time threads.
func (q *groups) leastRealTime() int64 {
	if wanted.Load() == 0 {
		return q.all.realTime.least.Load()
	}
	return q.leastRealTimeOn(thisCPU())
}

func (q *groups) leastRealTimeOn(cpu int) int64 {
	key := lesser(q.all.realTime.least.Load(), q.one[cpu].realTime.least.Load())
	if q.inSets.Load() != 0 {
		for i := range q.sets {
			if g := &q.sets[i]; g.cpus.Load()>>cpu&1 != 0 {
				key = lesser(key, g.realTime.least.Load())
			}
		}
	}
	return key
}

// lesser returns the lesser of two keys, of which 0 is none.
func lesser(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// idleWanted returns an idle processor that a thread waits for which may not run on all; -1
// if there is none.
func idleWanted(but int) int {
	if w := wanted.Load() &^ (1 << but); w != 0 {
		if w &= hooks.Idle(); w != 0 {
			return bits.TrailingZeros64(w)
		}
	}
	return -1
}

// allow changes the processors that a thread may run on, also while it waits; called with
// the lock held.
func allow(t *Turn, cpus uint64) (waits bool) {
	if cpus &= everyCPU(); cpus == everyCPU() {
		cpus = 0
	}
	if t.heap == nil {
		t.allowed = cpus
		return false
	}
	takeTurn(t)
	t.allowed = cpus
	pushTurn(t)
	return true
}

// regroup has those wait anew that wait only for processors that are off; called with the
// lock held. It moves some, and reports whether there may be more.
func (q *groups) regroup() bool {
	gone := off.Load()
	for i := range q.one {
		if gone>>i&1 != 0 && q.one[i].regroup() {
			return true
		}
	}
	for i := range q.sets {
		if g := &q.sets[i]; g.waiting != 0 && g.cpus.Load()&gone != 0 && g.regroup() {
			return true
		}
	}
	return false
}

// regroup moves one thread.
func (g *turnGroup) regroup() bool {
	t := g.fair.first
	if t == nil {
		t = g.realTime.first
	}
	if t == nil {
		return false
	}
	takeTurn(t)
	pushTurn(t)
	return true
}
