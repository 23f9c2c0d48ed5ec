// Package barrier has a memory barrier that works for other threads too, so
// that a thread that is about to sleep pays for both sides and the threads that
// send never pay: membarrier(2) with MEMBARRIER_CMD_GLOBAL_EXPEDITED runs a full
// barrier on every core on which a thread of a registered process runs. Every
// process that imports this registers.
package barrier

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Of linux/membarrier.h.
const (
	cmdGlobalExpedited         = 1 << 1
	cmdRegisterGlobalExpedited = 1 << 2
)

var works = sync.OnceValue(func() bool {
	_, _, e := unix.Syscall(unix.SYS_MEMBARRIER, cmdRegisterGlobalExpedited, 0, 0)
	return e == 0 && expedited()
})

func expedited() bool {
	_, _, e := unix.RawSyscall(unix.SYS_MEMBARRIER, cmdGlobalExpedited, 0, 0)
	return e == 0
}

var dummy atomic.Uint32

// Works reports whether All reaches the threads of other registered processes.
func Works() bool { return works() }

// Self is a full memory barrier on this thread.
func Self() { dummy.Add(1) }

// All is a full memory barrier on this thread and, if Works, on every thread of
// every registered process.
func All() {
	Self()
	if works() {
		expedited()
	}
}
