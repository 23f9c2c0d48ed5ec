package main

import (
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os/signal"
	"sync"
	"time"

	"hardtack/test/guest/gt"

	"golang.org/x/sys/unix"
)

var loopback = [4]byte{127, 0, 0, 1}

// listener is a listening TCP socket on a port the system chose.
func listener(t *gt.T, backlog int) (fd, port int) {
	return listenerWith(t, backlog, unix.SO_REUSEADDR)
}

func listenerWith(t *gt.T, backlog, option int) (fd, port int) {
	fd = socket(t, unix.AF_INET, unix.SOCK_STREAM)
	t.Require("option", unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, 1))
	t.Require("bind", unix.Bind(fd, &unix.SockaddrInet4{Addr: loopback}))
	t.Require("listen", unix.Listen(fd, backlog))
	sa, err := unix.Getsockname(fd)
	t.Require("getsockname", err)
	return fd, sa.(*unix.SockaddrInet4).Port
}

func connect(t *gt.T, port int) int {
	fd := socket(t, unix.AF_INET, unix.SOCK_STREAM)
	t.Require("connect", unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: loopback}))
	return fd
}

// connection is a connected pair: client and server end.
func connection(t *gt.T) (c, s int) {
	l, port := listener(t, 1)
	c = connect(t, port)
	s, _, err := unix.Accept(l)
	t.Require("accept", err)
	unix.Close(l)
	return c, s
}

func tcp(t *gt.T) {
	c, s := connection(t)
	send(t, "send", c, "hello", 0)
	recv(t, "peek", s, 3, unix.MSG_PEEK)
	recv(t, "recv", s, 5, unix.MSG_WAITALL)
	recv(t, "empty", s, 5, unix.MSG_DONTWAIT)
	w, err := unix.Writev(s, [][]byte{[]byte("a"), []byte("bc"), []byte("def")})
	t.Say("writev %d %s", w, gt.Name(err))
	recv(t, "recv", c, 6, unix.MSG_WAITALL)
	gt.Later(func() { unix.Write(c, []byte("later")) })
	recv(t, "recv waits", s, 5, unix.MSG_WAITALL)
	send(t, "more", c, "ab", unix.MSG_MORE)
	send(t, "and the end", c, "cd", 0)
	recv(t, "recv", s, 4, unix.MSG_WAITALL)
	send(t, "dropped by MSG_TRUNC", c, "123456", 0)
	pollBits(s, unix.POLLIN, 1000)
	n, _, err := unix.Recvfrom(s, make([]byte, 6), unix.MSG_TRUNC|unix.MSG_WAITALL)
	t.Say("recv %d %s", n, gt.Name(err))
	t.Err("close", unix.Close(c))
	recv(t, "end of file", s, 5, 0)
	unix.Close(s)
}

func tcpNames(t *gt.T) {
	l, port := listener(t, 1)
	c := connect(t, port)
	s, from, err := unix.Accept(l)
	t.Err("accept", err)
	local, _ := unix.Getsockname(c)
	remote, _ := unix.Getpeername(s)
	a, b, f := local.(*unix.SockaddrInet4), remote.(*unix.SockaddrInet4), from.(*unix.SockaddrInet4)
	t.Say("client %v, ports agree %v", a.Addr, a.Port == b.Port && a.Port == f.Port && a.Port != 0)
	server, _ := unix.Getsockname(s)
	t.Say("the server keeps its port: %v", server.(*unix.SockaddrInet4).Port == port)
	_, err = unix.Getpeername(l)
	t.Err("the listener's peer", err)
	t.Err("listen on a connected one", unix.Listen(c, 1))
	t.Err("connect again", unix.Connect(c, &unix.SockaddrInet4{Port: port, Addr: loopback}))
	t.Err("bind a connected one", unix.Bind(c, &unix.SockaddrInet4{Addr: loopback}))
	fd := socket(t, unix.AF_INET, unix.SOCK_STREAM)
	t.Err("bind to a used port", unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: loopback}))
	t.Err("bind to a foreign address", unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{203, 0, 113, 1}}))
	sa, _ := unix.Getsockname(fd)
	t.Say("unbound %v %d", sa.(*unix.SockaddrInet4).Addr, sa.(*unix.SockaddrInet4).Port)
	raw := make([]byte, 16)
	raw[0] = unix.AF_UNIX
	_, err = gt.Sys(unix.SYS_BIND, uintptr(fd), gt.Addr(&raw[0]), 16)
	t.Err("bind to another family", err)
	raw[0] = unix.AF_INET
	_, err = gt.Sys(unix.SYS_BIND, uintptr(fd), gt.Addr(&raw[0]), 8)
	t.Err("bind to a short address", err)
	size := uint32(4)
	_, err = gt.Sys(unix.SYS_GETSOCKNAME, uintptr(c), gt.Addr(&raw[0]), gt.Addr(&size))
	t.Say("getsockname into 4 bytes: needs %d %s", size, gt.Name(err))
	closeAll(l, c, s, fd)
}

func tcpOptions(t *gt.T) {
	c, s := connection(t)
	options := []struct {
		name       string
		level, opt int
		value      int
	}{
		{"SO_REUSEADDR", unix.SOL_SOCKET, unix.SO_REUSEADDR, 1},
		{"SO_REUSEPORT", unix.SOL_SOCKET, unix.SO_REUSEPORT, 1},
		{"SO_KEEPALIVE", unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{"SO_BROADCAST", unix.SOL_SOCKET, unix.SO_BROADCAST, 1},
		{"SO_OOBINLINE", unix.SOL_SOCKET, unix.SO_OOBINLINE, 1},
		{"TCP_NODELAY", unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		{"TCP_CORK", unix.IPPROTO_TCP, unix.TCP_CORK, 1},
		{"TCP_KEEPIDLE", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 77},
		{"TCP_KEEPINTVL", unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 11},
		{"TCP_KEEPCNT", unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 4},
		{"TCP_USER_TIMEOUT", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 5000},
		{"IP_TTL", unix.IPPROTO_IP, unix.IP_TTL, 33},
		{"IP_TOS", unix.IPPROTO_IP, unix.IP_TOS, 16},
	}
	for _, o := range options {
		before, err := unix.GetsockoptInt(c, o.level, o.opt)
		if err != nil {
			t.Err("get "+o.name, err)
			continue
		}
		err = unix.SetsockoptInt(c, o.level, o.opt, o.value)
		after, _ := unix.GetsockoptInt(c, o.level, o.opt)
		t.Say("%s: %d, set %s, %d", o.name, before, gt.Name(err), after)
	}
	for _, o := range []struct {
		name string
		opt  int
	}{{"SO_TYPE", unix.SO_TYPE}, {"SO_PROTOCOL", unix.SO_PROTOCOL}, {"SO_DOMAIN", unix.SO_DOMAIN}, {"SO_ERROR", unix.SO_ERROR}, {"SO_ACCEPTCONN", unix.SO_ACCEPTCONN}} {
		v, err := unix.GetsockoptInt(c, unix.SOL_SOCKET, o.opt)
		t.Say("%s %d %s", o.name, v, gt.Name(err))
		t.Err("set "+o.name, unix.SetsockoptInt(c, unix.SOL_SOCKET, o.opt, 1))
	}
	for _, opt := range []int{unix.SO_RCVBUF, unix.SO_SNDBUF} {
		err := unix.SetsockoptInt(c, unix.SOL_SOCKET, opt, 20000)
		v, _ := unix.GetsockoptInt(c, unix.SOL_SOCKET, opt)
		t.Say("buffer %d %s", v, gt.Name(err))
	}
	t.Err("SO_LINGER", unix.SetsockoptLinger(c, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 3}))
	tv := unix.NsecToTimeval(1500e6)
	t.Err("SO_SNDTIMEO", unix.SetsockoptTimeval(c, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv))
	got, err := unix.GetsockoptTimeval(c, unix.SOL_SOCKET, unix.SO_SNDTIMEO)
	t.Say("%v %s", got.Nano(), gt.Name(err))
	info, err := unix.GetsockoptTCPInfo(c, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err == nil {
		t.Say("TCP_INFO state %d", info.State)
	} else {
		t.Err("TCP_INFO", err)
	}
	_, err = unix.GetsockoptInt(c, unix.SOL_SOCKET, 9999)
	t.Err("unknown option", err)
	_, err = unix.GetsockoptInt(c, 9999, 1)
	t.Say("unknown level fails: %v", err != nil)
	t.Err("set an unknown option", unix.SetsockoptInt(c, unix.IPPROTO_TCP, 9999, 1))
	_, err = gt.Sys(unix.SYS_SETSOCKOPT, uintptr(c), unix.SOL_SOCKET, unix.SO_KEEPALIVE, 8, 4)
	t.Err("wild pointer", err)
	one := []byte{1, 0, 0, 0}
	_, err = gt.Sys(unix.SYS_SETSOCKOPT, uintptr(c), unix.SOL_SOCKET, unix.SO_KEEPALIVE, gt.Addr(&one[0]), 2)
	t.Err("short value", err)
	closeAll(c, s)
}

func tcpConnect(t *gt.T) {
	l, port := listener(t, 1)
	unix.Close(l)
	c := socket(t, unix.AF_INET, unix.SOCK_STREAM)
	t.Err("nobody listens", unix.Connect(c, &unix.SockaddrInet4{Port: port, Addr: loopback}))
	t.Err("again", unix.Connect(c, &unix.SockaddrInet4{Port: port, Addr: loopback}))
	send(t, "send", c, "x", 0)
	recv(t, "recv", c, 1, 0)
	_, err := unix.Getpeername(c)
	t.Err("getpeername", err)
	t.Err("shutdown", unix.Shutdown(c, unix.SHUT_RDWR))
	unix.Close(c)
	c = socket(t, unix.AF_INET, unix.SOCK_STREAM)
	t.Say("fresh socket polls %s", pollBits(c, unix.POLLIN|unix.POLLOUT|unix.POLLRDHUP, 0))
	t.Err("wrong family", unix.Connect(c, &unix.SockaddrUnix{Name: "x"}))
	_, _, err = unix.Accept(c)
	t.Err("accept without listen", err)
	unix.Close(c)
	l, port = listener(t, 5)
	c = socket(t, unix.AF_INET, unix.SOCK_STREAM)
	t.Err("the wildcard means this machine", unix.Connect(c, &unix.SockaddrInet4{Port: port}))
	closeAll(c, l)
}

func tcpNonblock(t *gt.T) {
	l, port := listener(t, 1)
	c := socket(t, unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
	err := unix.Connect(c, &unix.SockaddrInet4{Port: port, Addr: loopback})
	t.Say("in progress or done: %v", err == nil || err == unix.EINPROGRESS)
	t.Say("polls %s", pollBits(c, unix.POLLOUT, 5000))
	v, err := unix.GetsockoptInt(c, unix.SOL_SOCKET, unix.SO_ERROR)
	t.Say("SO_ERROR %d %s", v, gt.Name(err))
	s, _, err := unix.Accept(l)
	t.Err("accept", err)
	recv(t, "nothing yet", c, 1, 0)
	closeAll(c, s, l)
	c = socket(t, unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
	err = unix.Connect(c, &unix.SockaddrInet4{Port: port, Addr: loopback})
	t.Say("in progress or refused: %v", err == unix.ECONNREFUSED || err == unix.EINPROGRESS)
	if err == unix.EINPROGRESS {
		pollBits(c, unix.POLLOUT, 5000)
		v, _ = unix.GetsockoptInt(c, unix.SOL_SOCKET, unix.SO_ERROR)
		t.Say("refused: %v", unix.Errno(v) == unix.ECONNREFUSED)
		v, _ = unix.GetsockoptInt(c, unix.SOL_SOCKET, unix.SO_ERROR)
		t.Say("then clear: %d", v)
	}
	unix.Close(c)
}

func tcpShutdown(t *gt.T) {
	signal.Ignore(unix.SIGPIPE)
	c, s := connection(t)
	send(t, "send", c, "last words", 0)
	t.Err("shutdown writing", unix.Shutdown(c, unix.SHUT_WR))
	send(t, "send after", c, "x", 0)
	recv(t, "recv", s, 10, unix.MSG_WAITALL)
	recv(t, "end of file", s, 10, 0)
	t.Say("polls %s", pollBits(s, unix.POLLIN|unix.POLLOUT|unix.POLLRDHUP, 1000))
	send(t, "answer", s, "answer", 0)
	recv(t, "recv", c, 6, unix.MSG_WAITALL)
	t.Err("server shuts down too", unix.Shutdown(s, unix.SHUT_WR))
	recv(t, "end of file", c, 6, 0)
	closeAll(c, s)
	c, s = connection(t)
	gt.Later(func() { unix.Shutdown(c, unix.SHUT_RD) })
	recv(t, "shutdown wakes a reader", c, 6, 0)
	closeAll(c, s)
	c, s = connection(t)
	gt.Later(func() { unix.Shutdown(c, unix.SHUT_RDWR) })
	recv(t, "both directions", s, 6, 0)
	closeAll(c, s)
	l, _ := listener(t, 1)
	gt.Later(func() { unix.Shutdown(l, unix.SHUT_RD) })
	_, _, err := unix.Accept(l)
	t.Err("shutdown wakes accept", err)
	unix.Close(l)
}

func tcpReset(t *gt.T) {
	signal.Ignore(unix.SIGPIPE)
	c, s := connection(t)
	t.Require("linger", unix.SetsockoptLinger(s, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}))
	unix.Close(s)
	t.Say("polls %s", pollBits(c, unix.POLLIN|unix.POLLRDHUP, 1000))
	recv(t, "reset by linger 0", c, 4, 0)
	recv(t, "then the end", c, 4, 0)
	send(t, "send", c, "x", 0)
	unix.Close(c)
	c, s = connection(t)
	unix.Write(c, []byte("unread"))
	pollBits(s, unix.POLLIN, 1000)
	unix.Close(s)
	pollBits(c, unix.POLLIN, 1000)
	recv(t, "reset by unread data", c, 4, 0)
	unix.Close(c)
	c, s = connection(t)
	unix.Close(s)
	pollBits(c, unix.POLLIN, 1000)
	send(t, "first send after close", c, "x", 0)
	time.Sleep(20 * time.Millisecond)
	send(t, "second", c, "x", 0)
	unix.Close(c)
}

func tcpAccept(t *gt.T) {
	l, port := listener(t, 8)
	unix.SetNonblock(l, true)
	_, _, err := unix.Accept(l)
	t.Err("nobody yet", err)
	t.Say("polls %q", pollBits(l, unix.POLLIN|unix.POLLOUT, 0))
	var cs []int
	for range 5 {
		cs = append(cs, connect(t, port))
	}
	for i, c := range cs {
		unix.Write(c, []byte{byte('0' + i)})
	}
	t.Say("polls %q", pollBits(l, unix.POLLIN|unix.POLLOUT, 1000))
	for range cs {
		pollBits(l, unix.POLLIN, 1000)
		s, _, err := unix.Accept4(l, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			t.Err("accept", err)
			continue
		}
		pollBits(s, unix.POLLIN, 1000)
		recv(t, "in order", s, 2, 0)
		fl, _ := unix.FcntlInt(uintptr(s), unix.F_GETFL, 0)
		t.Say("non-blocking %v", fl&unix.O_NONBLOCK != 0)
		unix.Close(s)
	}
	_, _, err = unix.Accept4(l, 1)
	t.Err("bad flag", err)
	closeAll(cs...)
	c := connect(t, port)
	unix.Close(l)
	pollBits(c, unix.POLLIN, 1000)
	recv(t, "the listener closes with a waiting connection", c, 1, 0)
	unix.Close(c)
}

func tcpReuse(t *gt.T) {
	l, port := listener(t, 1)
	c := connect(t, port)
	s, _, _ := unix.Accept(l)
	closeAll(s, l)
	recv(t, "end of file", c, 1, 0)
	unix.Close(c)
	// The server closed first: its port rests in TIME_WAIT.
	bind := func(what string, opt int) int {
		fd := socket(t, unix.AF_INET, unix.SOCK_STREAM)
		if opt != 0 {
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, opt, 1)
		}
		t.Err(what, unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: loopback}))
		return fd
	}
	a := bind("with SO_REUSEADDR", unix.SO_REUSEADDR)
	t.Err("listen", unix.Listen(a, 1))
	b := bind("a second listener with SO_REUSEADDR", unix.SO_REUSEADDR)
	closeAll(a, b)
	a, port = listenerWith(t, 8, unix.SO_REUSEPORT)
	b = bind("another with SO_REUSEPORT", unix.SO_REUSEPORT)
	t.Err("listen", unix.Listen(b, 8))
	d := bind("one without", 0)
	unix.SetNonblock(a, true)
	unix.SetNonblock(b, true)
	var cs []int
	for range 6 {
		cs = append(cs, connect(t, port))
	}
	got := 0
	for range 100 {
		for _, fd := range []int{a, b} {
			if s, _, err := unix.Accept(fd); err == nil {
				got++
				unix.Close(s)
			}
		}
		if got == len(cs) {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Say("both took %d together", got)
	closeAll(append(cs, a, b, d)...)
}

func tcpLarge(t *gt.T) {
	c, s := connection(t)
	const total = 8 << 20
	chunk := make([]byte, 100_000)
	for i := range chunk {
		chunk[i] = byte(i * 7)
	}
	var sent, got uint32
	var wg sync.WaitGroup
	count := 0
	wg.Add(1)
	go func() {
		defer wg.Done()
		buf := make([]byte, 30_001)
		for {
			n, err := unix.Read(s, buf)
			if n <= 0 || err != nil {
				return
			}
			got = crc32.Update(got, crc32.IEEETable, buf[:n])
			count += n
			unix.Write(s, buf[:1])
		}
	}()
	go io.Copy(io.Discard, reader(c))
	for left := total; left > 0; {
		part := chunk[:min(len(chunk), left)]
		n, err := unix.Write(c, part)
		if err != nil {
			t.Err("write", err)
			break
		}
		sent = crc32.Update(sent, crc32.IEEETable, part[:n])
		left -= n
	}
	unix.Shutdown(c, unix.SHUT_WR)
	wg.Wait()
	t.Say("%d bytes, the same: %v", count, sent == got)
	closeAll(s)
	time.Sleep(10 * time.Millisecond)
	unix.Close(c)
}

type reader int

func (r reader) Read(p []byte) (int, error) {
	n, err := unix.Read(int(r), p)
	if n <= 0 {
		return 0, io.EOF
	}
	return n, err
}

func tcpTimeouts(t *gt.T) {
	c, s := connection(t)
	tv := unix.NsecToTimeval(40e6)
	unix.SetsockoptTimeval(c, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	unix.SetsockoptTimeval(c, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv)
	began := time.Now()
	recv(t, "recv", c, 1, 0)
	t.Say("it took that: %v", time.Since(began) >= 39*time.Millisecond)
	var err error
	for range 10000 {
		if _, err = unix.Write(c, make([]byte, 65536)); err != nil {
			break
		}
	}
	t.Err("send", err)
	closeAll(c, s)
	l, _ := listener(t, 1)
	unix.SetsockoptTimeval(l, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	_, _, err = unix.Accept(l)
	t.Err("accept", err)
	unix.Close(l)
}

func tcpPoll(t *gt.T) {
	const all = unix.POLLIN | unix.POLLOUT | unix.POLLRDHUP
	c, s := connection(t)
	t.Say("fresh: %s", pollBits(c, all, 0))
	ep, _ := unix.EpollCreate1(0)
	unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, s, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET})
	wait := func(what string, timeout int) {
		ev := make([]unix.EpollEvent, 1)
		n, err := unix.EpollWait(ep, ev, timeout)
		t.Say("edge %s: %d %#x %s", what, n, ev[0].Events, gt.Name(err))
	}
	wait("first", 1000)
	wait("no more", 0)
	unix.Write(c, []byte("a"))
	wait("data", 1000)
	wait("no more", 0)
	unix.Write(c, []byte("b"))
	wait("more data", 1000)
	recv(t, "recv", s, 10, 0)
	unix.Shutdown(c, unix.SHUT_WR)
	wait("half closed", 1000)
	wait("no more", 0)
	unix.Close(ep)
	closeAll(c, s)
	c, s = connection(t)
	unix.SetNonblock(c, true)
	for {
		if _, err := unix.Write(c, make([]byte, 65536)); err != nil {
			t.Err("full", err)
			break
		}
	}
	t.Say("full: %q", pollBits(c, unix.POLLOUT, 0))
	go io.Copy(io.Discard, reader(s))
	t.Say("drained: %q", pollBits(c, unix.POLLOUT, 5000))
	unix.Close(c)
	time.Sleep(20 * time.Millisecond)
	unix.Close(s)
}

func tcpSplice(t *gt.T) {
	c, s := connection(t)
	p := make([]int, 2)
	t.Require("pipe", unix.Pipe2(p, unix.O_NONBLOCK))
	unix.SetNonblock(s, true)
	const flags = unix.SPLICE_F_NONBLOCK
	_, err := unix.Splice(s, nil, p[1], nil, 1<<20, flags)
	t.Err("nothing to splice", err)
	unix.Write(c, []byte("through a pipe"))
	pollBits(s, unix.POLLIN, 1000)
	n, err := unix.Splice(s, nil, p[1], nil, 1<<20, flags)
	t.Say("socket to pipe %d %s", n, gt.Name(err))
	n, err = unix.Splice(p[0], nil, s, nil, 100, flags)
	t.Say("pipe to socket %d %s", n, gt.Name(err))
	recv(t, "it came back", c, 14, unix.MSG_WAITALL)
	unix.Shutdown(c, unix.SHUT_WR)
	pollBits(s, unix.POLLIN, 1000)
	n, err = unix.Splice(s, nil, p[1], nil, 1<<20, flags)
	t.Say("end of file %d %s", n, gt.Name(err))
	fd, _ := unix.Open("f", unix.O_CREAT|unix.O_RDWR, 0o644)
	unix.Write(fd, []byte("from a file"))
	off := int64(5)
	sent, err := unix.Sendfile(s, fd, &off, 100)
	t.Say("sendfile %d, offset %d %s", sent, off, gt.Name(err))
	recv(t, "recv", c, 6, unix.MSG_WAITALL)
	closeAll(c, s, p[0], p[1], fd)
}

func tcpWild(t *gt.T) {
	c, s := connection(t)
	for _, w := range gt.Wild {
		_, err := gt.Sys(unix.SYS_SENDTO, uintptr(c), w.Addr, 10, unix.MSG_NOSIGNAL, 0, 0)
		t.Err("send from "+w.Name, err)
		unix.Write(s, []byte("x"))
		pollBits(c, unix.POLLIN, 1000)
		_, err = gt.Sys(unix.SYS_RECVFROM, uintptr(c), w.Addr, 1, unix.MSG_DONTWAIT, 0, 0)
		t.Err("recv into "+w.Name, err)
		_, err = gt.Sys(unix.SYS_SENDMSG, uintptr(c), w.Addr, 0)
		t.Err("sendmsg "+w.Name, err)
		_, err = gt.Sys(unix.SYS_CONNECT, uintptr(c), w.Addr, 16)
		t.Err("connect "+w.Name, err)
		_, err = gt.Sys(unix.SYS_GETPEERNAME, uintptr(c), w.Addr, w.Addr)
		t.Err("getpeername "+w.Name, err)
	}
	t.Say("still alive: %s", pollBits(c, unix.POLLOUT, 0))
	closeAll(c, s)
}

func udp(t *gt.T) {
	a, b := socket(t, unix.AF_INET, unix.SOCK_DGRAM), socket(t, unix.AF_INET, unix.SOCK_DGRAM)
	t.Require("bind", unix.Bind(a, &unix.SockaddrInet4{Addr: loopback}))
	sa, _ := unix.Getsockname(a)
	t.Err("sendto", unix.Sendto(b, []byte("first"), 0, sa))
	t.Err("sendto", unix.Sendto(b, []byte("second message"), 0, sa))
	t.Err("empty", unix.Sendto(b, nil, 0, sa))
	t.Say("polls %s", pollBits(a, unix.POLLIN|unix.POLLOUT, 1000))
	buf := make([]byte, 100)
	n, from, err := unix.Recvfrom(a, buf, 0)
	own, _ := unix.Getsockname(b)
	t.Say("recvfrom %q, from the sender %v %s", buf[:n], from.(*unix.SockaddrInet4).Port == own.(*unix.SockaddrInet4).Port, gt.Name(err))
	recv(t, "cut", a, 6, 0)
	recv(t, "empty", a, 6, 0)
	recv(t, "none", a, 6, unix.MSG_DONTWAIT)
	t.Err("answer", unix.Sendto(a, []byte("answer"), 0, from))
	recv(t, "answer", b, 10, 0)
	send(t, "send without address", b, "x", 0)
	t.Err("64 KiB", unix.Sendto(b, make([]byte, 65536), 0, sa))
	t.Err("65507", unix.Sendto(b, make([]byte, 65507), 0, sa))
	n, _, err = unix.Recvfrom(a, make([]byte, 70000), 0)
	t.Say("recv %d %s", n, gt.Name(err))
	t.Err("port 0", unix.Sendto(b, []byte("x"), 0, &unix.SockaddrInet4{Addr: loopback}))
	t.Err("listen", unix.Listen(a, 1))
	c := socket(t, unix.AF_INET, unix.SOCK_DGRAM)
	t.Err("bind to a used port", unix.Bind(c, sa))
	gt.Later(func() { unix.Sendto(b, []byte("late"), 0, sa) })
	recv(t, "recv waits", a, 10, 0)
	unix.Sendto(b, []byte("peeked"), 0, sa)
	recv(t, "peek", a, 3, unix.MSG_PEEK|unix.MSG_TRUNC)
	avail, _ := unix.IoctlGetInt(a, unix.TIOCINQ)
	t.Say("available %d", avail)
	recv(t, "recv", a, 10, 0)
	closeAll(a, b, c)
}

func udpConnected(t *gt.T) {
	a, b, c := socket(t, unix.AF_INET, unix.SOCK_DGRAM), socket(t, unix.AF_INET, unix.SOCK_DGRAM), socket(t, unix.AF_INET, unix.SOCK_DGRAM)
	unix.Bind(a, &unix.SockaddrInet4{Addr: loopback})
	unix.Bind(c, &unix.SockaddrInet4{Addr: loopback})
	sa, _ := unix.Getsockname(a)
	t.Err("connect", unix.Connect(b, sa))
	send(t, "send", b, "hello", 0)
	recv(t, "recv", a, 10, 0)
	own, _ := unix.Getsockname(b)
	unix.Sendto(c, []byte("stranger"), 0, own)
	recv(t, "strangers are not heard", b, 10, unix.MSG_DONTWAIT)
	peer, err := unix.Getpeername(b)
	t.Say("peer %v %s", peer.(*unix.SockaddrInet4).Port == sa.(*unix.SockaddrInet4).Port, gt.Name(err))
	unix.Close(a)
	send(t, "to a closed port", b, "x", 0)
	t.Say("polls %s", pollBits(b, unix.POLLIN, 1000))
	recv(t, "the answer is an error", b, 10, unix.MSG_DONTWAIT)
	closeAll(b, c)
}

func udpMany(t *gt.T) {
	a, b := socket(t, unix.AF_INET, unix.SOCK_DGRAM), socket(t, unix.AF_INET, unix.SOCK_DGRAM)
	unix.Bind(a, &unix.SockaddrInet4{Addr: loopback})
	sa, _ := unix.Getsockname(a)
	got := 0
	for i := range 1000 {
		if err := unix.Sendto(b, fmt.Appendf(nil, "%d", i), 0, sa); err != nil {
			t.Err("send", err)
			break
		}
		if i%10 == 9 {
			for range 10 {
				buf := make([]byte, 10)
				if pollBits(a, unix.POLLIN, 1000) == "" {
					break
				}
				if n, _, err := unix.Recvfrom(a, buf, 0); err == nil && string(buf[:n]) == fmt.Sprint(got) {
					got++
				}
			}
		}
	}
	t.Say("%d in order", got)
	closeAll(a, b)
}

func tcp6(t *gt.T) {
	l, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Err("socket", err)
		return
	}
	t.Err("bind", unix.Bind(l, &unix.SockaddrInet6{}))
	t.Err("listen", unix.Listen(l, 4))
	sa, _ := unix.Getsockname(l)
	port := sa.(*unix.SockaddrInet6).Port
	c := connect(t, port)
	s, from, err := unix.Accept(l)
	t.Say("an IPv4 client is %v %s", from.(*unix.SockaddrInet6).Addr, gt.Name(err))
	send(t, "send", c, "v4", 0)
	recv(t, "recv", s, 4, 0)
	closeAll(c, s)
	c = socket(t, unix.AF_INET6, unix.SOCK_STREAM)
	err = unix.Connect(c, &unix.SockaddrInet6{Port: port, Addr: [16]byte{15: 1}})
	t.Err("connect to ::1", err)
	closeAll(c, l)
}

func goNet(t *gt.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	t.Require("listen", err)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				io.Copy(c, c)
				c.Close()
			}()
		}
	}()
	var wg sync.WaitGroup
	var mu sync.Mutex
	good := 0
	for i := range 20 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Say("dial: %v", err)
				return
			}
			defer c.Close()
			for k := range 20 {
				text := fmt.Sprintf("message %d of %d", k, i)
				io.WriteString(c, text)
				buf := make([]byte, len(text))
				if _, err := io.ReadFull(c, buf); err != nil || string(buf) != text {
					t.Say("answer %q: %v", buf, err)
					return
				}
			}
			mu.Lock()
			good++
			mu.Unlock()
		}()
	}
	wg.Wait()
	t.Say("%d clients were answered", good)
	c, err := net.Dial("tcp", l.Addr().String())
	t.Require("dial", err)
	c.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
	_, err = c.Read(make([]byte, 1))
	ne, ok := err.(net.Error)
	t.Say("deadline: %v", ok && ne.Timeout())
	c.Close()
	l.Close()
}
