package lock

import (
	"sync"

	"golang.org/x/sys/unix"
)

// Commands of membarrier (linux/membarrier.h).
const (
	privateExpedited         = 1 << 3
	registerPrivateExpedited = 1 << 4
)

// asymmetric says that barrier works, and readers leave the barrier to writers. It
// is set before the first Reader exists.
var asymmetric bool

// registerBarrier asks Linux for barriers in all threads of the process, membarrier(2).
var registerBarrier = sync.OnceFunc(func() {
	asymmetric = membarrier(registerPrivateExpedited) && membarrier(privateExpedited)
})

// barrier returns when every thread of the process that runs has performed a full
// memory barrier since the call. Threads that do not run have when they are switched
// to.
func barrier() {
	if !membarrier(privateExpedited) {
		panic("lock: membarrier fails after it has worked")
	}
}

func membarrier(command uintptr) bool {
	_, _, err := unix.Syscall(unix.SYS_MEMBARRIER, command, 0, 0)
	return err == 0
}
