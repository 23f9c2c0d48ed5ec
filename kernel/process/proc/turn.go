package proc

import (
	"runtime"
	"sync/atomic"

	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/wait"
	"hardtack/nucleus"
)

// Threads share the processors fairly by weight, as in Linux's CFS
// (Documentation/scheduler/sched-design-CFS.rst). A thread's virtual time is what it has
// run, divided by its weight. It runs in the kernel whenever it can: Go's scheduler sees
// to that. Before it enters user mode it gives way to a thread that waits for user mode
// with less virtual time, and so it does when it is interrupted and its slice is over.
// Who is woken has slept, and thereby less virtual time than who ran meanwhile.

// weights are those of the nice values -20 to 19: each is 1.25 times the next
// (kernel/sched/core.c, sched_prio_to_weight).
var weights = [40]int64{
	88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
	9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277,
	1024, 820, 655, 526, 423, 335, 272, 215, 172, 137,
	110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
}

const (
	normalWeight = 1024
	idleWeight   = 3 // of SCHED_IDLE

	// sleeperBonus is by how much virtual time a thread that slept may be behind those
	// that wait at most, in nanoseconds; see bonus. When a thread enters user mode it may be
	// ahead of them by a slice and sliceMargin: the end of a slice is to find it in user mode,
	// not on its way there after it was woken. One that is young may be ahead by half a slice.
	// Without threads of other users it may be ahead by granularity at least: those that wake each
	// other in turn would else wait for all others as soon as they have used up the bonus.
	sleeperBonus = 3e6
	granularity  = 1e6
	sliceMargin  = 0.25e6

	// mostOwed is what a user may owe for its new threads (wait.Crowd).
	mostOwed = 10e6

	// The virtual time of a thread that starts to wait may differ from the others' by what
	// all of them run in maxWait, by weight, but by no less than leastLag and no more than
	// mostLag. Without this bound a thread of little weight waits for minutes beside heavy
	// ones, and a thread that used little time while nobody waited keeps all others out of
	// user mode until it has caught up.
	maxWait  = 250e6
	leastLag = slice
	mostLag  = 2e9

	// A slice that ends so soon after the thread entered user mode goes on, nucleus.MaxGraces
	// times at most.
	justEntered = 5e3

	// mostCalm is for how long a thread that has looked at the others does not look again.
	mostCalm = 100e3

	// slice is how long a thread runs at most before it gives way (nucleus, sliceUser).
	slice = 4e6
)

// A turn is a thread's share of the processors; the thread's own, but for weight.
type turn struct {
	wait.Turn
	ran    int64 // ticks that its goroutine had run when Virtual was brought up to date
	off    int64 // what its clock told then
	slept  int64 // ticks that it was blocked, since its place among others was looked at
	weight int64 // 0: normalWeight; guarded by Proc.mu, read freely
	rate   int64 // how fast Virtual passes: more than 1 if its user has many threads
	young  int64 // what is left of its first slice

	round int64 // ticks that a real-time thread has run of its slice

	// Until calm, in ticks, the thread need not look at others again while calmFirst is the key
	// of the one that is next, and it has not slept.
	calm, calmFirst int64

	graces     int32 // how often its slice went on since its turn began
	roundRobin bool  // SCHED_RR; guarded by Proc.mu, read freely
	over       bool  // its slice is over
	live       bool  // it has begun, and has not ended; guarded by Proc.mu
}

// charge brings the virtual time up to date.
func (t *Thread) charge() {
	off := t.Off()
	ran := ticks() - off
	d := ran - t.turn.ran
	t.turn.slept += off - t.turn.off
	t.turn.ran, t.turn.off = ran, off
	if t.turn.RealTime() > 0 {
		if t.Woken.Load() {
			t.Woken.Store(false)
			t.turn.Place = 0
		}
		t.turn.chargeRealTime(max(d, 0), ran+off)
	}
	if w := t.turn.weight; w != 0 {
		d = d * normalWeight / w
	}
	t.turn.rate = t.turn.Crowd.Rate()
	d = max(d, 0) * t.turn.rate
	t.turn.Virtual += d
	if young := t.turn.young; young > 0 {
		d = min(d, young)
		t.turn.young -= d
		t.turn.Crowd.Young(d, ran+off, ticksOf(mostOwed))
	}
}

// bounded returns the thread's virtual time, within bounds of that of others.
func (t *Thread) bounded() int64 {
	t.turn.Virtual = place(t.turn.Virtual, t.turn.slept, present(), t.lag(), bonus(t.turn.Crowd))
	t.turn.slept = 0
	return t.turn.Virtual
}

// present returns the virtual time of the thread that is next, or of the last one.
func present() int64 {
	if first, some := wait.FirstVirtual(); some {
		return first
	}
	return wait.VirtualTime()
}

// place gives the virtual time of a thread that has slept, where now is the present one.
// What it did not use while it slept is lost, but for bonus, and it differs from
// now by lag at most.
func place(virtual, slept, now, lag, bonus int64) int64 {
	virtual = max(virtual, min(virtual+slept, now-bonus), now-lag)
	return max(min(virtual, now+lag), 1)
}

// bonus is sleeperBonus in ticks. Beside other users it is at most a slice and a half: threads that
// wake each other in turn come before a thread that did not sleep until they have used up the bonus.
func bonus(c *wait.Crowd) int64 {
	if c.HasRivals() {
		return ticksOf(min(sleeperBonus, nucleus.Slice()*3/2))
	}
	return ticksOf(sleeperBonus)
}

// lag returns by how much virtual time the thread may differ from others.
func (t *Thread) lag() int64 {
	weight, cpus := wait.TurnLoad()
	lag := maxWait * normalWeight * cpus / (weight + t.turn.share())
	return ticksOf(min(max(lag, leastLag), mostLag))
}

// share returns the weight among threads of all users.
func (t *turn) share() int64 {
	w := t.weight
	if w == 0 {
		w = normalWeight
	}
	return max(w/max(t.rate, 1), 1)
}

// ticksPerMsec is nearly so; 0 until it is known.
var ticksPerMsec atomic.Int64

// ticksOf converts some milliseconds at most.
func ticksOf(nsec int64) int64 {
	rate := ticksPerMsec.Load()
	if rate == 0 {
		if per := nsecPerTick(); per > 0 {
			rate = int64(1e6 / per)
			ticksPerMsec.Store(rate)
		}
	}
	return nsec / 1e3 * rate / 1e3
}

// interrupted gives way after an interrupt in user mode if somebody else may run. At the
// end of a slice that may be the collector, which waits for Go's scheduler to look.
func (t *Thread) interrupted(why uint64) {
	if t.rseq.due.Load() && !t.restart() {
		t.forceSegv(0)
	}
	if why == nucleus.SliceOver && t.prolong() {
		return
	}
	if why&(nucleus.TimerDue|nucleus.SliceOver) != 0 || wait.Ready() {
		t.turn.over = why&nucleus.SliceOver != 0
		t.giveWay()
	}
}

// prolong lets the slice go on a little if it ended just after the thread entered user mode:
// what it was woken for, or is about to ask for, would wait for its next turn.
func (t *Thread) prolong() bool {
	if t.turn.graces == nucleus.MaxGraces || ticks()-t.Off()-t.turn.ran > ticksOf(justEntered) {
		return false
	}
	t.turn.graces++
	nucleus.ProlongSlice()
	return true
}

// letOthers gives way to threads that have less virtual time.
func (t *Thread) letOthers() {
	if t.isCalm() {
		return
	}
	t.charge()
	if wait.RealTimeExists() {
		if t.mustGiveWay() {
			t.giveWay()
		}
		t.turn.Enters()
		return
	}
	if t.ahead() {
		t.turn.over = t.turn.over || t.turn.young > 0
		t.giveWay()
	}
}

// isCalm reports whether the thread has looked at the others a moment ago, and still comes
// before them. Most calls do not sleep, and looking costs as much as a short one.
func (t *Thread) isCalm() bool {
	first, _ := wait.FirstTurn()
	return first == t.turn.calmFirst && ticks() < t.turn.calm && t.Off() == t.turn.off && !wait.RealTimeExists()
}

// ahead reports whether a thread that is not real-time waits and has less virtual time.
func (t *Thread) ahead() bool {
	first, some := wait.FirstTurn()
	if !some {
		return false
	}
	may := nucleus.Slice() + sliceMargin
	if !t.turn.Crowd.HasRivals() {
		may = max(may, granularity)
	}
	if t.turn.young > 0 {
		may = nucleus.Slice() / 2
	}
	left := first + ticksOf(may)*t.turn.rate - t.bounded()
	if left < 0 || t.turn.rate > 1 && t.turn.behind() > first {
		return true
	}
	if t.turn.rate == 1 && t.turn.young == 0 && t.turn.weight == 0 {
		t.turn.calmFirst, t.turn.calm = first, t.turn.ran+t.turn.off+min(left, ticksOf(mostCalm))
	}
	return false
}

// behind returns what key the thread has at least, by how many of its user wait: threads that slept,
// or are new, come a slice apart. Otherwise all of them, when they are woken at once, would
// come before who has used more than each of them.
func (t *turn) behind() int64 {
	n := t.rate - 1
	return wait.VirtualTime() - bonus(t.Crowd)/(n+1) + n*ticksOf(nucleus.Slice())
}

// SleptKey is the place of a thread that slept and waits for its own processor as soon as it
// is woken: the one that it would have had if it had first run in the kernel and then come to
// wait.
func SleptKey(t *wait.Turn) int64 {
	now := wait.VirtualTime()
	virtual := max(t.Virtual, now-bonus(t.Crowd))
	return max(min(virtual-ticksOf(nucleus.Slice())*t.Crowd.Rate(), now), 1)
}

// giveWay lets goroutines run that are runnable, and threads with less virtual time.
func (t *Thread) giveWay() {
	t.turn.calm = 0
	before := t.Off()
	if wait.HasTurns() {
		t.charge()
		if t.turn.Place == 0 {
			t.turn.Place = wait.Arrive()
		}
		t.turn.Key, t.turn.Weight, t.turn.Crowd = t.bounded(), t.turn.share(), &t.Cred().User.Crowd
		t.turn.Late = 0
		if t.turn.rate > 1 {
			// What it does not get because it comes behind others of its user is lost: it would run
			// for all that at once when they are gone.
			t.turn.Virtual = max(t.turn.Virtual, wait.VirtualTime()-bonus(t.turn.Crowd))
			t.turn.Key = max(t.turn.Virtual, t.turn.behind())
			t.turn.Late = t.turn.Key - t.turn.Virtual
		}
		if t.turn.GoesOn = !t.turn.over; t.turn.GoesOn {
			// It stays before those that it came before when its slice began.
			t.turn.Key = max(t.turn.Key-ticksOf(nucleus.Slice())*t.turn.rate, 1)
		}
		t.turn.over = false
		if !wait.OthersWait() {
			// The virtual time goes on as the clock does, whatever the thread's weight.
			t.turn.Key = min(t.turn.Key, wait.VirtualTime()+ticksOf(slice))
		}
		t.turn.Wait()
		t.turn.off = t.Off() // it did not sleep
		t.turn.graces = 0
	} else {
		runtime.Gosched()
	}
	t.waitTurn(before)
	t.preempted++
}

// rest gives way in the middle of long work in the kernel. What a thread that ends gives back is
// waited for: one of the others has its turn then, whoever has used more.
func (t *Thread) rest() {
	t.charge()
	if !t.dying {
		if first, some := wait.FirstTurn(); some && t.bounded() > first {
			t.turn.over = true
			t.giveWay()
		}
		return
	}
	before := t.Off()
	t.turn.Weight, t.turn.Crowd = t.turn.share(), &t.Cred().User.Crowd
	t.turn.Rest()
	t.turn.off = t.Off()
	t.waitTurn(before)
	t.preempted++
}

// lineUp waits for the thread's turn after a wait for memory, which is no sleep. When memory comes,
// many go on at once: in the kernel all of them would run before whoever waits for user mode.
func (t *Thread) lineUp() {
	if !wait.HasTurns() || !wait.OthersWait() || t.turn.RealTime() > 0 {
		return
	}
	t.charge()
	t.turn.Virtual, t.turn.slept = max(t.turn.Virtual, present()), 0
	t.turn.over = true
	t.giveWay()
}

// RestSelf is rest of the calling thread; a goroutine of the kernel (c is nil) gives way to others
// only. It allocates nothing: long work is in calls whose bound counts what a round of a loop takes.
func RestSelf(c *caller.Ctx) {
	var t *Thread
	if c != nil {
		t = Of(c)
	}
	if t != nil && wait.HasTurns() && wait.OthersWait() {
		t.rest()
	} else {
		runtime.Gosched()
	}
}

// globalYields is the number of yields before one considers other Ps.
const globalYields = 32

// Yield is sched_yield. Threads that yield to each other stay in Go's run queue.
func (t *Thread) Yield() {
	if p := t.turn.RealTime(); p > 0 {
		t.turn.Place = 0
		if wait.FirstRealTime() >= p {
			t.giveWay()
			return
		}
	} else if wait.Look() && wait.OthersWait() {
		t.readyFirst()
	}
	before := t.Off()
	if t.yields++; t.yields%globalYields == 0 {
		runtime.Gosched()
		t.preempted++
	} else {
		goyield()
	}
	t.waitTurn(before)
}

// readyFirst moves the thread that is next to Go's run queue, unless this one is far behind.
func (t *Thread) readyFirst() {
	t.charge()
	if first, some := wait.FirstTurn(); some && first <= t.bounded()+ticksOf(granularity) {
		wait.ReadyFirst()
	}
}

// firstTurn begins the account of a new thread on a goroutine's clock. A new thread is never
// ahead of others: otherwise a process that keeps forking would always run first. In a crowd
// it begins a turn later, or a user who forks would get a turn for each child at once.
func (t *Thread) firstTurn(c *wait.Clock) {
	t.turn.Crowd = &t.Cred().User.Crowd
	t.turn.rate = t.turn.Crowd.Rate()
	one := ticksOf(nucleus.Slice())
	owed := int64(0)
	if t.turn.Crowd.HasRivals() {
		t.turn.young, owed = one, min(t.turn.Crowd.Owed(ticks()), one)
	}
	t.turn.Virtual = max(t.turn.Virtual, present()+owed) + one*(t.turn.rate-1)
	t.turn.off = c.Mine()
	t.turn.ran = ticks() - t.turn.off
	t.Proc.mu.Lock()
	t.setLive(true)
	t.Proc.mu.Unlock()
}

// newTurn goes on with the account on another goroutine's clock: the thread waited inside
// the nucleus.
func (t *Thread) newTurn(c *wait.Clock) {
	off, now := c.Mine(), ticks()
	t.turn.slept += max(now-t.turn.ran-t.turn.off, 0)
	t.turn.off, t.turn.ran = off, now-off
	t.turn.Place, t.turn.calm = 0, 0
}

// weigh sets the thread's weight and its class from its settings; called with Proc.mu held.
func (t *Thread) weigh() {
	w := int64(0)
	s := &t.sched
	switch {
	case s.Policy&^SchedResetOnFork == schedIdle:
		w = idleWeight
	case s.Nice != 0:
		w = weights[s.Nice+20]
	}
	t.turn.weight = w
	t.turn.roundRobin = s.Policy&^SchedResetOnFork == schedRR
	t.Futex.SetPriority(s.Priority)
}

// Raise implements futex.Raiser: the thread has this real-time priority, its own or one that
// it inherited.
func (t *Thread) Raise(priority int32) {
	if priority != t.turn.RealTime() {
		t.turn.SetRealTime(priority)
		t.Urgency.Store(priority)
	}
}

// Policies.
const (
	schedRR   = 2
	schedIdle = 5
)
