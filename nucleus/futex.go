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
	switch op &^ futexPrivate {
	case futexWait:
		if load32(uintptr(addr)) != uint32(val) {
			return errno(linux.EAGAIN)
		}
		var deadline int64
		if timeout != 0 {
			if !touch(c, uintptr(timeout), 16) {
				return errno(linux.EFAULT)
			}
			deadline = now() + int64(load64(uintptr(timeout)))*1e9 + int64(load64(uintptr(timeout)+8))
		}
		block(c, waitFutex, deadline).futex = addr
		return 0
	case futexWake:
		n := uint64(0)
		for i := range threads[:threadMax] {
			t := &threads[i]
			if n < val && t.state == threadBlocked && t.waiting == waitFutex && t.futex == addr {
				wake(c, int32(i), 0, false)
				n++
			}
		}
		return n
	}
	return errno(linux.ENOSYS)
}
