package main

import (
	"os"
	"syscall"
	"unsafe"

	abi "hardtack/abi/cluster"
)

func ioctl(f *os.File, request, arg uintptr) (int, error) {
	n, _, e := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, arg)
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}

// connect connects with rings to a RingAddress.
func connect(f *os.File, b []byte) error {
	_, _, e := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), abi.ConnectRings, uintptr(unsafe.Pointer(&b[0])))
	if e != 0 {
		return e
	}
	return nil
}
