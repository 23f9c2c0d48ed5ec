package nucleus

import (
	"sync/atomic"

	"hardtack/arch/amd64"
	"hardtack/nucleus/control"
)

// Threads wait in queues: futex waiters by the hash of the address, the poller in its
// own. A sleeping thread is in none.
const (
	futexBits   = 6
	futexQueues = 1 << futexBits
	pollQueue   = futexQueues
	noQueue     = -1
	lingerQueue = -2 // none: it lingers (linger.go)
)

// waitQueue is a list of blocked threads.
type waitQueue struct {
	lock control.Object
	queue
	_ [48]byte
}

var waits [futexQueues + 1]waitQueue

// futexQueue returns the index of the queue for an address.
func futexQueue(addr uint64) int32 {
	return int32(addr >> 2 * 0x9e3779b97f4a7c15 >> (64 - futexBits))
}

// block makes the current thread of c wait, in a queue that c has locked or in
// none, until unblock; with a deadline until then at the latest. From here on it
// may run elsewhere.
func block(c *amd64.CPU, queue int32, deadline int64) {
	me := cpuPointer(c)
	i := me.current
	t := &threads[i]
	me.current = -1
	t.timerDue = me.TimerDue
	if deadline != 0 {
		me.arm(deadline)
	}
	if queue >= 0 {
		waits[queue].push(i, false)
	}
	t.lock.Acquire()
	t.state, t.queue = threadBlocked, queue
	atomic.StoreInt64(&t.wakeAt, deadline)
	t.lock.Release()
}

// lockWaiting locks the queue that thread i waits in, then the thread, and returns the
// queue.
func lockWaiting(i int32) (t *thread, queue int32) {
	t = &threads[i]
	for {
		queue = atomic.LoadInt32(&t.queue)
		if queue >= 0 {
			waits[queue].lock.Acquire()
		}
		t.lock.Acquire()
		if t.queue == queue {
			return t, queue
		}
		unlockWaiting(t, queue)
	}
}

func unlockWaiting(t *thread, queue int32) {
	t.lock.Release()
	if queue >= 0 {
		waits[queue].lock.Release()
	}
}

// unblock ends the wait of thread i, which is blocked, with a result. Called with
// its lock and its queue's; ready is to follow.
func unblock(i int32, result uint64) {
	t := &threads[i]
	t.SetResult(result)
	if t.queue >= 0 {
		waits[t.queue].remove(i)
	}
	t.state, t.queue, t.wakeAt = threadReady, noQueue, 0
}
