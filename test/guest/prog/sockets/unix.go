package main

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"

	"hardtack/test/guest/gt"

	"golang.org/x/sys/unix"
)

func unixStream(t *gt.T) {
	a, b := pair(t, unix.SOCK_STREAM)
	send(t, "send", a, "hello", 0)
	send(t, "send", a, " world", 0)
	recv(t, "peek", b, 5, unix.MSG_PEEK)
	recv(t, "peek more", b, 100, unix.MSG_PEEK)
	recv(t, "two messages flow together", b, 8, 0)
	recv(t, "the rest", b, 8, 0)
	recv(t, "empty, don't wait", b, 8, unix.MSG_DONTWAIT)
	n, _ := unix.IoctlGetInt(b, unix.TIOCINQ)
	t.Say("available %d", n)
	send(t, "back", b, "reply", 0)
	n, _ = unix.IoctlGetInt(a, unix.TIOCINQ)
	t.Say("available %d", n)
	recv(t, "truncate drops nothing from a stream", a, 2, unix.MSG_TRUNC)
	recv(t, "wait for all", a, 3, unix.MSG_WAITALL)
	sa, err := unix.Getsockname(a)
	t.Say("an unnamed socket: %T %s", sa, gt.Name(err))
	kind, _ := unix.GetsockoptInt(a, unix.SOL_SOCKET, unix.SO_TYPE)
	domain, _ := unix.GetsockoptInt(a, unix.SOL_SOCKET, unix.SO_DOMAIN)
	t.Say("type %d domain %d", kind, domain)
	w, err := unix.Writev(a, [][]byte{[]byte("v1 "), []byte("v2")})
	t.Say("writev %d %s", w, gt.Name(err))
	buf := make([]byte, 16)
	w, err = unix.Read(b, buf)
	t.Say("read %q %s", buf[:w], gt.Name(err))
	closeAll(a, b)
}

func unixHalfClose(t *gt.T) {
	signal.Ignore(unix.SIGPIPE)
	a, b := pair(t, unix.SOCK_STREAM)
	send(t, "before", a, "tail", 0)
	t.Err("shutdown writing", unix.Shutdown(a, unix.SHUT_WR))
	send(t, "after", a, "x", 0)
	t.Say("the peer polls %s", pollBits(b, unix.POLLIN|unix.POLLOUT|unix.POLLRDHUP, 0))
	recv(t, "what was sent", b, 10, 0)
	recv(t, "end of file", b, 10, 0)
	send(t, "the other way", b, "still", 0)
	recv(t, "arrives", a, 10, 0)
	t.Err("shutdown reading", unix.Shutdown(a, unix.SHUT_RD))
	recv(t, "reading after it", a, 10, 0)
	send(t, "sending to it", b, "x", 0)
	t.Err("bad shutdown", unix.Shutdown(a, 9))
	unix.Close(b)
	recv(t, "closed peer", a, 10, 0)
	unix.Close(a)
	a, b = pair(t, unix.SOCK_STREAM)
	send(t, "unread", a, "data", 0)
	unix.Close(b)
	recv(t, "peer closed with unread data", a, 10, 0)
	recv(t, "again", a, 10, 0)
	send(t, "send", a, "x", 0)
	t.Say("polls %s", pollBits(a, unix.POLLIN|unix.POLLOUT|unix.POLLRDHUP, 0))
	unix.Close(a)
	fd := socket(t, unix.AF_UNIX, unix.SOCK_STREAM)
	t.Err("shutdown unconnected", unix.Shutdown(fd, unix.SHUT_WR))
	recv(t, "recv unconnected", fd, 1, 0)
	send(t, "send unconnected", fd, "x", 0)
	t.Say("polls %s", pollBits(fd, unix.POLLIN|unix.POLLOUT|unix.POLLRDHUP, 0))
	unix.Close(fd)
}

func name(sa unix.Sockaddr) string {
	if u, ok := sa.(*unix.SockaddrUnix); ok {
		return "unix " + strings.ReplaceAll(u.Name, "\x00", "@")
	}
	return "other"
}

func unixNames(t *gt.T) {
	connect := func(what, path string, kind int) int {
		fd := socket(t, unix.AF_UNIX, kind)
		t.Err("connect "+what, unix.Connect(fd, &unix.SockaddrUnix{Name: path}))
		return fd
	}
	for _, path := range []string{"sock", "@gt-abstract"} {
		l := socket(t, unix.AF_UNIX, unix.SOCK_STREAM)
		t.Err("bind "+path, unix.Bind(l, &unix.SockaddrUnix{Name: path}))
		unix.Close(connect("before listen", path, unix.SOCK_STREAM))
		t.Err("listen", unix.Listen(l, 2))
		c := connect("", path, unix.SOCK_STREAM)
		s, sa, err := unix.Accept4(l, unix.SOCK_CLOEXEC)
		t.Say("accept from %q %s", name(sa), gt.Name(err))
		sa, _ = unix.Getsockname(s)
		t.Say("the server's name %q", name(sa))
		sa, _ = unix.Getpeername(c)
		t.Say("the client's peer %q", name(sa))
		sa, _ = unix.Getpeername(s)
		t.Say("the server's peer %q", name(sa))
		send(t, "send", c, "hi", 0)
		recv(t, "recv", s, 10, 0)
		t.Err("connect again", unix.Connect(c, &unix.SockaddrUnix{Name: path}))
		second := socket(t, unix.AF_UNIX, unix.SOCK_STREAM)
		t.Err("bind again", unix.Bind(second, &unix.SockaddrUnix{Name: path}))
		unix.Close(connect("datagram", path, unix.SOCK_DGRAM))
		closeAll(l, c, s, second)
		unix.Close(connect("after close", path, unix.SOCK_STREAM))
	}
	var st unix.Stat_t
	unix.Stat("sock", &st)
	t.Say("the name stays, mode %o", st.Mode)
	_, err := unix.Open("sock", unix.O_RDWR, 0)
	t.Err("open it", err)
	unix.Close(connect("missing", "none", unix.SOCK_STREAM))
	unix.Close(connect("missing abstract", "@none", unix.SOCK_STREAM))
	fd, _ := unix.Open("plain", unix.O_CREAT, 0o644)
	unix.Close(fd)
	unix.Close(connect("a plain file", "plain", unix.SOCK_STREAM))
	l := socket(t, unix.AF_UNIX, unix.SOCK_STREAM)
	t.Err("listen unbound", unix.Listen(l, 1))
	t.Err("bind to a missing directory", unix.Bind(l, &unix.SockaddrUnix{Name: "none/s"}))
	t.Err("bind to a file", unix.Bind(l, &unix.SockaddrUnix{Name: "plain"}))
	_, err = gt.Sys(unix.SYS_BIND, uintptr(l), 8, 10)
	t.Err("bind to a wild pointer", err)
	_, err = gt.Sys(unix.SYS_BIND, uintptr(l), 8, 1000)
	t.Err("bind to a long name", err)
	raw := []byte{1, 0}
	_, err = gt.Sys(unix.SYS_BIND, uintptr(l), gt.Addr(&raw[0]), 2)
	t.Err("autobind", err)
	sa, _ := unix.Getsockname(l)
	t.Say("an abstract name of %d bytes", len(sa.(*unix.SockaddrUnix).Name))
	unix.Close(l)
}

func unixDatagram(t *gt.T) {
	a, b := pair(t, unix.SOCK_DGRAM)
	send(t, "one", a, "first", 0)
	send(t, "two", a, "second", 0)
	send(t, "empty", a, "", 0)
	recv(t, "one", b, 100, 0)
	recv(t, "cut", b, 3, 0)
	recv(t, "empty", b, 10, 0)
	recv(t, "none", b, 10, unix.MSG_DONTWAIT)
	send(t, "long", a, "0123456789", 0)
	recv(t, "peek the length", b, 4, unix.MSG_PEEK|unix.MSG_TRUNC)
	_, _, flags, _, err := unix.Recvmsg(b, make([]byte, 4), nil, 0)
	t.Say("truncated %v %s", flags&unix.MSG_TRUNC != 0, gt.Name(err))
	unix.Close(b)
	send(t, "to a closed one", a, "x", 0)
	unix.Close(a)
	s := socket(t, unix.AF_UNIX, unix.SOCK_DGRAM)
	t.Require("bind", unix.Bind(s, &unix.SockaddrUnix{Name: "dg"}))
	c := socket(t, unix.AF_UNIX, unix.SOCK_DGRAM)
	t.Require("bind", unix.Bind(c, &unix.SockaddrUnix{Name: "@gt-client"}))
	t.Err("sendto", unix.Sendto(c, []byte("question"), 0, &unix.SockaddrUnix{Name: "dg"}))
	buf := make([]byte, 20)
	n, from, err := unix.Recvfrom(s, buf, 0)
	t.Say("recvfrom %q from %q %s", buf[:n], name(from), gt.Name(err))
	t.Err("answer", unix.Sendto(s, []byte("answer"), 0, from))
	recv(t, "answer", c, 20, 0)
	t.Err("sendto nowhere", unix.Sendto(c, []byte("x"), 0, &unix.SockaddrUnix{Name: "none"}))
	t.Err("listen", unix.Listen(s, 1))
	t.Err("connect", unix.Connect(c, &unix.SockaddrUnix{Name: "dg"}))
	send(t, "connected send", c, "more", 0)
	recv(t, "recv", s, 20, 0)
	other := socket(t, unix.AF_UNIX, unix.SOCK_DGRAM)
	unix.Connect(s, &unix.SockaddrUnix{Name: "@gt-client"})
	t.Err("a stranger to a connected socket", unix.Sendto(other, []byte("x"), 0, &unix.SockaddrUnix{Name: "dg"}))
	closeAll(s, c, other)
	a, b = pair(t, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK)
	sent := 0
	for sent < 10000 && unix.Sendto(a, make([]byte, 100), 0, nil) == nil {
		sent++
	}
	t.Say("the queue has an end: %v", sent > 0 && sent < 10000)
	closeAll(a, b)
}

func unixSeqpacket(t *gt.T) {
	a, b := pair(t, unix.SOCK_SEQPACKET)
	send(t, "one", a, "first", 0)
	send(t, "two", a, "second", 0)
	recv(t, "one", b, 100, 0)
	recv(t, "cut", b, 3, 0)
	recv(t, "none", b, 3, unix.MSG_DONTWAIT)
	unix.Close(a)
	recv(t, "end", b, 3, 0)
	unix.Close(b)
	l := socket(t, unix.AF_UNIX, unix.SOCK_SEQPACKET)
	unix.Bind(l, &unix.SockaddrUnix{Name: "sp"})
	t.Err("listen", unix.Listen(l, 1))
	c := socket(t, unix.AF_UNIX, unix.SOCK_SEQPACKET)
	t.Err("connect", unix.Connect(c, &unix.SockaddrUnix{Name: "sp"}))
	s, _, err := unix.Accept(l)
	t.Err("accept", err)
	send(t, "send", s, "packet", 0)
	recv(t, "recv", c, 10, 0)
	closeAll(l, c, s)
}

func unixRights(t *gt.T) {
	a, b := pair(t, unix.SOCK_STREAM)
	fd, _ := unix.Open("f", unix.O_CREAT|unix.O_RDWR, 0o644)
	unix.Write(fd, []byte("passed file"))
	n, err := unix.SendmsgN(a, []byte("with"), unix.UnixRights(fd, fd), nil, 0)
	t.Say("send %d %s", n, gt.Name(err))
	unix.Close(fd)
	send(t, "plain data behind", a, "behind", 0)
	receive := func(what string, room, flags int) []int {
		buf, oob := make([]byte, 100), make([]byte, room)
		n, oobn, got, _, err := unix.Recvmsg(b, buf, oob, flags)
		var fds []int
		if messages, perr := unix.ParseSocketControlMessage(oob[:oobn]); perr == nil {
			for _, m := range messages {
				more, _ := unix.ParseUnixRights(&m)
				fds = append(fds, more...)
			}
		}
		t.Say("%s: %q, %d descriptors, control cut %v %s", what, buf[:max(n, 0)], len(fds), got&unix.MSG_CTRUNC != 0, gt.Name(err))
		return fds
	}
	fds := receive("receive", 100, unix.MSG_CMSG_CLOEXEC)
	if len(fds) == 2 {
		buf := make([]byte, 20)
		n, _ = unix.Pread(fds[0], buf, 0)
		cl, _ := unix.FcntlInt(uintptr(fds[0]), unix.F_GETFD, 0)
		t.Say("it reads %q, cloexec %d", buf[:n], cl)
		unix.Seek(fds[0], 3, 0)
		pos, _ := unix.Seek(fds[1], 0, unix.SEEK_CUR)
		t.Say("one description: offset %d", pos)
		closeAll(fds...)
	}
	receive("then", 100, 0)
	p := make([]int, 2)
	unix.Pipe(p)
	unix.SendmsgN(a, []byte("1"), unix.UnixRights(p[0], p[1]), nil, 0)
	closeAll(receive("room for one", unix.CmsgLen(4), 0)...)
	unix.SendmsgN(a, []byte("2"), unix.UnixRights(p[0]), nil, 0)
	receive("no room", 0, 0)
	unix.SendmsgN(a, []byte("3"), unix.UnixRights(p[1]), nil, 0)
	recv(t, "plain recv drops them", b, 5, 0)
	_, err = unix.SendmsgN(a, []byte("4"), unix.UnixRights(999), nil, 0)
	t.Err("send a closed descriptor", err)
	many := make([]int, 254)
	for i := range many {
		many[i] = p[0]
	}
	_, err = unix.SendmsgN(a, []byte("5"), unix.UnixRights(many...), nil, 0)
	t.Err("254 descriptors", err)
	_, err = unix.SendmsgN(a, []byte("6"), unix.UnixRights(many[:253]...), nil, 0)
	t.Err("253 descriptors", err)
	closeAll(receive("they come", 4096, 0)...)
	// A descriptor in flight keeps its file open; the socket's end closes it.
	unix.SendmsgN(a, []byte("7"), unix.UnixRights(p[1]), nil, 0)
	unix.Close(p[1])
	t.Say("the writer is in flight: %q", pollBits(p[0], unix.POLLIN, 0))
	closeAll(a, b)
	t.Say("it is gone with the socket: %q", pollBits(p[0], unix.POLLIN, 1000))
	unix.Close(p[0])
	// A socket that holds itself is still collected; here it must not hang.
	a, b = pair(t, unix.SOCK_STREAM)
	unix.SendmsgN(a, []byte("8"), unix.UnixRights(a, b), nil, 0)
	closeAll(a, b)
	t.Say("a circle is closed")
}

func credentialsChild([]string) {
	unix.SetsockoptInt(3, unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
	unix.Write(3, []byte("from the child"))
	time.Sleep(50 * time.Millisecond)
}

func unixCredentials(t *gt.T) {
	a, b := pair(t, unix.SOCK_STREAM)
	c, err := unix.GetsockoptUcred(a, unix.SOL_SOCKET, unix.SO_PEERCRED)
	t.Require("SO_PEERCRED", err)
	t.Say("peer is us %v, uid right %v", int(c.Pid) == unix.Getpid(), int(c.Uid) == unix.Getuid())
	t.Err("SO_PASSCRED", unix.SetsockoptInt(b, unix.SOL_SOCKET, unix.SO_PASSCRED, 1))
	arg := gt.Self("credentials")
	cmd := exec.Command(arg[0], arg[1:]...)
	cmd.ExtraFiles = []*os.File{os.NewFile(uintptr(a), "a")}
	t.Require("child", cmd.Start())
	credentials := func(what string) {
		buf, oob := make([]byte, 100), make([]byte, 100)
		n, oobn, _, _, err := unix.Recvmsg(b, buf, oob, 0)
		t.Say("%s: %q %s", what, buf[:max(n, 0)], gt.Name(err))
		messages, _ := unix.ParseSocketControlMessage(oob[:oobn])
		for _, m := range messages {
			if c, err := unix.ParseUnixCredentials(&m); err == nil {
				t.Say("  the child's %v, ours %v, uid right %v", int(c.Pid) == cmd.Process.Pid, int(c.Pid) == unix.Getpid(), int(c.Uid) == unix.Getuid())
			}
		}
	}
	credentials("the sender's, unasked")
	cmd.Wait()
	n, err := unix.SendmsgN(a, []byte("explicit"), unix.UnixCredentials(&unix.Ucred{Pid: int32(unix.Getpid()), Uid: uint32(unix.Getuid()), Gid: uint32(unix.Getgid())}), nil, 0)
	t.Say("send %d %s", n, gt.Name(err))
	credentials("explicit")
	_, err = unix.SendmsgN(a, []byte("x"), unix.UnixCredentials(&unix.Ucred{Pid: 999999}), nil, 0)
	t.Err("a process that is not", err)
	closeAll(b)
	cmd.ExtraFiles[0].Close()
}

func unixBlocking(t *gt.T) {
	a, b := pair(t, unix.SOCK_STREAM)
	gt.Later(func() { unix.Write(a, []byte("x")) })
	recv(t, "woken by data", b, 4, 0)
	got := make(chan int)
	go func() {
		total, buf := 0, make([]byte, 1000)
		for {
			n, err := unix.Read(b, buf)
			if n <= 0 || err != nil {
				got <- total
				return
			}
			total += n
		}
	}()
	n, err := unix.Write(a, bytes.Repeat([]byte("z"), 3000000))
	t.Say("a long write %d %s", n, gt.Name(err))
	unix.Shutdown(a, unix.SHUT_WR)
	t.Say("all came: %d", <-got)
	gt.Later(func() { unix.Shutdown(a, unix.SHUT_RD) })
	recv(t, "woken by shutdown", a, 4, 0)
	closeAll(a, b)
	a, b = pair(t, unix.SOCK_STREAM)
	tv := unix.NsecToTimeval(40e6)
	t.Err("SO_RCVTIMEO", unix.SetsockoptTimeval(a, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv))
	began := time.Now()
	recv(t, "time-out", a, 4, 0)
	t.Say("it took that: %v", time.Since(began) >= 39*time.Millisecond)
	closeAll(a, b)
	l := socket(t, unix.AF_UNIX, unix.SOCK_STREAM)
	unix.Bind(l, &unix.SockaddrUnix{Name: "s"})
	unix.Listen(l, 1)
	gt.Later(func() {
		c := socket(t, unix.AF_UNIX, unix.SOCK_STREAM)
		unix.Connect(c, &unix.SockaddrUnix{Name: "s"})
		unix.Write(c, []byte("late"))
		unix.Close(c)
	})
	s, _, err := unix.Accept(l)
	t.Err("accept waits", err)
	recv(t, "and", s, 10, unix.MSG_WAITALL)
	closeAll(s, l)
}

func unixPoll(t *gt.T) {
	const all = unix.POLLIN | unix.POLLOUT | unix.POLLRDHUP
	a, b := pair(t, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
	t.Say("fresh: %s", pollBits(a, all, 0))
	unix.Write(b, []byte("x"))
	t.Say("data: %s", pollBits(a, all, 0))
	for {
		if _, err := unix.Write(a, make([]byte, 4096)); err != nil {
			t.Err("fill", err)
			break
		}
	}
	t.Say("full: %s", pollBits(a, all, 0))
	for {
		if n, err := unix.Read(b, make([]byte, 65536)); n <= 0 || err != nil {
			break
		}
	}
	t.Say("drained: %s", pollBits(a, all, 0))
	unix.Close(b)
	t.Say("peer closed: %s", pollBits(a, all, 0))
	unix.Close(a)
	l := socket(t, unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
	unix.Bind(l, &unix.SockaddrUnix{Name: "s"})
	unix.Listen(l, 0)
	t.Say("listening: %s", pollBits(l, all, 0))
	_, _, err := unix.Accept(l)
	t.Err("accept", err)
	c := socket(t, unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
	t.Err("connect", unix.Connect(c, &unix.SockaddrUnix{Name: "s"}))
	t.Say("connection waits: %s", pollBits(l, all, 0))
	d := socket(t, unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
	t.Err("connect to a full backlog", unix.Connect(d, &unix.SockaddrUnix{Name: "s"}))
	closeAll(c, d, l)
}
