package msg

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// sendLock is a mutex whose waiters may give up: who holds it may wait for a peer that
// receives nothing, and everybody else has a deadline of their own. As with sync.Mutex,
// others may take it before a waiter that was woken, but not before one that has waited
// for sendHungry.
type sendLock struct {
	state atomic.Int32
	mu    sync.Mutex
	queue []*sendWaiter // guarded by mu
	spare []*sendWaiter // to be used again; guarded by mu
}

const (
	sendFree   = iota
	sendHeld   // and nobody waits
	sendWanted // held, and somebody may wait: unlocking looks at queue

	sendHungry = time.Millisecond
	sendSpare  = 8
	sendSpins  = 100 // looks at a lock that is held; it rarely is for long
)

type sendWaiter struct {
	since time.Time
	woken chan bool // true: the lock is the waiter's
}

func (l *sendLock) lock(ctx context.Context) error {
	if l.state.CompareAndSwap(sendFree, sendHeld) {
		return nil
	}
	for range sendSpins {
		if l.state.Load() == sendFree && l.state.CompareAndSwap(sendFree, sendHeld) {
			return nil
		}
	}
	return l.wait(ctx)
}

// wait is lock for a lock that is held.
func (l *sendLock) wait(ctx context.Context) error {
	var w *sendWaiter
	for {
		l.mu.Lock()
		if l.state.Swap(sendWanted) == sendFree {
			l.keep(w)
			l.mu.Unlock()
			return nil
		}
		if w == nil {
			w = l.waiter()
			l.queue = append(l.queue, w)
		} else { // somebody else was quicker
			l.queue = slices.Insert(l.queue, 0, w)
		}
		l.mu.Unlock()
		select {
		case mine := <-w.woken:
			if mine {
				l.mu.Lock()
				l.keep(w)
				l.mu.Unlock()
				return nil
			}
		case <-ctx.Done():
			l.leave(w)
			return ctx.Err()
		}
	}
}

// waiter is one that begins to wait. mu is held, as for keep.
func (l *sendLock) waiter() *sendWaiter {
	var w *sendWaiter
	if n := len(l.spare); n > 0 {
		w, l.spare = l.spare[n-1], l.spare[:n-1]
	} else {
		w = &sendWaiter{woken: make(chan bool, 1)}
	}
	w.since = time.Now()
	return w
}

func (l *sendLock) keep(w *sendWaiter) {
	if w != nil && len(l.spare) < sendSpare {
		l.spare = append(l.spare, w)
	}
}

// leave has a waiter give up. If it was woken meanwhile, another is instead.
func (l *sendLock) leave(w *sendWaiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.queue, w); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
		return
	}
	if mine := <-w.woken; mine || l.state.Swap(sendWanted) == sendFree {
		l.pass()
	}
}

func (l *sendLock) unlock() {
	if l.state.CompareAndSwap(sendHeld, sendFree) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pass()
}

// pass gives the lock up, and wakes the first who waits. mu is held.
func (l *sendLock) pass() {
	if len(l.queue) == 0 {
		l.state.Store(sendFree)
		return
	}
	w := l.queue[0]
	l.queue = slices.Delete(l.queue, 0, 1)
	hungry := time.Since(w.since) > sendHungry
	if !hungry {
		l.state.Store(sendFree)
	}
	w.woken <- hungry
}
