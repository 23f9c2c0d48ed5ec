package nucleus

import "hardtack/arch/amd64"

// Thread states.
const (
	threadFree uint8 = iota
	threadReady
	threadRunning
	threadBlocked
	threadIdle // an idle thread that is not running
)

// What a blocked thread waits for.
const (
	waitNothing uint8 = iota
	waitFutex
	waitSleep
	waitPoll
)

// thread is an M of the Go runtime. All fields are guarded by big; the saved
// registers are the CPU's while the thread runs.
type thread struct {
	amd64.Thread // first: assembly's pointer to a thread is ours

	state   uint8
	waiting uint8
	cpu     int32 // where it runs or last ran
	next    int32 // run queue link, -1 at the end
	futex   uint64
	events  uint64 // epoll_pwait's buffer
	wakeAt  int64  // when a blocked thread's wait times out, 0 never

	mask, pending             uint64 // signals blocked and waiting, bit n-1 for signal n
	altSP, altSize            uint64
	altOff                    bool
	faultAddr                 uint64 // of the pending synchronous signal
	faultCode, faultTrap, err uint64
}

var threads [maxThreads]thread

// threadMax is the end of the part of threads ever used (idle ones apart).
var threadMax = 1

// runq is the queue of ready threads, by index.
var runq = struct{ head, tail int32 }{-1, -1}

func idleIndex(cpu uint32) int32 { return int32(maxThreads - 1 - int(cpu)) }

// push appends a ready thread; front puts it before all others.
func push(i int32, front bool) {
	t := &threads[i]
	t.state = threadReady
	switch {
	case runq.head < 0:
		t.next = -1
		runq.head, runq.tail = i, i
	case front:
		t.next = runq.head
		runq.head = i
	default:
		t.next = -1
		threads[runq.tail].next = i
		runq.tail = i
	}
}

func pop() int32 {
	i := runq.head
	if runq.head = threads[i].next; runq.head < 0 {
		runq.tail = -1
	}
	return i
}

// wake ends a blocked thread's wait with a result. An idle CPU is told to take
// it, the thread's last one if that is idle.
func wake(c *amd64.CPU, i int32, result uint64, urgent bool) {
	t := &threads[i]
	if t.state != threadBlocked {
		return
	}
	t.SetResult(result)
	t.waiting, t.wakeAt = waitNothing, 0
	push(i, urgent)
	n := int(numCPU.Load())
	best := -1
	if last := int(t.cpu); last < n && cpus[last].current == idleIndex(uint32(last)) {
		best = last
	} else {
		for j := range n {
			if cpus[j].current == idleIndex(uint32(j)) {
				best = j
				break
			}
		}
	}
	switch {
	case best >= 0 && best != int(c.Index):
		// Counts as busy from now on, so that the next wake finds another.
		cpus[best].current = -1
		sendIPI(best, vectorResched)
	case best < 0 && urgent:
		cpus[c.Index].resched = true
	}
}

// block makes the current thread of c wait.
func block(c *amd64.CPU, why uint8, deadline int64) *thread {
	t := &threads[cpus[c.Index].current]
	t.state, t.waiting, t.wakeAt = threadBlocked, why, deadline
	if deadline != 0 {
		armTimer(c, deadline)
	}
	return t
}

// schedule chooses the thread that c resumes. Called with big held at the end
// of every stay inside that may have changed something.
func schedule(c *amd64.CPU) {
	me := &cpus[c.Index]
	idle := idleIndex(c.Index)
	if i := me.current; i >= 0 && threads[i].state == threadRunning {
		if i == idle {
			if runq.head < 0 {
				return
			}
			threads[i].state = threadIdle
		} else if me.resched && runq.head >= 0 {
			if threads[runq.head].state == threadReady {
				next := pop()
				push(i, false)
				me.resched = false
				run(c, next)
				return
			}
		} else {
			me.resched = false
			return
		}
	}
	me.resched = false
	if runq.head >= 0 {
		run(c, pop())
		return
	}
	if irqs.pending.Load() != 0 {
		signalIRQ(c)
		if runq.head >= 0 {
			run(c, pop())
			return
		}
	}
	if numCPU.Load() > 1 {
		// Whoever needs these elsewhere shall not have to wake this CPU for them.
		giveUpFPU(c)
		dropSpace(c, c.Space)
	}
	threads[idle].state = threadRunning
	me.current = idle
	c.SetThread(&threads[idle].Thread)
}

func run(c *amd64.CPU, i int32) {
	t := &threads[i]
	t.state, t.cpu = threadRunning, int32(c.Index)
	cpus[c.Index].current = i
	c.SetThread(&t.Thread)
	if runq.head >= 0 {
		armSlice(c)
	}
}

// clone serves the clone call that starts a new M.
func clone(parent *thread, sp, tls uint64) (int32, bool) {
	for i := range threads[:maxThreads-maxCPUs] {
		t := &threads[i]
		if t.state != threadFree {
			continue
		}
		threadMax = max(threadMax, i+1)
		*t = thread{mask: parent.mask, cpu: parent.cpu, next: -1, altOff: true}
		t.Fork(&parent.Thread, sp, tls)
		push(int32(i), false)
		return int32(i), true
	}
	return 0, false
}
