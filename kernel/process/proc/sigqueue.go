package proc

import (
	"math/bits"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
)

// queued is one signal in a queue.
type queued struct {
	next *queued
	user *accounts.User // who is charged for it
	info linux.Siginfo
	// timer is set in a timer's signal, which is charged as long as the timer lives.
	timer *TimerSignal
}

// sigQueue holds pending signals in order of arrival; guarded by Proc.mu.
// A bit in set without an entry is a signal whose siginfo was not kept.
type sigQueue struct {
	set         linux.SigSet
	first, last *queued
	timer       *TimerSignal // of the signal that was taken last; see takenTimer
}

// put appends a signal. A classic signal that is pending already is merged
// with it; keep says whether there is room for the siginfo. It reports false
// for a real-time signal that finds no room.
func (q *sigQueue) put(info *linux.Siginfo, u *accounts.User, limit uint64) bool {
	sig := info.Signal()
	if sig < linux.SIGRTMIN && q.set.Has(sig) {
		return true
	}
	if sig < linux.SIGRTMIN && info.Code >= 0 {
		limit = linux.RLIM_INFINITY // there is at most one of each
	}
	if !u.ChargeSignal(limit) {
		// kill's signals are delivered without siginfo, sigqueue's refused.
		if sig >= linux.SIGRTMIN && info.Code != linux.SI_USER {
			return false
		}
		q.set |= sig.Set()
		return true
	}
	q.append(&queued{user: u, info: *info})
	return true
}

// putTimer is put of a timer's signal, which always has room.
func (q *sigQueue) putTimer(info *linux.Siginfo, s *TimerSignal) {
	if sig := info.Signal(); sig < linux.SIGRTMIN && q.set.Has(sig) {
		return
	}
	s.entry.info, s.entry.next, s.queued = *info, nil, true
	q.append(&s.entry)
}

func (q *sigQueue) append(e *queued) {
	if q.last == nil {
		q.first = e
	} else {
		q.last.next = e
	}
	q.last = e
	q.set |= e.info.Signal().Set()
}

// synchronous signals are taken first, so that their handler sees the registers
// of the fault.
const synchronous = linux.SigSet(1<<(linux.SIGSEGV-1) | 1<<(linux.SIGBUS-1) | 1<<(linux.SIGILL-1) |
	1<<(linux.SIGTRAP-1) | 1<<(linux.SIGFPE-1) | 1<<(linux.SIGSYS-1))

// lowest returns the signal of a set that is taken first; 0 for an empty set.
func lowest(m linux.SigSet) linux.Signal {
	if m == 0 {
		return 0
	}
	if m&synchronous != 0 {
		m &= synchronous
	}
	return linux.Signal(bits.TrailingZeros64(uint64(m)) + 1)
}

// take removes the first entry of the lowest signal in m.
func (q *sigQueue) take(m linux.SigSet) (linux.Siginfo, bool) {
	sig := lowest(q.set & m)
	if sig == 0 {
		return linux.Siginfo{}, false
	}
	return q.takeSignal(sig), true
}

func (q *sigQueue) takeSignal(sig linux.Signal) linux.Siginfo {
	info := linux.Siginfo{Signo: int32(sig)}
	found, more := false, false
	var prev *queued
	for e := q.first; e != nil; {
		next := e.next
		if e.info.Signal() == sig {
			if found {
				more = true
				break
			}
			found = true
			info = e.info
			q.timer = e.timer
			q.unlink(prev, e)
		} else {
			prev = e
		}
		e = next
	}
	if !more {
		q.set &^= sig.Set()
	}
	return info
}

func (q *sigQueue) unlink(prev, e *queued) {
	if prev == nil {
		q.first = e.next
	} else {
		prev.next = e.next
	}
	if q.last == e {
		q.last = prev
	}
	if e.timer != nil {
		e.timer.taken()
	} else {
		e.user.ReleaseSignal()
	}
}

// drop removes all signals of a set.
func (q *sigQueue) drop(m linux.SigSet) {
	if q.set&m == 0 {
		return
	}
	var prev *queued
	for e := q.first; e != nil; {
		next := e.next
		if m.Has(e.info.Signal()) {
			q.unlink(prev, e)
		} else {
			prev = e
		}
		e = next
	}
	q.set &^= m
}
