package wait

import "sync/atomic"

// Real-time threads (SCHED_FIFO, SCHED_RR) have user mode before all others, by priority. Of
// each period they leave the others a share of each processor, as Linux does
// (Documentation/scheduler/sched-rt-group.rst).

// TurnHooks is what the queue of threads needs of the machine.
type TurnHooks struct {
	// Due is told when the next timer of the running P is due (nanoseconds, 0 for none),
	// whenever that changes.
	Due func(when int64)
	// CPU is the index of the processor that runs the caller, and Kick makes another leave
	// user mode, or not enter it.
	CPU  func() int
	Kick func(cpu int)
	// Idle is the processors that are idle, and Go makes the caller's M go on on one of
	// them if that is still idle.
	Idle func() uint64
	Go   func(cpu int) bool
	// Wanted is where the nucleus looks for the processors that threads wait for.
	Wanted *atomic.Uint64
	// Begin has a new slice begin on the processor that runs the caller, and Count is
	// told where the number of threads is that wait.
	Begin func()
	Count func(n *atomic.Int64)
	// Slept returns the key of a thread that was parked and is made ready.
	Slept func(t *Turn) (key int64)
	// Pending reports whether the processor that runs the caller has interrupts to serve.
	Pending func() bool
}

var hooks TurnHooks

// perCPU is what is known of a processor where there are real-time threads.
type perCPU struct {
	// running is the real-time priority of the thread that entered user mode last, 0 for
	// others.
	running atomic.Int32
	// used is for how many ticks real-time threads have run in the period that began at
	// began; full is when the period ends in which they have used up their share.
	used, began, full atomic.Int64
	_                 [32]byte
}

var cpus [64]perCPU

// urgent is for each P the highest priority of the real-time threads that were woken there
// since a thread entered user mode.
var urgent [64]struct {
	priority atomic.Int32
	_        [60]byte
}

// realTimeKey is less than that of all lower priorities, whatever their places.
func realTimeKey(priority int32) int64 { return int64(100-priority) << 48 }

// Arrive returns a place behind all real-time threads that have one.
func Arrive() int64 { return turnQueue.arrival.Add(1) }

// RealTimeExists reports whether there are real-time threads.
func RealTimeExists() bool { return turnQueue.look.Load() >= oneRealTime }

// RealTime returns the thread's priority, 0 if it is not a real-time thread.
func (t *Turn) RealTime() int32 { return t.realTime }

// FirstRealTime returns the priority of the first real-time thread that waits for this
// processor; 0: none does.
func FirstRealTime() int32 {
	key := turnQueue.leastRealTime()
	if key == 0 {
		return 0
	}
	return 100 - int32(key>>48)
}

// Behind reports whether a real-time thread that waits has the same priority as this one, and
// a place before it.
func (t *Turn) Behind() bool {
	first := turnQueue.leastRealTime()
	return first != 0 && first < realTimeKey(t.realTime)+t.Place
}

// Enters notes which thread is about to enter user mode, where real-time threads exist.
func (t *Turn) Enters() { cpus[hooks.CPU()].running.Store(t.realTime) }

// RealTimeFull reports whether real-time threads have used up their share of the processor
// that runs the caller; now in ticks.
func RealTimeFull(now int64) bool { return now < cpus[hooks.CPU()].full.Load() }

// RealTimeRan adds what a real-time thread has run until now. Of each period real-time
// threads get a share; all in ticks.
func RealTimeRan(ran, now, period, share int64) { cpus[hooks.CPU()].ran(ran, now, period, share) }

// ran is called on the processor; if two threads do so at once, a little is not counted.
func (c *perCPU) ran(ran, now, period, share int64) {
	began := c.began.Load()
	if since := now - began; since >= 2*period {
		began = now - ran // none ran for a while
		c.used.Store(0)
		c.began.Store(began)
	} else if since >= period {
		// Who has no others beside it may use all, but does not owe that later.
		c.used.Store(min(max(c.used.Load()-share, 0), period-share))
		began += period
		c.began.Store(began)
	}
	if c.used.Add(ran) >= share {
		c.full.Store(began + period)
	}
}

// setRealTime changes a thread's class, also while it waits; called with the lock held. It
// reports whether the thread may now come before others.
func setRealTime(t *Turn, priority int32) (waits bool) {
	if t.counted {
		turnQueue.look.Add(oneRealTime * (isRealTime(priority) - isRealTime(t.realTime)))
	}
	if t.heap == nil {
		t.realTime = priority
		return false
	}
	takeTurn(t)
	t.realTime, t.Place = priority, Arrive()
	if t.Key == 0 {
		t.Key = max(turnQueue.passed.Load(), 1)
	}
	pushTurn(t)
	return true
}

// countRealTime says whether the thread counts if it is a real-time thread: it lives.
// Called with the lock held.
func countRealTime(t *Turn, lives bool) {
	if t.counted != lives {
		t.counted = lives
		n := isRealTime(t.realTime)
		if !lives {
			n = -n
		}
		turnQueue.look.Add(oneRealTime * n)
	}
}

func isRealTime(priority int32) int64 {
	if priority > 0 {
		return 1
	}
	return 0
}

// kickFor has the processor give way that runs the thread of the least priority, if that is
// less than one: a real-time thread waits that the caller's processor does not take next. It
// may run on the processors allowed, 0 for all.
func kickFor(priority int32, allowed uint64) {
	me, at := hooks.CPU(), -1
	for i := range int(processors) {
		if allowed != 0 && allowed>>i&1 == 0 || off.Load()>>i&1 != 0 {
			continue
		}
		if r := cpus[i].running.Load(); i != me && r < priority {
			at, priority = i, r
		}
	}
	if at >= 0 {
		hooks.Kick(at)
	}
}
