package lock

import (
	"sync"
	"sync/atomic"
	"time"
)

// Elided is a lock whose critical sections run as hardware transactions where the
// processor has them and that pays: sections that touch different data run at the
// same time. Elsewhere, and while aborts dominate, it is a plain lock that barges,
// as sync.Mutex does: whoever comes while it is free has it. The zero value is
// unlocked. It fills lines of its own, 256 bytes; data it guards lies elsewhere.
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
// Adaptation. score, which transactions do not touch, rises by abortCost with each
// abort and falls by one with each section that commits; over tooMany the next
// penalty sections are plain, and penalty doubles until the score has once been down
// to 0. So a lock on which more than one in abortCost sections aborts is a plain
// lock but for a few tries, and one that meets an abort now and then is not. The
// counts are kept with loads and stores that may lose one another: they are hints.
// A section is tried at most maxTries times: a page that is not there aborts it for
// ever.
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
	word   uint32
	hungry uint32
	_      [line - 8]byte

	skip    uint32 // sections still to be plain
	penalty uint32 // what skip was set to the last time
	score   uint32
	slow    sync.Mutex
	_       [line - 20]byte
}

const (
	maxTries     = 3
	abortCost    = 4
	tooMany      = 32
	firstPenalty = 16
	maxPenalty   = 4096
	hunger       = time.Millisecond
)

// Lock begins the critical section: as a transaction, or when nobody else has the
// lock.
func (l *Elided) Lock() {
	l.before()
	if hardware == nil {
		if atomic.LoadUint32(&l.hungry) != 0 || !atomic.CompareAndSwapUint32(&l.word, 0, 1) {
			l.wait()
		}
	} else if !l.elide(maxTries) {
		if atomic.LoadUint32(&l.hungry) != 0 || !hardware.take(&l.word) {
			l.wait()
		}
	}
	l.acquired()
}

// TryLock begins the critical section unless another goroutine holds the lock
// plainly or waits for it, and tells whether it did.
func (l *Elided) TryLock() bool {
	switch {
	case atomic.LoadUint32(&l.hungry) != 0:
		return false
	case hardware == nil:
		if !atomic.CompareAndSwapUint32(&l.word, 0, 1) {
			return false
		}
	case !l.elide(1) && !hardware.take(&l.word):
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
	if hardware == nil || !hardware.inside() {
		panic("lock: Unlock of an Elided lock that is not locked")
	}
	hardware.end()
	if s := atomic.LoadUint32(&l.score); s != 0 {
		if s == 1 {
			atomic.StoreUint32(&l.penalty, 0)
		}
		atomic.StoreUint32(&l.score, s-1)
	}
}

// elide begins a transaction and tells whether it runs in one. After an abort it
// runs again from the begin within.
func (l *Elided) elide(tries int) bool {
	if s := atomic.LoadUint32(&l.skip); s != 0 {
		atomic.StoreUint32(&l.skip, s-1)
		return false
	}
	for range tries {
		status := hardware.begin(&l.word)
		if status == started {
			return true
		}
		if wasHeld(status) {
			for i := uint32(0); i < spins && atomic.LoadUint32(&l.word) != 0; i++ {
				relax(i)
			}
			continue
		}
		if l.aborted() || status&statusRetry == 0 {
			break
		}
	}
	return false
}

// aborted counts an abort and tells whether there are too many.
func (l *Elided) aborted() bool {
	s := atomic.LoadUint32(&l.score) + abortCost
	if s <= tooMany {
		atomic.StoreUint32(&l.score, s)
		return false
	}
	p := max(firstPenalty, min(2*atomic.LoadUint32(&l.penalty), maxPenalty))
	atomic.StoreUint32(&l.penalty, p)
	atomic.StoreUint32(&l.skip, p)
	atomic.StoreUint32(&l.score, tooMany/2)
	return true
}

// wait takes the lock plainly, when it is free.
func (l *Elided) wait() {
	l.slow.Lock()
	var since time.Time
	for i := uint32(0); !l.take(); i++ {
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
	l.slow.Unlock()
}

func (l *Elided) take() bool {
	if atomic.LoadUint32(&l.word) != 0 {
		return false
	}
	if hardware != nil {
		return hardware.take(&l.word)
	}
	return atomic.CompareAndSwapUint32(&l.word, 0, 1)
}
