package nucleus

import (
	"hardtack/arch/amd64"
	"hardtack/nucleus/control"
)

// Thread states.
const (
	threadFree uint8 = iota
	threadReady
	threadRunning
	threadBlocked
)

// thread is an M of the Go runtime. The saved registers are the CPU's on which
// the thread runs; those of a blocked thread belong to whoever holds its lock.
type thread struct {
	amd64.Thread // first: assembly's pointer to a thread is ours

	lock       control.Object
	state      uint8 // guarded by lock; free only changes alone
	cpu        int32 // where it runs or last ran; guarded by lock
	queue      int32 // the wait queue it is in, or noQueue; guarded by its lock and lock
	next, prev int32 // in a queue, -1 at the ends; guarded by the queue's lock
	wakeAt     int64 // when a blocked thread's wait times out, 0 never; guarded by lock

	futex  uint64 // what it waits for; guarded by the wait queue's lock
	events uint64 // epoll_pwait's buffer; likewise

	mask, pending             uint64 // signals blocked and waiting, bit n-1 for signal n; guarded by lock
	altSP, altSize            uint64 // from here the running thread's own
	altOff                    bool
	timerDue                  int64  // TimerDue while it does not run
	bound                     uint32 // 1: only the CPU whose run queue it is in takes it
	faultAddr                 uint64 // of the pending synchronous signal
	faultCode, faultTrap, err uint64
}

var threads [maxThreads]thread

// threadMax is the end of the part of threads ever used (idle ones apart); it
// grows alone.
var threadMax = 1

func idleIndex(cpu uint32) int32 { return int32(maxThreads - 1 - int(cpu)) }

// queue is a list of threads by their links, -1 at the ends.
type queue struct{ head, tail int32 }

var emptyQueue = queue{-1, -1}

// push appends a thread; front puts it before all others.
func (q *queue) push(i int32, front bool) {
	t := &threads[i]
	switch {
	case q.head < 0:
		t.next, t.prev = -1, -1
		q.head, q.tail = i, i
	case front:
		t.next, t.prev = q.head, -1
		threads[q.head].prev = i
		q.head = i
	default:
		t.next, t.prev = -1, q.tail
		threads[q.tail].next = i
		q.tail = i
	}
}

func (q *queue) remove(i int32) {
	t := &threads[i]
	if t.prev < 0 {
		q.head = t.next
	} else {
		threads[t.prev].next = t.next
	}
	if t.next < 0 {
		q.tail = t.prev
	} else {
		threads[t.next].prev = t.prev
	}
}

// clone serves the clone call that starts a new M. Alone.
func clone(c *amd64.CPU, parent *thread, sp, tls uint64) (int32, bool) {
	for i := range threads[:maxThreads-maxCPUs] {
		t := &threads[i]
		if t.state != threadFree {
			continue
		}
		threadMax = max(threadMax, i+1)
		*t = thread{state: threadReady, mask: parent.mask, cpu: parent.cpu, queue: noQueue, altOff: true}
		t.Fork(&parent.Thread, sp, tls)
		ready(c, int32(i), false)
		return int32(i), true
	}
	return 0, false
}
