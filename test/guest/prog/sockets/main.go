// Program sockets tests unix sockets and TCP and UDP over the loopback.
package main

import (
	"hardtack/test/guest/gt"

	"golang.org/x/sys/unix"
)

func main() {
	gt.Child("credentials", credentialsChild)
	gt.Main(
		gt.Test{Name: "socket errors", Run: socketErrors},
		gt.Test{Name: "unix stream", Run: unixStream},
		gt.Test{Name: "unix half close", Run: unixHalfClose},
		gt.Test{Name: "unix names", Run: unixNames},
		gt.Test{Name: "unix datagram", Run: unixDatagram},
		gt.Test{Name: "unix seqpacket", Run: unixSeqpacket},
		gt.Test{Name: "unix descriptors", Run: unixRights},
		gt.Test{Name: "unix credentials", Run: unixCredentials},
		gt.Test{Name: "unix blocking", Run: unixBlocking},
		gt.Test{Name: "unix poll", Run: unixPoll},
		gt.Test{Name: "tcp", Run: tcp},
		gt.Test{Name: "tcp names", Run: tcpNames},
		gt.Test{Name: "tcp options", Run: tcpOptions},
		gt.Test{Name: "tcp connect errors", Run: tcpConnect},
		gt.Test{Name: "tcp non-blocking connect", Run: tcpNonblock},
		gt.Test{Name: "tcp shutdown", Run: tcpShutdown},
		gt.Test{Name: "tcp reset", Run: tcpReset},
		gt.Test{Name: "tcp backlog and accept", Run: tcpAccept},
		gt.Test{Name: "tcp reuse", Run: tcpReuse},
		gt.Test{Name: "tcp large transfer", Run: tcpLarge},
		gt.Test{Name: "tcp time-outs", Run: tcpTimeouts},
		gt.Test{Name: "tcp poll", Run: tcpPoll},
		gt.Test{Name: "tcp splice and sendfile", Run: tcpSplice},
		gt.Test{Name: "tcp wild pointers", Run: tcpWild},
		gt.Test{Name: "udp", Run: udp},
		gt.Test{Name: "udp connected", Run: udpConnected},
		gt.Test{Name: "udp many messages", Run: udpMany},
		gt.Test{Name: "tcp over IPv6", Run: tcp6},
		gt.Test{Name: "the Go library", Run: goNet},
	)
}

func closeAll(fds ...int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

func socket(t *gt.T, domain, kind int) int {
	fd, err := unix.Socket(domain, kind, 0)
	t.Require("socket", err)
	return fd
}

func pair(t *gt.T, kind int) (int, int) {
	p, err := unix.Socketpair(unix.AF_UNIX, kind, 0)
	t.Require("socketpair", err)
	return p[0], p[1]
}

// recv prints what one recvfrom gives.
func recv(t *gt.T, what string, fd, size, flags int) {
	buf := make([]byte, size)
	n, _, err := unix.Recvfrom(fd, buf, flags)
	if err != nil {
		t.Err(what, err)
		return
	}
	t.Say("%s: %d %q", what, n, buf[:min(n, size)])
}

func send(t *gt.T, what string, fd int, text string, flags int) {
	n, err := unix.SendmsgN(fd, []byte(text), nil, nil, flags|unix.MSG_NOSIGNAL)
	t.Say("%s: %d %s", what, n, gt.Name(err))
}

func pollBits(fd int, want int16, timeout int) string {
	fds := []unix.PollFd{{Fd: int32(fd), Events: want}}
	if _, err := unix.Poll(fds, timeout); err != nil {
		return gt.Name(err)
	}
	names := []struct {
		bit  int16
		name string
	}{{unix.POLLIN, "IN"}, {unix.POLLPRI, "PRI"}, {unix.POLLOUT, "OUT"}, {unix.POLLERR, "ERR"}, {unix.POLLHUP, "HUP"}, {unix.POLLRDHUP, "RDHUP"}}
	s := ""
	for _, n := range names {
		if fds[0].Revents&n.bit != 0 {
			s += n.name + " "
		}
	}
	return s
}

func socketErrors(t *gt.T) {
	try := func(what string, domain, kind, proto int) {
		fd, err := unix.Socket(domain, kind, proto)
		t.Err(what, err)
		if err == nil {
			unix.Close(fd)
		}
	}
	try("unknown family", 99, unix.SOCK_STREAM, 0)
	try("unknown type", unix.AF_INET, 99, 0)
	try("unknown flag", unix.AF_UNIX, unix.SOCK_STREAM|0x100000, 0)
	try("wrong protocol", unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_UDP)
	try("tcp", unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_TCP)
	try("udp", unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDP)
	try("unix with protocol", unix.AF_UNIX, unix.SOCK_STREAM, 5)
	_, err := unix.Socketpair(unix.AF_INET, unix.SOCK_STREAM, 0)
	t.Err("pair of tcp", err)
	fd, _ := unix.Open("f", unix.O_CREAT|unix.O_RDWR, 0o644)
	t.Err("listen on a file", unix.Listen(fd, 1))
	_, _, err = unix.Accept(fd)
	t.Err("accept on a file", err)
	_, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	t.Err("getsockopt on a file", err)
	t.Err("shutdown on a file", unix.Shutdown(fd, 0))
	_, _, err = unix.Recvfrom(fd, make([]byte, 1), 0)
	t.Err("recv on a file", err)
	unix.Close(fd)
	s := socket(t, unix.AF_INET, unix.SOCK_STREAM)
	var st unix.Stat_t
	unix.Fstat(s, &st)
	t.Say("a socket: %v", st.Mode&unix.S_IFMT == unix.S_IFSOCK)
	_, err = unix.Seek(s, 0, 0)
	t.Err("lseek", err)
	t.Err("fsync", unix.Fsync(s))
	t.Err("ftruncate", unix.Ftruncate(s, 0))
	unix.Close(s)
	s, _ = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	fl, _ := unix.FcntlInt(uintptr(s), unix.F_GETFL, 0)
	cl, _ := unix.FcntlInt(uintptr(s), unix.F_GETFD, 0)
	t.Say("flags %#x %d", fl, cl)
	unix.Close(s)
}
