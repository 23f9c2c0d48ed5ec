package cluster

import (
	"os"
	"syscall"
	"unsafe"

	abi "hardtack/abi/cluster"
)

// ioctl makes a request with a structure, waiting for its end.
func ioctl(f *os.File, request uint, b []byte) (err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	outer := raw.Control(func(fd uintptr) {
		for {
			_, _, e := syscall.Syscall(syscall.SYS_IOCTL, fd, uintptr(request), uintptr(unsafe.Pointer(&b[0])))
			if e == syscall.EINTR {
				continue
			}
			if e != 0 {
				err = os.NewSyscallError("ioctl", e)
			}
			return
		}
	})
	if outer != nil {
		return outer
	}
	return err
}

// number makes a request with a number, which returns one.
func number(f *os.File, request, arg uint) (n int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	outer := raw.Control(func(fd uintptr) {
		v, _, e := syscall.Syscall(syscall.SYS_IOCTL, fd, uintptr(request), uintptr(arg))
		if n = int(v); e != 0 {
			err = os.NewSyscallError("ioctl", e)
		}
	})
	if outer != nil {
		return 0, outer
	}
	return n, err
}

// accept waits for a channel and returns its descriptor.
func accept(f *os.File) (fd int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	outer := raw.Read(func(l uintptr) bool {
		n, _, e := syscall.Syscall(syscall.SYS_IOCTL, l, abi.Accept, syscall.O_NONBLOCK|syscall.O_CLOEXEC)
		switch e {
		case syscall.EAGAIN, syscall.EINTR:
			return e == syscall.EINTR
		case 0:
			fd = int(n)
		default:
			err = os.NewSyscallError("ioctl", e)
		}
		return true
	})
	if outer != nil {
		return -1, outer
	}
	return fd, err
}
