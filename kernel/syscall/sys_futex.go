package syscall

import (
	"math"

	"hardtack/abi/linux"
	"hardtack/kernel/kern"
	"hardtack/kernel/proc"
	"hardtack/kernel/uio"
	"hardtack/kernel/wait"
)

var futexCalls = []Call{
	{linux.SYS_futex, "futex", sysFutex, "works except the PI operations and FUTEX_FD (ENOSYS)"},
	{linux.SYS_futex_waitv, "futex_waitv", sysFutexWaitv, "works"},
	{linux.SYS_set_robust_list, "set_robust_list", sysSetRobustList, "works"},
	{linux.SYS_get_robust_list, "get_robust_list", sysGetRobustList, "works"},
}

// sysFutex is futex(u32 *uaddr, int op, u32 val, timeout or val2, u32 *uaddr2, u32 val3).
func sysFutex(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	addr, op, val := a.Addr(0), a.Uint(1), a.Uint(2)
	cmd := op & 127
	private := op&linux.FUTEX_PRIVATE_FLAG != 0
	realtime := op&linux.FUTEX_CLOCK_REALTIME != 0
	if realtime && cmd != linux.FUTEX_WAIT && cmd != linux.FUTEX_WAIT_BITSET {
		return 0, linux.ENOSYS
	}
	switch cmd {
	case linux.FUTEX_WAIT:
		deadline, e := futexDeadline(t, a.Addr(3), false, realtime)
		if e != 0 {
			return 0, e
		}
		return 0, t.FutexWait(addr, private, val, linux.FUTEX_BITSET_MATCH_ANY, deadline)
	case linux.FUTEX_WAIT_BITSET:
		deadline, e := futexDeadline(t, a.Addr(3), true, realtime)
		if e != 0 {
			return 0, e
		}
		if a.Uint(5) == 0 {
			return 0, linux.EINVAL
		}
		return 0, t.FutexWait(addr, private, val, a.Uint(5), deadline)
	case linux.FUTEX_WAKE:
		return futexCount(t.FutexWake(addr, private, wakeCount(val), linux.FUTEX_BITSET_MATCH_ANY))
	case linux.FUTEX_WAKE_BITSET:
		if a.Uint(5) == 0 {
			return 0, linux.EINVAL
		}
		return futexCount(t.FutexWake(addr, private, wakeCount(val), a.Uint(5)))
	case linux.FUTEX_REQUEUE, linux.FUTEX_CMP_REQUEUE:
		nWake, nMove := int32(val), a.Int(3)
		if nWake < 0 || nMove < 0 {
			return 0, linux.EINVAL
		}
		// The manual says that FUTEX_REQUEUE counts the woken only; Linux counts both.
		woken, moved, e := t.FutexRequeue(addr, a.Addr(4), private, int(nWake), int(nMove), cmd == linux.FUTEX_CMP_REQUEUE, a.Uint(5))
		return uint64(woken + moved), e
	case linux.FUTEX_WAKE_OP:
		return futexCount(t.FutexWakeOp(addr, a.Addr(4), private, wakeCount(val), wakeCount(a.Uint(3)), a.Uint(5)))
	}
	return 0, linux.ENOSYS
}

// wakeCount is how many to wake; Linux wakes one where the count is not positive.
func wakeCount(v uint32) int { return max(int(int32(v)), 1) }

func futexCount(n int, e linux.Errno) (uint64, linux.Errno) { return uint64(n), e }

// futexDeadline turns a futex timeout into a deadline of the monotonic clock.
func futexDeadline(t *proc.Thread, addr uio.Addr, absolute, realtime bool) (int64, linux.Errno) {
	if addr == 0 {
		return wait.NoDeadline, 0
	}
	ts, e := readTimespec(t, addr)
	if e != 0 {
		return 0, e
	}
	if !ts.Valid() {
		return 0, linux.EINVAL
	}
	ns := ts.Nano()
	switch {
	case !absolute:
		now := wait.Now()
		if ns > math.MaxInt64-now {
			return math.MaxInt64, 0
		}
		return max(now+ns, 1), 0
	case realtime:
		ns -= kern.RealtimeOffset()
	}
	return max(ns, 1), 0
}

// sysSetRobustList is set_robust_list(struct robust_list_head *head, size_t len).
func sysSetRobustList(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a[1] != proc.SizeofRobustListHead {
		return 0, linux.EINVAL
	}
	t.SetRobustList(a[0])
	return 0, 0
}

// sysGetRobustList is get_robust_list(int pid, struct robust_list_head **head, size_t *len).
func sysGetRobustList(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	u := t
	if tid := a.Int(0); tid != 0 && tid != t.TID {
		if u = proc.ByTID(tid); u == nil {
			return 0, linux.ESRCH
		}
	}
	head := uint64(0)
	if !u.Proc.Inspect(u, &t.Ctx, proc.RealCreds, func(u *proc.Thread) { head = u.RobustList() }) {
		return 0, linux.EPERM
	}
	if e := writeWords(t, a.Addr(2), proc.SizeofRobustListHead); e != 0 {
		return 0, e
	}
	return 0, writeWords(t, a.Addr(1), int64(head))
}

// maxWaitv is the most words that futex_waitv takes; each is a struct of 24
// bytes: value, address, flags, 0.
const (
	maxWaitv      = 128
	sizeofWaitv   = 24
	futex32       = 2
	futexPrivate2 = 128
)

// sysFutexWaitv is futex_waitv(struct futex_waitv *waiters, unsigned n, unsigned
// flags, struct timespec *timeout, clockid_t clock).
func sysFutexWaitv(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	n := a.Uint(1)
	if a.Uint(2) != 0 || n == 0 || n > maxWaitv || a.Addr(0) == 0 {
		return 0, linux.EINVAL
	}
	deadline := int64(wait.NoDeadline)
	if addr := a.Addr(3); addr != 0 {
		clock := a.Int(4)
		if clock != linux.CLOCK_MONOTONIC && clock != linux.CLOCK_REALTIME {
			return 0, linux.EINVAL
		}
		var e linux.Errno
		if deadline, e = futexDeadline(t, addr, true, clock == linux.CLOCK_REALTIME); e != 0 {
			return 0, e
		}
	}
	words := make([]proc.FutexWord, n)
	for i := range words {
		b, e := readUser(t, a.Addr(0)+uio.Addr(i*sizeofWaitv), sizeofWaitv)
		if e != 0 {
			return 0, e
		}
		flags := uint32(le64(b[16:]))
		if flags&^futexPrivate2 != futex32 || le64(b[16:])>>32 != 0 {
			return 0, linux.EINVAL
		}
		words[i] = proc.FutexWord{Addr: uio.Addr(le64(b[8:])), Private: flags&futexPrivate2 != 0, Val: uint32(le64(b))}
	}
	woken, e := t.FutexWaitV(words, deadline)
	return uint64(woken), e
}
