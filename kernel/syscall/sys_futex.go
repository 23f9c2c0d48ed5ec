package syscall

import (
	"math"

	"hardtack/abi/linux"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/process/futex"
	"hardtack/kernel/process/proc"
)

var futexCalls = []Call{
	{linux.SYS_futex, "futex", sysFutex, "works except FUTEX_FD (ENOSYS); PI operations hand locks on by real-time priority, which the owner inherits"},
	{linux.SYS_futex_waitv, "futex_waitv", sysFutexWaitv, "works"},
	{linux.SYS_set_robust_list, "set_robust_list", sysSetRobustList, "works"},
	{linux.SYS_get_robust_list, "get_robust_list", sysGetRobustList, "works"},
}

// sysFutex is futex(u32 *uaddr, int op, u32 val, timeout or val2, u32 *uaddr2, u32 val3).
func sysFutex(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	addr, op, val := a.Addr(0), a.Uint(1), a.Uint(2)
	cmd := op &^ (linux.FUTEX_PRIVATE_FLAG | linux.FUTEX_CLOCK_REALTIME)
	private := op&linux.FUTEX_PRIVATE_FLAG != 0
	realtime := op&linux.FUTEX_CLOCK_REALTIME != 0
	waits := cmd == linux.FUTEX_WAIT_BITSET || cmd == linux.FUTEX_WAIT_REQUEUE_PI || cmd == linux.FUTEX_LOCK_PI2
	if waits || cmd == linux.FUTEX_WAIT || cmd == linux.FUTEX_LOCK_PI {
		deadline, e := futexDeadline(t, a.Addr(3), cmd != linux.FUTEX_WAIT, realtime || cmd == linux.FUTEX_LOCK_PI)
		if e == 0 && realtime && !waits {
			e = linux.ENOSYS
		}
		if e != 0 {
			return 0, e
		}
		return 0, futexWait(t, cmd, a, private, deadline)
	}
	if realtime {
		return 0, linux.ENOSYS
	}
	switch cmd {
	case linux.FUTEX_WAKE:
		return futexCount(futex.Wake(t.Space, addr, private, wakeCount(val), linux.FUTEX_BITSET_MATCH_ANY))
	case linux.FUTEX_WAKE_BITSET:
		if a.Uint(5) == 0 {
			return 0, linux.EINVAL
		}
		return futexCount(futex.Wake(t.Space, addr, private, wakeCount(val), a.Uint(5)))
	case linux.FUTEX_REQUEUE, linux.FUTEX_CMP_REQUEUE, linux.FUTEX_CMP_REQUEUE_PI:
		return futexRequeue(t, cmd, a, private)
	case linux.FUTEX_WAKE_OP:
		return futexCount(futex.WakeOp(t.Space, addr, a.Addr(4), private, wakeCount(val), wakeCount(a.Uint(3)), a.Uint(5)))
	case linux.FUTEX_TRYLOCK_PI:
		return 0, t.Futex.TryLockPI(t.Space, proc.FutexOf, addr, private)
	case linux.FUTEX_UNLOCK_PI:
		return 0, t.Futex.UnlockPI(t.Space, addr, private)
	}
	return 0, linux.ENOSYS
}

// futexWait is the operations with a time limit.
func futexWait(t *proc.Thread, cmd uint32, a *Args, private bool, deadline int64) linux.Errno {
	addr, val := a.Addr(0), a.Uint(2)
	switch cmd {
	case linux.FUTEX_WAIT:
		return futexWaitBits(t, addr, private, val, linux.FUTEX_BITSET_MATCH_ANY, deadline)
	case linux.FUTEX_WAIT_BITSET:
		if a.Uint(5) == 0 {
			return linux.EINVAL
		}
		return futexWaitBits(t, addr, private, val, a.Uint(5), deadline)
	case linux.FUTEX_WAIT_REQUEUE_PI:
		return t.Futex.WaitRequeuePI(t.Space, addr, a.Addr(4), private, val, deadline)
	}
	return t.Futex.LockPI(t.Space, proc.FutexOf, addr, private, deadline)
}

// futexWaitBits is FUTEX_WAIT_BITSET. A wait with a time limit goes on after a stop
// with what is left of the time.
func futexWaitBits(t *proc.Thread, addr uio.Addr, private bool, val, bitset uint32, deadline int64) linux.Errno {
	e := t.Futex.Wait(t.Space, addr, private, val, bitset, deadline)
	if e == linux.ERESTARTSYS && deadline != wait.NoDeadline {
		return t.SetRestart(func(t *proc.Thread) (uint64, linux.Errno) {
			return 0, futexWaitBits(t, addr, private, val, bitset, deadline)
		})
	}
	return e
}

// futexRequeue is the operations that move waiters.
func futexRequeue(t *proc.Thread, cmd uint32, a *Args, private bool) (uint64, linux.Errno) {
	addr, addr2, nWake, nMove := a.Addr(0), a.Addr(4), a.Int(2), a.Int(3)
	if nWake < 0 || nMove < 0 {
		return 0, linux.EINVAL
	}
	if cmd == linux.FUTEX_CMP_REQUEUE_PI {
		if nWake != 1 {
			return 0, linux.EINVAL
		}
		return futexCount(t.Futex.RequeuePI(t.Space, proc.FutexOf, addr, addr2, private, int(nMove), a.Uint(5)))
	}
	// The manual says that FUTEX_REQUEUE counts the woken only; Linux counts both.
	woken, moved, e := futex.Requeue(t.Space, addr, addr2, private, int(nWake), int(nMove), cmd == linux.FUTEX_CMP_REQUEUE, a.Uint(5))
	return uint64(woken + moved), e
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
		ns = clocks.Monotonic() + clocks.Until(ns-clocks.Realtime())
	}
	return max(ns, 1), 0
}

// sysSetRobustList is set_robust_list(struct robust_list_head *head, size_t len).
func sysSetRobustList(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a[1] != futex.SizeofRobustListHead {
		return 0, linux.EINVAL
	}
	t.Futex.RobustList = a[0]
	return 0, 0
}

// sysGetRobustList is get_robust_list(int pid, struct robust_list_head **head, size_t *len).
func sysGetRobustList(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	u := t
	if tid := a.Int(0); tid != 0 && tid != t.TID {
		if u = proc.Task(tid); u == nil {
			return 0, linux.ESRCH
		}
	}
	head := uint64(0)
	if !u.Proc.Inspect(u, &t.Ctx, proc.RealCreds, func(u *proc.Thread) { head = u.Futex.RobustList }) {
		return 0, linux.EPERM
	}
	if e := writeWords(t, a.Addr(2), futex.SizeofRobustListHead); e != 0 {
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
	words := make([]futex.Word, n)
	for i := range words {
		b, e := readUser(t, a.Addr(0)+uio.Addr(i*sizeofWaitv), sizeofWaitv)
		if e != 0 {
			return 0, e
		}
		flags := uint32(le64(b[16:]))
		if flags&^futexPrivate2 != futex32 || le64(b[16:])>>32 != 0 {
			return 0, linux.EINVAL
		}
		words[i] = futex.Word{Addr: uio.Addr(le64(b[8:])), Private: flags&futexPrivate2 != 0, Val: uint32(le64(b))}
	}
	woken, e := t.Futex.WaitV(t.Space, words, deadline)
	return uint64(woken), e
}
