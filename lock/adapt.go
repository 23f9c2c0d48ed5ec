package lock

import "sync/atomic"

// An adaptation decides when an Elided lock runs its sections as transactions.
//
// Without anybody who waits, a transaction gains nothing and costs more than a locked
// instruction: a lock begins as a plain one, and stays so while few wait. What counts
// is time, in cycles of the time stamp counter, taken only where a goroutine has lost
// some already:
//
//   - A plain lock counts how long its waiters wait. After a round of waits that took
//     more than a part minShare of the time that passed, transactions are tried.
//   - While it elides, the lock counts what aborts cost: the time of tries in vain and
//     of waits for plain holders. When that is more than half of what waiting had cost,
//     the lock is plain again. Half, because a transaction costs about as much as two
//     plain sections.
//   - Long sections that do not fit into a transaction cost more than can be seen. So
//     score rises by abortCost with each abort, falls by one with each section that
//     commits, and over tooMany the lock is plain too. A conflict counts once only: its
//     time is known.
//   - After each change to plain, transactions are not tried for pause cycles, which
//     doubles each time, and starts again after a time in which they paid.
//   - From time to time the lock is plain for one round, to see whether still anybody
//     waits. An abort gives the occasion: timer interrupts abort some.
//
// Sections that commit write none of this but a score that is not 0: in a line that
// all write, they would wait for each other. The fields of transactions are kept with
// loads and stores that may lose each other: they are hints. Those of waits are
// guarded by Elided.slow.
type adaptation struct {
	score uint32
	tries uint32 // aborts or waits in this round
	share uint32 // of the time, in 1/256, that waiters of the plain lock waited
	began uint32 // when it began to elide, in units of 2^20 cycles
	since uint64 // this round
	spent uint64 // in this round, by aborts or waits
	until uint64 // no transactions before
	pause uint64
}

const (
	abortCost   = 4
	tooMany     = 64
	waitRound   = 8
	abortRound  = 16
	minShare    = 256 / 8
	abortCycles = 300 // of the first try of a section, whose time nobody took
	minPause    = 1 << 20
	maxPause    = 1 << 30
	paid        = 8  // units of 2^20 cycles after which transactions have paid
	again       = 64 // units after which the plain lock has its round
)

// begin is a new round at now.
func (a *adaptation) begin(now uint64) {
	atomic.StoreUint32(&a.tries, 0)
	atomic.StoreUint64(&a.spent, 0)
	atomic.StoreUint64(&a.since, now)
}

// count adds an event to the round and gives the number of them, and how much of the
// time they took, in 1/256.
func (a *adaptation) count(now, cost uint64) (n, share uint32) {
	n = atomic.LoadUint32(&a.tries) + 1
	spent := atomic.LoadUint64(&a.spent) + cost
	atomic.StoreUint32(&a.tries, n)
	atomic.StoreUint64(&a.spent, spent)
	return n, uint32(min(spent<<8/max(now-atomic.LoadUint64(&a.since), 1), 1<<16))
}

// waited counts a wait for the plain lock, and tells whether to elide from now on.
func (a *adaptation) waited(now, cost uint64) bool {
	n, share := a.count(now, cost)
	if n < waitRound {
		return false
	}
	a.begin(now)
	if share < minShare || now < atomic.LoadUint64(&a.until) {
		return false
	}
	atomic.StoreUint32(&a.share, share)
	atomic.StoreUint32(&a.began, uint32(now>>20))
	atomic.StoreUint32(&a.score, 0)
	return true
}

// failed counts an abort, or a wait while the lock elides, and tells whether to be
// plain from now on.
func (a *adaptation) failed(now, cost uint64, score bool) bool {
	n, share := a.count(now, cost)
	lasted := uint32(now>>20) - atomic.LoadUint32(&a.began)
	if score {
		s := atomic.LoadUint32(&a.score) + abortCost
		atomic.StoreUint32(&a.score, s)
		if s > tooMany {
			return a.giveUp(now, lasted)
		}
	}
	if n >= abortRound {
		if share > atomic.LoadUint32(&a.share)/2 {
			return a.giveUp(now, lasted)
		}
		a.begin(now)
	}
	if lasted > again {
		a.begin(now)
		atomic.StoreUint64(&a.until, now)
		return true
	}
	return false
}

func (a *adaptation) giveUp(now uint64, lasted uint32) bool {
	p := max(minPause, min(2*atomic.LoadUint64(&a.pause), maxPause))
	if lasted > paid {
		p = minPause
	}
	atomic.StoreUint64(&a.pause, p)
	atomic.StoreUint64(&a.until, now+p)
	a.begin(now)
	return true
}
