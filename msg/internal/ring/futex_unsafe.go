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

// futexWait sleeps while *p is v, at most d, and keeps the processor of the
// scheduler meanwhile, which makes it quick. It may return early.
func futexWait(p *uint32, v uint32, d time.Duration) {
	ts := unix.NsecToTimespec(d.Nanoseconds())
	unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(p)), futexOpWait, uintptr(v), uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// futexWake wakes who sleeps on *p. It does not block.
func futexWake(p *uint32) {
	unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(p)), futexOpWake, 1, 0, 0, 0)
}
