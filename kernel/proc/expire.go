package proc

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"hardtack/kernel/wait"
	"hardtack/nucleus"
)

// expiry is the one timer of all message calls that wait inside the nucleus until a
// deadline (ipc.Limit). mu is a leaf.
var expiry struct {
	mu    sync.Mutex
	timer *time.Timer   // guarded by mu; made at the first deadline
	at    atomic.Uint64 // when it fires, MaxUint64: it need not; lowered under mu
}

func init() {
	expiry.at.Store(math.MaxUint64)
	nucleus.MessageDeadline = messageDeadline
}

// messageDeadline makes the timer fire at a time at the latest. Callers may hold
// Process.mu and treeMu.
func messageDeadline(at uint64) {
	x := &expiry
	if at >= x.at.Load() {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if at >= x.at.Load() {
		return
	}
	x.at.Store(at)
	d := time.Duration(int64(min(at, 1<<62)) - wait.Now())
	if x.timer == nil {
		x.timer = time.AfterFunc(d, expireMessages)
		return
	}
	x.timer.Reset(d)
}

// expireMessages is the timer's function. Who finds at as it was before has lowered
// the nucleus's word already, and the look at all threads comes after.
func expireMessages() {
	expiry.at.Store(math.MaxUint64)
	nucleus.ExpireMessages(wait.Now())
	nucleus.ServeMessages()
}
