package nucleus

import (
	"sync/atomic"

	"hardtack/arch/amd64"
	"hardtack/nucleus/control"
)

// Each CPU has a run queue. A thread that becomes ready goes to an idle CPU, preferably
// this one (it was interrupted and needs no message), else to the CPU that made it ready.
// A CPU without threads takes those of others before it idles.

// ready puts a ready thread into a run queue; front: before all others, and before the
// thread that runs there now.
func ready(c *amd64.CPU, i int32, front bool) {
	me := cpuPointer(c)
	n := int(numCPU.Load())
	if me.give(int(c.Index), i) {
		return
	}
	if last := int(threads[i].cpu); last < n && me.give(last, i) {
		return
	}
	for j := range n {
		if me.give(j, i) {
			return
		}
	}
	me.lock.Acquire()
	me.run.push(i, front)
	me.lock.Release()
	if front {
		me.resched = true
	}
	if control.Fence(c.Index) {
		// If a CPU became idle meanwhile, this sees it, or the CPU has seen the thread.
		for j := range n {
			if me.give(j, -1) {
				return
			}
		}
	}
}

// give hands an idle CPU a thread, or (-1) only tells it that there are threads to take.
// From then on the CPU counts as busy, so the next thread goes elsewhere.
func (me *cpu) give(to int, i int32) bool {
	o := &cpus[to]
	if atomic.LoadUint32(&o.idle) == 0 {
		return false
	}
	o.lock.Acquire()
	idle := o.idle != 0
	if idle {
		o.idle = 0
		if i >= 0 {
			o.run.push(i, false)
		}
	}
	o.lock.Release()
	if idle && o != me {
		me.after.ipi |= 1 << to
	}
	return idle
}

// Wanted is the processors that user threads wait for which may not run on all: one that
// becomes idle, or is kicked, has the runtime look.
var Wanted atomic.Uint64

// IdleCPUs returns the processors that are idle.
func IdleCPUs() (idle uint64) {
	for j := range int(numCPU.Load()) {
		if atomic.LoadUint32(&cpus[j].idle) != 0 {
			idle |= 1 << j
		}
	}
	return idle
}

// GoTo has the caller's thread of the runtime go on on another processor, if that is idle.
// Callable from the scheduler's stack.
func GoTo(cpu int) bool { return amd64.Syscall(sysGo, uint64(cpu), 0, 0) != 0 }

func serveGo(c *amd64.CPU, t *thread, cpu uint64) uint64 {
	me := cpuPointer(c)
	if cpu >= uint64(numCPU.Load()) || cpu == uint64(c.Index) {
		return 0
	}
	i := me.current
	t.timerDue = me.TimerDue
	t.SetResult(1)
	t.lock.Acquire()
	t.state = threadReady
	t.lock.Release()
	atomic.StoreUint32(&t.bound, 1)
	if me.give(int(cpu), i) {
		me.current = -1
		return 1
	}
	atomic.StoreUint32(&t.bound, 0)
	t.lock.Acquire()
	t.state = threadRunning
	t.lock.Release()
	return 0
}

// has tells whether me may take the first thread of a CPU's queue.
func (o *cpu) has(me *cpu) bool {
	i := atomic.LoadInt32(&o.run.head)
	return i >= 0 && (o == me || atomic.LoadUint32(&threads[i].bound) == 0)
}

// pop takes the first thread of a CPU's queue, or returns -1.
func (o *cpu) pop(me *cpu) int32 {
	if !o.has(me) {
		return -1
	}
	o.lock.Acquire()
	i := int32(-1)
	if o.has(me) {
		i = o.run.head
		o.run.remove(i)
	}
	o.lock.Release()
	return i
}

// take returns a ready thread, the CPU's own first, or -1. A CPU that has a thread takes those
// that it shares only.
func (me *cpu) take(shared bool) int32 {
	if i := me.pop(me); i >= 0 {
		return i
	}
	n := int(numCPU.Load())
	for j, k := int(me.Index)+1, n-1; k > 0; j, k = j+1, k-1 {
		if j >= n {
			j = 0
		}
		if o := &cpus[j]; !shared || o.busy() {
			if i := o.pop(me); i >= 0 {
				return i
			}
		}
	}
	return -1
}

// busy tells whether a CPU runs a thread: those in its queue wait. One that an idle CPU was given
// runs there at once, and to take it would only have the two change places.
func (o *cpu) busy() bool { return atomic.LoadInt32(&o.current) != idleIndex(o.Index) }

// waiting tells whether there is a thread that the CPU may take.
func (me *cpu) waiting() bool {
	for j := range int(numCPU.Load()) {
		if cpus[j].has(me) {
			return true
		}
	}
	return false
}

// shares tells whether a thread waits that the CPU is to run in turn with its own.
func (me *cpu) shares() bool {
	for j := range int(numCPU.Load()) {
		o := &cpus[j]
		if o.has(me) && (o == me || o.busy()) {
			return true
		}
	}
	return false
}

func anyIdle() bool {
	for j := range int(numCPU.Load()) {
		if atomic.LoadUint32(&cpus[j].idle) != 0 {
			return true
		}
	}
	return false
}

func (me *cpu) setIdle(v uint32) {
	me.lock.Acquire()
	me.idle = v
	me.lock.Release()
}

// CPUIdled returns for how many nanoseconds CPU i has had nothing to do.
func CPUIdled(i int) int64 {
	me := &cpus[i]
	n := me.idled.Load()
	if since := me.idleSince.Load(); since != 0 {
		n += max(now()-since, 0)
	}
	return n
}

// schedule chooses the thread that c resumes. Called at the end of every operation
// that may have changed something.
func schedule(c *amd64.CPU) {
	me := cpuPointer(c)
	idle := idleIndex(c.Index)
	if i := me.current; i >= 0 && i != idle {
		if !me.resched {
			return
		}
		if me.absent.Load() != cpuRuns {
			me.leave(c)
			return
		}
		me.resched = false
		if next := me.take(true); next >= 0 {
			t := &threads[i]
			t.timerDue = me.TimerDue
			t.lock.Acquire()
			t.state = threadReady
			t.lock.Release()
			ready(c, i, false)
			me.start(next)
		}
		return
	}
	if me.absent.Load() != cpuRuns {
		me.leave(c)
		return
	}
	me.resched = false
	for {
		if next := me.take(false); next >= 0 {
			me.start(next)
			return
		}
		if me.idle == 0 {
			me.setIdle(1)
		}
		// A CPU that found no idle CPU has put its thread or interrupt where it is seen
		// from here on.
		control.Fence(c.Index)
		if irqs.pending.Load() != 0 || Wanted.Load()>>(c.Index&63)&1 != 0 {
			signalIRQ(c)
		}
		if !me.waiting() {
			break
		}
	}
	me.after.idle = numCPU.Load() > 1
	if me.idleSince.Load() == 0 {
		me.idleSince.Store(now())
	}
	me.current = idle
	c.SetThread(&threads[idle].Thread)
}

// start makes a thread that was taken from a queue the CPU's current one.
func (me *cpu) start(i int32) {
	if me.idle != 0 {
		me.setIdle(0)
	}
	if since := me.idleSince.Load(); since != 0 {
		me.idled.Add(now() - since)
		me.idleSince.Store(0)
	}
	t := &threads[i]
	t.lock.Acquire()
	t.state, t.cpu = threadRunning, int32(me.Index)
	atomic.StoreUint32(&t.bound, 0)
	t.lock.Release()
	me.current = i
	// The runtime tells a thread's TimerDue only when it changes.
	if me.TimerDue != t.timerDue {
		me.TimerDue, me.SliceArmed = t.timerDue, 0
	}
	me.SetThread(&t.Thread)
	if me.run.head >= 0 {
		me.arm(now() + sliceThread)
	}
}
