package endpoint

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"hardtack/kernel/base/wait"
	"hardtack/nucleus"
)

// expiry is the one timer of all message calls that wait inside the nucleus until a
// deadline (ipc.Limit). mu is a leaf.
var expiry struct {
	mu    sync.Mutex
	timer *time.Timer   // guarded by mu; made at the first deadline
	at    atomic.Uint64 // when it fires, 0: it need not; set under mu
}

// Deadline makes the timer fire at a time at the latest. Callers may hold any lock of
// package proc.
func Deadline(at uint64) {
	x := &expiry
	if expiresBy(at) {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if expiresBy(at) {
		return
	}
	x.at.Store(max(at, 1))
	d := time.Duration(int64(min(at, 1<<62)) - wait.Now())
	if x.timer == nil {
		x.timer = time.AfterFunc(d, expireMessages)
		return
	}
	x.timer.Reset(d)
}

// expiresBy reports whether the timer fires by then, or need not (MaxUint64).
func expiresBy(at uint64) bool {
	fires := expiry.at.Load()
	return at == math.MaxUint64 || fires != 0 && fires <= at
}

// expireMessages is the timer's function. Whoever finds at as it was before has lowered
// the nucleus's word already, and the look at all threads comes after.
func expireMessages() {
	expiry.at.Store(0)
	nucleus.ExpireMessages(wait.Now())
	nucleus.ServeMessages()
}
