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

// pop takes the first thread of a CPU's queue, or returns -1.
func (o *cpu) pop() int32 {
	if atomic.LoadInt32(&o.run.head) < 0 {
		return -1
	}
	o.lock.Acquire()
	i := o.run.head
	if i >= 0 {
		o.run.remove(i)
	}
	o.lock.Release()
	return i
}

// take returns a ready thread, the CPU's own first, or -1.
func (me *cpu) take() int32 {
	if i := me.pop(); i >= 0 {
		return i
	}
	n := int(numCPU.Load())
	for j, k := int(me.Index)+1, n-1; k > 0; j, k = j+1, k-1 {
		if j >= n {
			j = 0
		}
		if i := cpus[j].pop(); i >= 0 {
			return i
		}
	}
	return -1
}

// waiting tells whether some run queue is not empty.
func waiting() bool {
	for j := range int(numCPU.Load()) {
		if atomic.LoadInt32(&cpus[j].run.head) >= 0 {
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

// schedule chooses the thread that c resumes. Called at the end of every operation
// that may have changed something.
func schedule(c *amd64.CPU) {
	me := cpuPointer(c)
	idle := idleIndex(c.Index)
	if i := me.current; i >= 0 && i != idle {
		if !me.resched {
			return
		}
		me.resched = false
		if next := me.take(); next >= 0 {
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
	me.resched = false
	for {
		if next := me.take(); next >= 0 {
			me.start(next)
			return
		}
		if me.idle == 0 {
			me.setIdle(1)
		}
		// A CPU that found no idle CPU has put its thread or interrupt where it is seen
		// from here on.
		control.Fence(c.Index)
		if irqs.pending.Load() != 0 {
			signalIRQ(c)
		}
		if !waiting() {
			break
		}
	}
	me.after.idle = numCPU.Load() > 1
	me.current = idle
	c.SetThread(&threads[idle].Thread)
}

// start makes a thread that was taken from a queue the CPU's current one.
func (me *cpu) start(i int32) {
	if me.idle != 0 {
		me.setIdle(0)
	}
	t := &threads[i]
	t.lock.Acquire()
	t.state, t.cpu = threadRunning, int32(me.Index)
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
