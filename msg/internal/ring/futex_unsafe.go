package ring

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Of linux/futex.h; without FUTEX_PRIVATE_FLAG, for the word is shared.
const (
	futexOpWait = 0
	futexOpWake = 1
)

// futexWait sleeps while *p is v, at most d. Go's scheduler may take the P away
// meanwhile, if the sleep lasts. It may return early.
func futexWait(p *uint32, v uint32, d time.Duration) {
	ts := unix.NsecToTimespec(d.Nanoseconds())
	unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(p)), futexOpWait, uintptr(v), uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// futexWake wakes who sleeps on *p. It does not block.
func futexWake(p *uint32) {
	unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(p)), futexOpWake, 1, 0, 0, 0)
}
