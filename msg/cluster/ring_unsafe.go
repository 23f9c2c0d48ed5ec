package cluster

import (
	"syscall"
	"time"
	"unsafe"

	abi "hardtack/abi/cluster"
)

var one = []byte{1}

// ring writes to the file of the rings, which never waits.
func ring(fd uintptr) { syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(&one[0])), 1) }

// rouse ends an await, the next one if there is none.
func rouse(fd uintptr) { syscall.RawSyscall(syscall.SYS_IOCTL, fd, abi.Rouse, 0) }

// await waits for a ring, for so long at most. It may return early.
func await(fd uintptr, d time.Duration) {
	syscall.Syscall(syscall.SYS_IOCTL, fd, abi.Await, uintptr(d))
}
