package nucleus

import (
	"hardtack/abi/linux"
	"hardtack/arch/amd64"
)

// The runtime's futex calls: FUTEX_WAIT and FUTEX_WAKE, private.
const (
	futexWait    = 0
	futexWake    = 1
	futexPrivate = 128
)

func errno(e linux.Errno) uint64 { return uint64(-int64(e)) }

func sysFutex(c *amd64.CPU, addr, op, val, timeout uint64) uint64 {
	if !touch(c, uintptr(addr), 4) {
		return errno(linux.EFAULT)
	}
	index := futexQueue(addr)
	q := &waits[index]
	switch op &^ futexPrivate {
	case futexWait:
		var deadline int64
		if timeout != 0 {
			if !touch(c, uintptr(timeout), 16) {
				return errno(linux.EFAULT)
			}
			deadline = now() + int64(load64(uintptr(timeout)))*1e9 + int64(load64(uintptr(timeout)+8))
		}
		q.lock.Acquire()
		if load32(uintptr(addr)) != uint32(val) {
			q.lock.Release()
			return errno(linux.EAGAIN)
		}
		threads[cpus[c.Index].current].futex = addr
		block(c, index, deadline)
		q.lock.Release()
		return 0
	case futexWake:
		n := uint64(0)
		q.lock.Acquire()
		for i := q.head; i >= 0 && n < val; {
			t := &threads[i]
			next := t.next
			if t.futex == addr {
				t.lock.Acquire()
				unblock(i, 0)
				t.lock.Release()
				ready(c, i, false)
				n++
			}
			i = next
		}
		q.lock.Release()
		return n
	}
	return errno(linux.ENOSYS)
}
