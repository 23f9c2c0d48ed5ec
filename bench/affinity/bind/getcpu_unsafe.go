package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// getcpu tells on which processor and node the calling thread is.
func getcpu() (cpu, node uint32, e unix.Errno) {
	_, _, e = unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), uintptr(unsafe.Pointer(&node)), 0)
	return cpu, node, e
}
