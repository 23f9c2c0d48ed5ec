package signals

import (
	"math/bits"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
)

// entry is one signal in a queue.
type entry struct {
	next *entry
	user *accounts.User // who is charged for it
	info linux.Siginfo
	// timer is set in a timer's signal, which is charged as long as the timer lives.
	timer *Timer
}

// Queue holds pending signals in order of arrival; guarded by the lock of its process.
// A bit in Set without an entry is a signal whose siginfo was not kept.
type Queue struct {
	Set         linux.SigSet
	first, last *entry
	timer       *Timer // of the signal that was taken last; see TakenTimer
}

// Put appends a signal. A classic signal that is pending already is merged
// with it; keep says whether there is room for the siginfo. It reports false
// for a real-time signal that finds no room.
func (q *Queue) Put(info *linux.Siginfo, u *accounts.User, limit uint64) bool {
	sig := info.Signal()
	if sig < linux.SIGRTMIN && q.Set.Has(sig) {
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
		q.Set |= sig.Set()
		return true
	}
	q.append(&entry{user: u, info: *info})
	return true
}

// PutTimer is Put of a timer's signal, which always has room.
func (q *Queue) PutTimer(info *linux.Siginfo, s *Timer) {
	if sig := info.Signal(); sig < linux.SIGRTMIN && q.Set.Has(sig) {
		return
	}
	s.entry.info, s.entry.next, s.queued = *info, nil, true
	q.append(&s.entry)
}

func (q *Queue) append(e *entry) {
	if q.last == nil {
		q.first = e
	} else {
		q.last.next = e
	}
	q.last = e
	q.Set |= e.info.Signal().Set()
}

// Synchronous signals are taken first, so that their handler sees the registers
// of the fault.
const Synchronous = linux.SigSet(1<<(linux.SIGSEGV-1) | 1<<(linux.SIGBUS-1) | 1<<(linux.SIGILL-1) |
	1<<(linux.SIGTRAP-1) | 1<<(linux.SIGFPE-1) | 1<<(linux.SIGSYS-1))

// Lowest returns the signal of a set that is taken first; 0 for an empty set.
func Lowest(m linux.SigSet) linux.Signal {
	if m == 0 {
		return 0
	}
	if m&Synchronous != 0 {
		m &= Synchronous
	}
	return linux.Signal(bits.TrailingZeros64(uint64(m)) + 1)
}

// Take removes the first entry of the Lowest signal in m.
func (q *Queue) Take(m linux.SigSet) (linux.Siginfo, bool) {
	sig := Lowest(q.Set & m)
	if sig == 0 {
		return linux.Siginfo{}, false
	}
	return q.takeSignal(sig), true
}

func (q *Queue) takeSignal(sig linux.Signal) linux.Siginfo {
	info := linux.Siginfo{Signo: int32(sig)}
	found, more := false, false
	var prev *entry
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
		q.Set &^= sig.Set()
	}
	return info
}

func (q *Queue) unlink(prev, e *entry) {
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

// Drop removes all signals of a set.
func (q *Queue) Drop(m linux.SigSet) {
	if q.Set&m == 0 {
		return
	}
	var prev *entry
	for e := q.first; e != nil; {
		next := e.next
		if m.Has(e.info.Signal()) {
			q.unlink(prev, e)
		} else {
			prev = e
		}
		e = next
	}
	q.Set &^= m
}
