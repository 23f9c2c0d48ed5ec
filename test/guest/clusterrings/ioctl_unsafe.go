package main

import (
	"os"
	"syscall"
	"unsafe"

	abi "hardtack/abi/cluster"
)

func ioctl(f *os.File, request, arg uintptr) (int, error) { return ioctlOf(int(f.Fd()), request, arg) }

func ioctlOf(fd int, request, arg uintptr) (int, error) {
	n, _, e := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request, arg)
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}

// request makes a request that takes an address.
func request(f *os.File, request uintptr, b []byte) error {
	_, err := ioctlOf(int(f.Fd()), request, uintptr(unsafe.Pointer(&b[0])))
	return err
}

// connect connects with rings to a RingAddress.
func connect(f *os.File, b []byte) error { return request(f, abi.ConnectRings, b) }
