package main

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/ipc"
)

// What a robust program asks for beyond a short message without an end: a time limit,
// half a page of content, a descriptor; and what pipes and Unix sockets take for the
// same. They go last: rows of one program after the other.
func init() {
	never := func() ipc.Deadline { return ipc.Forever }
	// The clock is read in all three, so that they differ in what the kernel does.
	ignored := func() ipc.Deadline { second(); return ipc.Forever }
	rows = append(rows,
		row{"call-clock", true, func() { serveLimits(ignored, 8) }, func() (func(), []*os.File) { return callLimits(ignored, 8) }},
		row{"call-limit", true, func() { serveLimits(ignored, 8) }, func() (func(), []*os.File) { return callLimits(second, 8) }},
		row{"call-limits", true, func() { serveLimits(second, 8) }, func() (func(), []*os.File) { return callLimits(second, 8) }},
		row{"call-512", true, func() { serveLimits(never, long) }, func() (func(), []*os.File) { return callLimits(never, long) }},
		row{"call-512-limits", true, func() { serveLimits(second, long) }, func() (func(), []*os.File) { return callLimits(second, long) }},
		row{"pipe-512", false, func() { echo(3, 4) }, callPipeLong},
		row{"unix-512", false, func() { echo(3, 3) }, callUnixLong},
		row{"call-fd", true, serveFiles, callFiles},
		row{"unix-fd", false, serveRights, callRights},
	)
}

const long = ipc.LongBytes

func second() ipc.Deadline { return ipc.After(time.Second) }

// serveLimits answers with as many bytes as it is asked with.
func serveLimits(limit func() ipc.Deadline, n int) {
	m := ipc.NewMessage()
	again := func(err error) bool { return err == syscall.EINTR || err == syscall.ETIMEDOUT }
	err := ipc.Receiver(3).RecvRaw(m, limit())
	for {
		if again(err) {
			err = ipc.Receiver(3).RecvRaw(m, limit())
			continue
		}
		check(err)
		m.Resize(n)
		m.Bytes()[0]++
		err = ipc.Receiver(3).ReplyRecvRaw(m, limit())
	}
}

func callLimits(limit func() ipc.Deadline, n int) (func(), []*os.File) {
	r, s, err := ipc.New(ipc.CloseOnExec)
	check(err)
	m := ipc.NewMessage()
	return func() {
		m.Resize(n)
		m.Bytes()[n-1]++
		if err := s.CallRaw(m, limit()); err != syscall.EINTR {
			check(err)
		}
	}, []*os.File{os.NewFile(uintptr(r), "receiver")}
}

// whole reads or writes all of b.
func whole(f func(int, []byte) (int, error), fd int, b []byte) {
	for len(b) > 0 {
		n, err := f(fd, b)
		if err == nil && n <= 0 {
			os.Exit(0) // the other end is gone
		}
		check(err)
		b = b[n:]
	}
}

func echo(in, out int) {
	b := make([]byte, long)
	for {
		whole(syscall.Read, in, b)
		whole(syscall.Write, out, b)
	}
}

func callPipeLong() (func(), []*os.File) {
	var to, from [2]int
	check(syscall.Pipe2(to[:], syscall.O_CLOEXEC))
	check(syscall.Pipe2(from[:], syscall.O_CLOEXEC))
	b := make([]byte, long)
	return func() {
		whole(syscall.Write, to[1], b)
		whole(syscall.Read, from[0], b)
	}, []*os.File{os.NewFile(uintptr(to[0]), "in"), os.NewFile(uintptr(from[1]), "out")}
}

func callUnixLong() (func(), []*os.File) {
	fds := sockets()
	b := make([]byte, long)
	return func() {
		whole(syscall.Write, fds[0], b)
		whole(syscall.Read, fds[0], b)
	}, []*os.File{os.NewFile(uintptr(fds[1]), "socket")}
}

func sockets() [2]int {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	check(err)
	return fds
}

// serveFiles closes the descriptor that comes with each call.
func serveFiles() {
	m := ipc.NewMessage()
	check(ipc.Receiver(3).RecvRaw(m, ipc.Forever))
	for {
		if m.Files() != 1 {
			check(fmt.Errorf("%d descriptors came, not 1", m.Files()))
		}
		check(syscall.Close(m.FD(0)))
		m.Resize(8)
		if ipc.Receiver(3).ReplyRecvRaw(m, ipc.Forever) == syscall.EINTR {
			check(ipc.Receiver(3).RecvRaw(m, ipc.Forever))
		}
	}
}

func callFiles() (func(), []*os.File) {
	r, s, err := ipc.New(ipc.CloseOnExec)
	check(err)
	m := ipc.NewMessage()
	return func() {
		m.Resize(8)
		check(m.Attach(0))
		if err := s.CallRaw(m, ipc.Forever); err != syscall.EINTR {
			check(err)
		}
	}, []*os.File{os.NewFile(uintptr(r), "receiver")}
}

func serveRights() {
	b, control := make([]byte, 8), make([]byte, unix.CmsgSpace(4))
	for {
		n, c, _, _, err := unix.Recvmsg(3, b, control, unix.MSG_CMSG_CLOEXEC)
		check(err)
		if n == 0 {
			os.Exit(0)
		}
		at := unix.CmsgLen(0)
		if c < unix.CmsgLen(4) {
			check(fmt.Errorf("%d bytes came beside the message", c))
		}
		// The number is an int in the host's order: little-endian.
		fd := int(control[at]) | int(control[at+1])<<8
		check(unix.Close(fd))
		whole(syscall.Write, 3, b)
	}
}

func callRights() (func(), []*os.File) {
	fds := sockets()
	b, rights := make([]byte, 8), unix.UnixRights(0)
	return func() {
		check(unix.Sendmsg(fds[0], b, rights, nil, 0))
		whole(syscall.Read, fds[0], b)
	}, []*os.File{os.NewFile(uintptr(fds[1]), "socket")}
}
