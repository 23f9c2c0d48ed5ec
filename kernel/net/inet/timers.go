package inet

import (
	"sync"
	"time"

	"hardtack/kernel/base/wait"
)

// netstack's timers. It sets several for each connection and lets most fire in
// vain; a goroutine for each of those, with a stack that must grow first, was a
// sixth of what serving a connection cost. So one goroutine runs all call-backs,
// one after the other. They take locks of netstack that are held for a packet's
// time at most.
type timerQueue struct {
	start sync.Once
	wait.Sleeper

	mu   sync.Mutex
	heap []*timer // guarded by mu; a binary heap by when
	next int64    // guarded by mu: what the goroutine sleeps until
}

// timer implements tcpip.Timer.
type timer struct {
	fn   func() // immutable
	when int64  // guarded by timers.mu; monotonic nanoseconds
	at   int    // guarded by timers.mu: place in the heap plus one, 0 when not set
}

var timers timerQueue

func (q *timerQueue) set(t *timer, d time.Duration) (was bool) {
	q.start.Do(func() { go q.run() })
	when := wait.Now() + int64(max(d, 0))
	q.mu.Lock()
	was = t.at != 0
	t.when = when
	if !was {
		q.heap = append(q.heap, t)
		t.at = len(q.heap)
	}
	q.fix(t.at - 1)
	early := when < q.next
	q.mu.Unlock()
	if early {
		q.Wake()
	}
	return was
}

func (q *timerQueue) stop(t *timer) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.at == 0 {
		return false
	}
	q.remove(t.at - 1)
	return true
}

// remove takes out the timer at i; called with mu held.
func (q *timerQueue) remove(i int) {
	last := len(q.heap) - 1
	q.heap[i].at = 0
	if i != last {
		q.heap[i] = q.heap[last]
		q.heap[i].at = i + 1
	}
	q.heap[last] = nil
	q.heap = q.heap[:last]
	if i != last {
		q.fix(i)
	}
}

// fix moves the timer at i to where it belongs; called with mu held.
func (q *timerQueue) fix(i int) {
	h := q.heap
	t := h[i]
	for i > 0 && t.when < h[(i-1)/2].when {
		h[i] = h[(i-1)/2]
		h[i].at = i + 1
		i = (i - 1) / 2
	}
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && h[c+1].when < h[c].when {
			c++
		}
		if t.when <= h[c].when {
			break
		}
		h[i] = h[c]
		h[i].at = i + 1
		i = c
	}
	h[i] = t
	t.at = i + 1
}

// due takes out a timer whose time has come; without one it says when the
// first will be due.
func (q *timerQueue) due(now int64) (*timer, int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.next = 1<<63 - 1
	if len(q.heap) == 0 {
		return nil, wait.NoDeadline
	}
	t := q.heap[0]
	if t.when > now {
		q.next = t.when
		return nil, t.when
	}
	q.next = 0 // it is awake
	q.remove(0)
	return t, 0
}

func (q *timerQueue) run() {
	for {
		q.Arm()
		t, next := q.due(wait.Now())
		if t != nil {
			t.fn()
			continue
		}
		q.SleepUninterruptible(next)
	}
}

// Stop implements tcpip.Timer.
func (t *timer) Stop() bool { return timers.stop(t) }

// Reset implements tcpip.Timer.
func (t *timer) Reset(d time.Duration) { timers.set(t, d) }
