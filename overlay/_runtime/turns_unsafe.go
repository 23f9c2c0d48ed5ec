package runtime

import (
	"internal/runtime/atomic"
	"unsafe"
)

// Threads of user programs that could run, and wait for their turn on a processor. Each
// has a goroutine, which is parked meanwhile. Which of them is next, the kernel decides;
// a P asks when its own run queue and the global one are empty.

// userTurns is what the kernel fills in before there are user programs.
type userTurns struct {
	waiting atomic.Int32 // how many wait
	// next takes the goroutine whose turn it is from those that wait; nil if none does.
	// It is called on the scheduler's stack, with a P.
	next func() unsafe.Pointer
	// some reports whether next may find one for the processor that runs the caller: some
	// wait for others only.
	some func() bool
	// due tells when the first timer of this M's P is due, 0 if it has none. It returns that
	// in ticks, or a little earlier.
	due func(when int64) (ticks int64)
	// stand says for how many ticks the M is to stand by before its P idles, and where it is;
	// 0: not at all. look reports whether somebody wants the processor, and stood that it
	// does not stand by any more.
	stand func(early bool) (ticks int64, cpu int)
	look  func(cpu int) bool
	stood func(cpu int, found bool)

	told uint32 // changes when there may be work for an idle P
}

var turns userTurns

// How the kernel finds it: hardtack/kernel/base/wait has a variable of this name without
// a value. Without the overlay it stays nil.
//
//go:linkname turnsOfUsers hardtack/kernel/base/wait.turns
var turnsOfUsers = &turns

// lastYielded says that the global run queue came first when there was a choice.
var lastYielded bool

// nextUserInTurn is nextUser where goroutines are in the global run queue, every other
// time. Goroutines there have given way: without this, one that does so between its pieces
// of work, as the background sweeper, would never let user threads run.
func nextUserInTurn() *g {
	if turns.waiting.Load() == 0 || sched.runq.empty() {
		return nil
	}
	lastYielded = !lastYielded
	if lastYielded {
		return nil
	}
	return nextUser()
}

// nextUser returns the goroutine of the user thread whose turn it is, or nil.
func nextUser() *g {
	if turns.waiting.Load() == 0 {
		return nil
	}
	gp := (*g)(turns.next())
	if gp != nil {
		casgstatus(gp, _Gwaiting, _Grunnable)
	}
	return gp
}

// userWaits reports whether nextUser may find somebody.
func userWaits() bool { return turns.waiting.Load() != 0 && turns.some() }

// tellTimerDue is called when the answer is another than the last time, m.timerDue.
func tellTimerDue(mp *m, when int64) {
	if turns.due != nil {
		mp.timerDue, mp.dueTicks = when, turns.due(when)
	}
}

// timersWait reports whether the first timer of pp, due at next, is the one that mp told the
// kernel of, or there is none, and nothing is to be done yet.
func timersWait(mp *m, pp *p, next int64) bool {
	return next == mp.timerDue && (next == 0 || firstWaits(mp, pp))
}

// firstWaits reports whether the first timer is not due, and not many others are deleted. The
// counter of ticks is read faster than the clock.
func firstWaits(mp *m, pp *p) bool {
	return cputicks() < mp.dueTicks && pp.timers.zombies.Load() <= int32(pp.timers.len.Load()/4)
}

// yieldsTo takes the goroutine from pp's run queue that findRunnable would, where nothing
// else is to be done; nil if it has to be asked. That is so every 61st time at least, as
// often as it looks at the global run queue; finalizers and cleanups wait for that, too.
func yieldsTo(mp *m, pp *p) *g {
	if pp.schedtick%61 == 0 || mp.lockedg != 0 || pp.runnext != 0 || sched.gcwaiting.Load() ||
		pp.runSafePointFn != 0 || gcBlackenEnabled != 0 || traceEnabled() || !timersWait(mp, pp, pp.timers.wakeTime()) {
		return nil
	}
	h := atomic.LoadAcq(&pp.runqhead)
	if h == pp.runqtail {
		return nil
	}
	next := pp.runq[h%uint32(len(pp.runq))].ptr()
	if next.lockedm != 0 || !atomic.CasRel(&pp.runqhead, h, h+1) {
		return nil
	}
	pp.preempt = false
	return next
}

// timersLeft reports whether idle Ps have timers. An M that polled until the first of these, and
// goes on with another P because it was woken for something else, has to see to it that somebody
// polls for them: where it has a user thread to run, that may last. Called with a P.
func timersLeft() bool {
	for i := range timerpMask {
		if atomic.Load(&timerpMask[i])&atomic.Load(&idlepMask[i]) != 0 {
			return true
		}
	}
	return false
}

// leastStand is how soon, in nanoseconds, a timer may be due for a P that stands by.
const leastStand = 50_000

// standBy has an M that found nothing to do look for work a little longer, before it gives up
// its P: a user thread that may run on this processor only is mostly woken within
// microseconds if it talks to one on another. early: it has not looked for work of other Ps
// yet. It reports whether there may be something.
func standBy(pp *p, pollUntil int64, early bool) (found bool) {
	if turns.stand == nil || pollUntil != 0 && pollUntil-nanotime() < leastStand {
		return false
	}
	told := atomic.Load(&turns.told)
	if early {
		for _, p := range allp {
			if !runqempty(p) {
				return false
			}
		}
	}
	ticks, cpu := turns.stand(early)
	if ticks == 0 {
		return false
	}
	for end := cputicks() + ticks; !found && cputicks() < end; {
		procyield(4)
		found = turns.look(cpu) || atomic.Load(&turns.told) != told || sched.gcwaiting.Load() ||
			!sched.runq.empty() || !runqempty(pp) || pp.runSafePointFn != 0
	}
	turns.stood(cpu, found)
	return found
}
