package nucleus

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// list returns the threads of a queue from its head, and checks the way back.
func (q *queue) list(t *testing.T) (all []int32) {
	t.Helper()
	prev := int32(-1)
	for i := q.head; i >= 0; i = threads[i].next {
		if threads[i].prev != prev {
			t.Fatalf("thread %d has %d before it, want %d", i, threads[i].prev, prev)
		}
		all, prev = append(all, i), i
	}
	if q.tail != prev && len(all) > 0 {
		t.Fatalf("the tail is %d, want %d", q.tail, prev)
	}
	return all
}

// A queue behaves as a list, whatever is pushed at either end and removed from anywhere.
func TestQueue(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	q, want := emptyQueue, []int32(nil)
	for range 20000 {
		i := r.Int32N(12)
		switch at := slices.Index(want, i); {
		case at >= 0:
			q.remove(i)
			want = slices.Delete(want, at, at+1)
		case r.IntN(3) == 0:
			q.push(i, true)
			want = slices.Insert(want, 0, i)
		default:
			q.push(i, false)
			want = append(want, i)
		}
		if got := q.list(t); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}

// A thread's wait ends in the queue where it waits, also if that changes meanwhile.
func TestWaitEnds(t *testing.T) {
	for i := range waits {
		waits[i].queue = emptyQueue
	}
	for _, queue := range []int32{0, 5, pollQueue, noQueue} {
		th := &threads[3]
		*th = thread{state: threadBlocked, queue: queue, wakeAt: 77}
		if queue >= 0 {
			waits[queue].push(3, false)
		}
		got, at := lockWaiting(3)
		if got != th || at != queue {
			t.Errorf("locked queue %d, want %d", at, queue)
		}
		unblock(3, 42)
		unlockWaiting(th, at)
		if th.state != threadReady || th.queue != noQueue || th.wakeAt != 0 {
			t.Errorf("after the wait in %d: %d %d %d", queue, th.state, th.queue, th.wakeAt)
		}
		if queue >= 0 && waits[queue].head >= 0 {
			t.Errorf("queue %d is not empty", queue)
		}
	}
}

// What the runtime has told of its timers goes with the thread, whether it blocked or made
// way for another: the runtime does not say it again.
func TestTimerDueMoves(t *testing.T) {
	for i := range 2 {
		c := &cpus[i]
		c.current, c.resched, c.run = -1, false, emptyQueue
		c.TimerDue, c.SliceArmed = 0, 0
	}
	threads[3] = thread{state: threadRunning, queue: noQueue, timerDue: 11}
	threads[4] = thread{state: threadReady, queue: noQueue, timerDue: 44}
	from, to := &cpus[0], &cpus[1]
	from.current, from.TimerDue = 3, 33
	block(&from.CPU, noQueue, 0)
	from.start(4)
	if from.TimerDue != 44 {
		t.Errorf("the next thread's timer is due at %d, want 44", from.TimerDue)
	}
	to.SliceArmed = 1
	to.start(3)
	if to.TimerDue != 33 || to.SliceArmed != 0 {
		t.Errorf("after it blocked: due at %d, armed %d, want 33 and 0", to.TimerDue, to.SliceArmed)
	}

	to.TimerDue, to.resched = 55, true
	threads[4] = thread{state: threadReady, queue: noQueue}
	to.run.push(4, false)
	schedule(&to.CPU)
	if to.current != 4 || to.TimerDue != 0 || threads[3].timerDue != 55 {
		t.Errorf("after it made way: thread %d, due at %d; its own at %d, want 4, 0 and 55", to.current, to.TimerDue, threads[3].timerDue)
	}
}

// Neighbouring futexes do not share a queue as a rule.
func TestFutexQueues(t *testing.T) {
	var used [futexQueues]int
	for a := uint64(0); a < 16*futexQueues; a++ {
		i := futexQueue(0xc000100000 + 4*a)
		if i < 0 || i >= futexQueues {
			t.Fatalf("address %d: queue %d", a, i)
		}
		used[i]++
	}
	for i, n := range used {
		if n < 8 || n > 32 {
			t.Errorf("queue %d has %d of %d addresses", i, n, 16*futexQueues)
		}
	}
}

// A CPU takes threads from its own queue first, then from the next that has some.
func TestTake(t *testing.T) {
	old := numCPU.Load()
	defer numCPU.Store(old)
	numCPU.Store(3)
	for i := range 3 {
		cpus[i].Index = uint32(i)
		cpus[i].run = emptyQueue
	}
	cpus[1].run.push(10, false)
	cpus[1].run.push(11, false)
	cpus[2].run.push(12, false)
	cpus[0].run.push(13, false)
	var got []int32
	for i := cpus[2].take(false); i >= 0; i = cpus[2].take(false) {
		got = append(got, i)
	}
	if want := []int32{12, 13, 10, 11}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	// One that has a thread leaves those alone that an idle CPU was given.
	was := cpus[0].current
	defer func() { cpus[0].current = was }()
	cpus[0].run.push(10, false)
	cpus[1].run.push(11, false)
	cpus[0].current, cpus[1].current = idleIndex(0), 3
	if i, j := cpus[2].take(true), cpus[2].take(true); i != 11 || j != -1 {
		t.Errorf("took %d and %d, want 11 and none", i, j)
	}
	cpus[0].run.remove(10)
}

// Whoever makes a thread ready for an idle CPU makes that CPU busy, and has it told.
func TestGive(t *testing.T) {
	old := numCPU.Load()
	defer numCPU.Store(old)
	numCPU.Store(2)
	for i := range 2 {
		cpus[i].Index = uint32(i)
		cpus[i].run = emptyQueue
		cpus[i].idle, cpus[i].after.ipi = 0, 0
	}
	me := &cpus[0]
	if me.give(1, 20) {
		t.Error("a busy CPU took a thread")
	}
	cpus[1].idle = 1
	if !me.give(1, 20) || cpus[1].idle != 0 || me.after.ipi != 1<<1 {
		t.Errorf("idle %d, messages %#x", cpus[1].idle, me.after.ipi)
	}
	if me.give(1, 21) {
		t.Error("it is busy now")
	}
	cpus[0].idle = 1
	if !me.give(0, -1) || me.after.ipi != 1<<1 || cpus[0].run.head >= 0 {
		t.Error("a CPU sends itself a message, or took nobody")
	}
	threads[20].bound = 1
	if i := cpus[1].pop(me); i >= 0 || me.waiting() {
		t.Errorf("CPU 0 took thread %d, which is bound", i)
	}
	threads[20].bound = 0
	if i := cpus[1].pop(me); i != 20 {
		t.Errorf("CPU 1 has thread %d", i)
	}
}

// A CPU whose timer made a thread ready that went to an idle CPU does not take it from there.
func TestSharesNotWithIdle(t *testing.T) {
	old := numCPU.Load()
	defer numCPU.Store(old)
	numCPU.Store(2)
	for i := range 2 {
		cpus[i].Index = uint32(i)
		cpus[i].run = emptyQueue
		threads[3+i] = thread{state: threadReady, queue: noQueue}
	}
	busy, other := &cpus[0], &cpus[1]
	busy.current, other.current = 3, idleIndex(1)
	other.run.push(4, false)
	if busy.shares() {
		t.Error("it takes a thread that an idle CPU was given")
	}
	if other.current = 5; !busy.shares() {
		t.Error("it leaves a thread alone that waits for a busy CPU")
	}
	if other.run, busy.run = emptyQueue, emptyQueue; busy.shares() {
		t.Error("it shares with nobody")
	}
	if busy.run.push(4, false); !busy.shares() {
		t.Error("it does not share with those in its own queue")
	}
	busy.run = emptyQueue
}
