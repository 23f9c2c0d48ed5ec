package proc

import (
	"math"

	"hardtack/abi/linux"
)

// MergeTimerSignal adds a POSIX timer's expirations to the overrun count of its
// signal that is pending still, for a thread or (nil) the process, and returns
// the sum: a timer has one signal queued at most. It reports false if none is
// pending.
func (p *Process) MergeTimerSignal(to *Thread, info *linux.Siginfo) (overrun int32, pending bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := &p.sig.pending
	if to != nil {
		q = &to.sig.pending
	}
	id, more := info.Timer()
	for e := q.first; e != nil; e = e.next {
		if e.info.Code != linux.SI_TIMER || e.info.Signo != info.Signo {
			continue
		}
		if old, n := e.info.Timer(); old == id {
			sum := int32(min(int64(n)+int64(more)+1, math.MaxInt32))
			e.info.SetTimer(id, sum, e.info.Value())
			return sum, true
		}
	}
	return 0, false
}
