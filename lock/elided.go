package lock

import (
	"sync"
	"sync/atomic"
	"time"

	"hardtack/lock/core"
)

// Elided is a lock whose critical sections run as hardware transactions where the
// processor has them and that pays: sections that touch different data run at the
// same time. Otherwise it is a plain lock that barges, as sync.Mutex does: whoever
// comes while it is free has it. The zero value is unlocked. It fills lines of its
// own, 256 bytes; data it guards lies elsewhere.
//
// State. word is 1 while a goroutine holds the lock plainly. A transaction reads
// word first and goes on only if it is 0, so word is in its read set until it
// commits: taking the lock plainly aborts it. Unlock finds word 0 exactly in a
// transaction.
//
// hungry is 1 while a goroutine has waited for over a millisecond; only that one may
// then take the lock plainly, which bounds how long others pass it. slow is held by
// the one goroutine that looks at word, the other waiters sleep on it. No release
// wakes anybody.
//
// Whether the lock is eliding is decided in adapt.go.
//
// Order. Taking the lock is a compare-and-swap, and must be a full barrier: a plain
// holder that read data before its 1 was visible could miss what a transaction
// commits in between. The release is a release store. A transaction that commits
// is one event in the order of all stores.
//
// Rajwar, Goodman, Speculative lock elision, 2001; Intel optimization manual, 16
// (TSX recommendations: wait until the lock is free before the next try, fall back
// at once when the status does not say retry).
type Elided struct {
	Checker
	word    uint32
	hungry  uint32
	eliding uint32 // sections are tried as transactions
	_       [line - 12]byte

	adaptation
	slow sync.Mutex
	_    [line - 72]byte
}

const (
	maxTries = 3
	hunger   = time.Millisecond
)

// Lock begins the critical section: as a transaction, or when nobody else has the
// lock.
func (l *Elided) Lock() {
	l.before()
	if atomic.LoadUint32(&l.eliding) != 0 {
		l.lockEliding()
	} else if atomic.LoadUint32(&l.hungry) != 0 || !core.Take(&l.word) {
		l.wait()
	}
	l.acquired()
}

func (l *Elided) lockEliding() {
	if !l.elide(maxTries) && (atomic.LoadUint32(&l.hungry) != 0 || !core.Take(&l.word)) {
		l.wait()
	}
}

// TryLock begins the critical section unless another goroutine holds the lock
// plainly or waits for it, and tells whether it did.
func (l *Elided) TryLock() bool {
	if atomic.LoadUint32(&l.hungry) != 0 {
		return false
	}
	if !(atomic.LoadUint32(&l.eliding) != 0 && l.elide(1)) && !core.Take(&l.word) {
		return false
	}
	l.acquired()
	return true
}

// Unlock ends the critical section. It panics if the lock is not locked.
func (l *Elided) Unlock() {
	if atomic.LoadUint32(&l.word) == 0 {
		l.commit()
		return
	}
	l.released()
	StoreRelease32(&l.word, 0)
}

func (l *Elided) commit() {
	if !core.Inside() {
		panic("lock: Unlock of an Elided lock that is not locked")
	}
	core.End()
	if s := atomic.LoadUint32(&l.score); s != 0 {
		atomic.StoreUint32(&l.score, s-1)
	}
}

// elide begins a transaction and tells whether it runs in one. After an abort it
// runs again from the begin within.
func (l *Elided) elide(tries int) bool {
	last := uint64(0) // when the last try aborted
	for range tries {
		status := core.Begin(&l.word)
		if status == core.Started {
			return true
		}
		now := core.Now()
		cost := uint64(abortCycles)
		if last != 0 {
			cost = now - last
		}
		last = now
		if core.WasHeld(status) {
			for i := uint32(0); i < spins && atomic.LoadUint32(&l.word) != 0; i++ {
				relax(i)
			}
		}
		if l.aborted(now, cost, !core.WasHeld(status)) || !core.WasHeld(status) && status&core.StatusRetry == 0 {
			break
		}
	}
	return false
}

// wait takes the lock plainly, when it is free.
func (l *Elided) wait() {
	from := core.Now()
	l.slow.Lock()
	var since time.Time
	for i := uint32(0); atomic.LoadUint32(&l.word) != 0 || !core.Take(&l.word); i++ {
		relax(i)
		if i < spins {
			continue
		}
		if since.IsZero() {
			since = time.Now()
		} else if time.Since(since) > hunger {
			atomic.StoreUint32(&l.hungry, 1)
		}
	}
	StoreRelease32(&l.hungry, 0)
	if Transactions() {
		now := core.Now()
		l.waitedFor(now, now-from)
	}
	l.slow.Unlock()
}

// waitedFor counts a wait. The caller holds slow and the lock.
func (l *Elided) waitedFor(now, cost uint64) {
	if atomic.LoadUint32(&l.eliding) != 0 {
		l.aborted(now, cost, false)
	} else if l.waited(now, cost) {
		atomic.StoreUint32(&l.eliding, 1)
	}
}

// aborted counts an abort, and tells whether the lock is plain from now on.
func (l *Elided) aborted(now, cost uint64, score bool) bool {
	if !l.failed(now, cost, score) {
		return false
	}
	atomic.StoreUint32(&l.eliding, 0)
	return true
}
