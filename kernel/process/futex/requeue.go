package futex

//oops:stop a waiter that is gone would take others' wake-ups

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
)

// lockBoth locks the buckets of two keys, in order.
func lockBoth(x, y *bucket) {
	if y.before(x) {
		x, y = y, x
	}
	x.mu.Lock()
	if x != y {
		y.mu.Lock()
	}
}

func unlockBoth(x, y *bucket) {
	x.mu.Unlock()
	if x != y {
		y.mu.Unlock()
	}
}

// Requeue is FUTEX_REQUEUE, and FUTEX_CMP_REQUEUE with compare: it wakes up to nWake waiters of a and moves up to nMove others to
// a2. With compare, the word at a must be val. It returns how many were woken
// and moved.
func Requeue(m Memory, a, a2 uio.Addr, private bool, nWake, nMove int, compare bool, val uint32) (woken, moved int, e linux.Errno) {
	key, e := m.FutexKey(a, private, false)
	if e != 0 {
		return 0, 0, e
	}
	key2, e := m.FutexKey(a2, private, false)
	if e != 0 {
		return 0, 0, e
	}
	b, b2 := bucketOf(key), bucketOf(key2)
	lockBoth(b, b2)
	defer unlockBoth(b, b2)
	if compare {
		v, e := m.LoadU32(a)
		if e != 0 {
			return 0, 0, e
		}
		if v != val {
			return 0, 0, linux.EAGAIN
		}
	}
	woken, e = b.wakeKey(key, nWake, linux.FUTEX_BITSET_MATCH_ANY)
	if e != 0 || key == key2 {
		return woken, 0, e
	}
	for w := b.first; w != nil && moved < nMove; {
		next := w.next
		if w.key == key {
			if w.pi != nil || w.moves {
				return woken, moved, linux.EINVAL
			}
			b.remove(w)
			w.key = key2
			b2.add(w)
			moved++
		}
		w = next
	}
	return woken, moved, 0
}

// WakeOp is FUTEX_WAKE_OP: it changes the word at a2 as op says, wakes up to n waiters of a,
// and up to n2 of a2 if its old value compares as op says.
func WakeOp(m Memory, a, a2 uio.Addr, private bool, n, n2 int, op uint32) (int, linux.Errno) {
	key, e := m.FutexKey(a, private, false)
	if e != 0 {
		return 0, e
	}
	key2, e := m.FutexKey(a2, private, true)
	if e != 0 {
		return 0, e
	}
	b, b2 := bucketOf(key), bucketOf(key2)
	lockBoth(b, b2)
	defer unlockBoth(b, b2)
	old, e := atomicOp(m, a2, op)
	if e != 0 {
		return 0, e
	}
	matches, e := compareOp(op, old)
	if e != 0 {
		return 0, e
	}
	done, e := b.wakeKey(key, n, linux.FUTEX_BITSET_MATCH_ANY)
	if e != 0 || !matches {
		return done, e
	}
	done2, e := b2.wakeKey(key2, n2, linux.FUTEX_BITSET_MATCH_ANY)
	return done + done2, e
}

// atomicOp carries out the change that FUTEX_OP encodes and returns the old value.
func atomicOp(m Memory, a uio.Addr, op uint32) (uint32, linux.Errno) {
	arg := uint32(int32(op<<8) >> 20)
	if op>>31 != 0 { // FUTEX_OP_OPARG_SHIFT
		arg = 1 << (arg & 31)
	}
	for {
		old, e := m.LoadU32(a)
		if e != 0 {
			return 0, e
		}
		var v uint32
		switch op >> 28 & 7 {
		case 0:
			v = arg
		case 1:
			v = old + arg
		case 2:
			v = old | arg
		case 3:
			v = old &^ arg
		case 4:
			v = old ^ arg
		default:
			return 0, linux.ENOSYS
		}
		got, e := m.CASU32(a, old, v)
		if e != 0 {
			return 0, e
		}
		if got == old {
			return old, 0
		}
	}
}

func compareOp(op, old uint32) (bool, linux.Errno) {
	arg, v := int32(op<<20)>>20, int32(old)
	switch op >> 24 & 15 {
	case 0:
		return v == arg, 0
	case 1:
		return v != arg, 0
	case 2:
		return v < arg, 0
	case 3:
		return v <= arg, 0
	case 4:
		return v > arg, 0
	case 5:
		return v >= arg, 0
	}
	return false, linux.ENOSYS
}
