package inet_test

import (
	"bytes"
	"crypto/rand"
	"os"
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/sock"
	. "hardtack/kernel/net/socktest"
)

func TestMain(m *testing.M) {
	n := inet.Init(inet.Config{Rand: rand.Reader, Log: os.Stderr})
	sock.Register(linux.AF_INET, n.Socket, nil)
	sock.Register(linux.AF_INET6, n.Socket, nil)
	sock.DeviceIoctl.Set(n.DeviceIoctl)
	os.Exit(m.Run())
}

// listen returns a socket that listens on 127.0.0.1, and its address.
func listen(t *T, backlog int) (*vfs.File, *sock.Addr) {
	l := t.Socket(linux.AF_INET, linux.SOCK_STREAM, 0)
	t.OK(S(l).Bind(t.C, l, nil, In4(127, 0, 0, 1, 0)), "bind")
	t.OK(S(l).Listen(t.C, backlog), "listen")
	return l, In4(127, 0, 0, 1, t.Port(l))
}

// pair returns two ends of a connection on 127.0.0.1.
func pair(t *T) (a, b *vfs.File) {
	l, addr := listen(t, 1)
	a = t.Socket(linux.AF_INET, linux.SOCK_STREAM, 0)
	t.OK(S(a).Connect(t.C, nil, addr, false), "connect")
	b, e := S(l).Accept(t.C, false, 0)
	t.OK(e, "accept")
	l.Put()
	return a, b
}

func TestLocalStream(tt *testing.T) {
	t := New(tt)
	a, b := pair(t)
	var la, pb sock.Addr
	t.OK(S(a).LocalAddr(&la), "getsockname")
	t.OK(S(b).PeerAddr(&pb), "getpeername")
	if !bytes.Equal(la.Bytes(), pb.Bytes()) || la.Len != 16 {
		t.Fatal(la.Bytes(), pb.Bytes())
	}
	t.Write(a, "hello")
	if s := t.Read(b, 100); s != "hello" {
		t.Fatal(s)
	}
	t.Want(S(a).Connect(t.C, nil, In4(127, 0, 0, 1, 9), false), linux.EISCONN, "connect again")
	t.OK(S(a).Shutdown(t.C, linux.SHUT_WR), "shutdown")
	if s := t.Read(b, 1); s != "" {
		t.Fatal(s)
	}
	if ev := Ready(b); ev&wait.RdHup == 0 || ev&wait.Hup != 0 {
		t.Fatalf("%#x", ev)
	}
	_, e := t.WriteErr(a, "x")
	t.Want(e, linux.EPIPE, "write after shutdown")
	t.Write(b, "reply")
	b.Put()
	if s := t.Read(a, 100); s != "reply" {
		t.Fatal(s)
	}
	if s := t.Read(a, 100); s != "" {
		t.Fatal(s)
	}
	if ev := Ready(a); ev&wait.Hup == 0 {
		t.Fatalf("%#x", ev)
	}
	a.Put()
}

func TestLocalReset(tt *testing.T) {
	t := New(tt)
	// Unread data at close resets.
	a, b := pair(t)
	t.Write(a, "never read")
	b.Put()
	if Ready(a)&wait.Err == 0 {
		t.Fatal("no POLLERR")
	}
	_, e := t.ReadErr(a, 1)
	t.Want(e, linux.ECONNRESET, "read")
	_, e = t.WriteErr(a, "x")
	t.Want(e, linux.EPIPE, "write")
	a.Put()
	// An orderly close: the first write is lost, the second fails.
	a, b = pair(t)
	b.Put()
	if n, e := t.WriteErr(a, "lost"); n != 4 || e != 0 {
		t.Fatal(n, e)
	}
	_, e = t.WriteErr(a, "x")
	t.Want(e, linux.EPIPE, "second write")
	if s := t.Read(a, 1); s != "" {
		t.Fatal("no end of file")
	}
	a.Put()
	// SO_LINGER 0 resets.
	a, b = pair(t)
	t.OK(S(b).SetOpt(t.C, linux.SOL_SOCKET, linux.SO_LINGER, []byte{1, 0, 0, 0, 0, 0, 0, 0}), "SO_LINGER")
	b.Put()
	var v [4]byte
	S(a).GetOpt(t.C, linux.SOL_SOCKET, linux.SO_ERROR, v[:])
	if x, _ := sock.Int(v[:]); linux.Errno(x) != linux.ECONNRESET {
		t.Fatal("SO_ERROR", x)
	}
	a.Put()
}

func TestLocalTransferBothWays(tt *testing.T) {
	t := New(tt)
	a, b := pair(t)
	transferBothWays(t, a, b, 3<<20)
	a.Put()
	b.Put()
}

func transferBothWays(t *T, a, b *vfs.File, size int) {
	data := make([]byte, size)
	rand.Read(data)
	send := func(f *vfs.File) func(*T) {
		return func(t *T) {
			for rest := data; len(rest) > 0; {
				n, e := f.Ops.Write(t.C, f, uio.Bytes(rest[:min(len(rest), 70000)]), 0)
				if e != 0 {
					t.Errorf("write: %v", e)
					return
				}
				rest = rest[n:]
			}
			S(f).Shutdown(t.C, linux.SHUT_WR)
		}
	}
	recv := func(f *vfs.File) func(*T) {
		return func(t *T) {
			var got []byte
			for {
				s, e := t.ReadErr(f, 33333)
				if e != 0 {
					t.Errorf("read: %v", e)
					return
				}
				if s == "" {
					break
				}
				got = append(got, s...)
			}
			if !bytes.Equal(got, data) {
				t.Errorf("data damaged: %d of %d bytes", len(got), len(data))
			}
		}
	}
	for _, d := range []<-chan struct{}{t.Go(send(a)), t.Go(send(b)), t.Go(recv(a)), t.Go(recv(b))} {
		t.Wait(d)
	}
}

func TestRefusedAndPrivileged(tt *testing.T) {
	t := New(tt)
	a := t.Socket(linux.AF_INET, linux.SOCK_STREAM, 0)
	t.Want(S(a).Connect(t.C, nil, In4(127, 0, 0, 1, 1), false), linux.ECONNREFUSED, "connect")
	// The socket can be used again.
	l, addr := listen(t, 1)
	t.OK(S(a).Connect(t.C, nil, addr, false), "connect again")
	l.Put()
	a.Put()
	a = t.Socket(linux.AF_INET, linux.SOCK_STREAM, 0)
	NonBlock(a)
	e := S(a).Connect(t.C, nil, In4(127, 0, 0, 1, 1), true)
	if e == linux.EINPROGRESS {
		t.Poll(a, wait.Err|wait.Hup)
		var v [4]byte
		S(a).GetOpt(t.C, linux.SOL_SOCKET, linux.SO_ERROR, v[:])
		x, _ := sock.Int(v[:])
		e = linux.Errno(x)
	}
	t.Want(e, linux.ECONNREFUSED, "non-blocking connect")
	a.Put()

	t.C.SetCred(&creds.Cred{UID: 1, EUID: 1, FSUID: 1})
	a = t.Socket(linux.AF_INET, linux.SOCK_STREAM, 0)
	t.Want(S(a).Bind(t.C, a, nil, In4(0, 0, 0, 0, 80)), linux.EACCES, "bind to port 80")
	a.Put()
	_, e = sock.New(t.C, linux.AF_INET, linux.SOCK_RAW, linux.IPPROTO_ICMP, 0)
	t.Want(e, linux.EPERM, "raw socket")
}

func TestListenerKinds(tt *testing.T) {
	t := New(tt)
	// A dual-stack listener takes IPv4 and IPv6.
	l := t.Socket(linux.AF_INET6, linux.SOCK_STREAM, 0)
	t.OK(S(l).Bind(t.C, l, nil, In6([16]byte{}, 0)), "bind")
	t.OK(S(l).Listen(t.C, 5), "listen")
	port := t.Port(l)
	again := t.Socket(linux.AF_INET, linux.SOCK_STREAM, 0)
	t.Want(S(again).Bind(t.C, again, nil, In4(0, 0, 0, 0, port)), linux.EADDRINUSE, "bind again")
	again.Put()
	a := t.Socket(linux.AF_INET, linux.SOCK_STREAM, 0)
	t.OK(S(a).Connect(t.C, nil, In4(127, 0, 0, 1, port), false), "v4")
	b := t.Socket(linux.AF_INET6, linux.SOCK_STREAM, 0)
	t.OK(S(b).Connect(t.C, nil, In6([16]byte{15: 1}, port), false), "v6")
	f, e := S(l).Accept(t.C, true, 0)
	t.OK(e, "accept")
	var p sock.Addr
	t.OK(S(f).PeerAddr(&p), "getpeername")
	if p.Len != 28 || p.B[18] != 0xff || p.B[20] != 127 {
		t.Fatal("not a mapped address", p.Bytes())
	}
	f.Put()
	l.Put()
	_, e = t.ReadErr(b, 1)
	t.Want(e, linux.ECONNRESET, "connection that was not accepted")
	a.Put()
	b.Put()
	// SO_REUSEPORT spreads.
	one := []byte{1, 0, 0, 0}
	var ls [2]*vfs.File
	port = 0
	for i := range ls {
		ls[i] = t.Socket(linux.AF_INET, linux.SOCK_STREAM, 0)
		t.OK(S(ls[i]).SetOpt(t.C, linux.SOL_SOCKET, linux.SO_REUSEPORT, one), "SO_REUSEPORT")
		t.OK(S(ls[i]).Bind(t.C, ls[i], nil, In4(127, 0, 0, 1, port)), "bind")
		t.OK(S(ls[i]).Listen(t.C, 5), "listen")
		port = t.Port(ls[i])
	}
	for range 4 {
		c := t.Socket(linux.AF_INET, linux.SOCK_STREAM, 0)
		t.OK(S(c).Connect(t.C, nil, In4(127, 0, 0, 1, port), false), "connect")
	}
	for i := range ls {
		for range 2 {
			_, e := S(ls[i]).Accept(t.C, true, 0)
			t.OK(e, "accept")
		}
	}
}

func TestBacklogOverflowWaits(tt *testing.T) {
	t := New(tt)
	l, addr := listen(t, 1)
	var cs []*vfs.File
	for i := range 4 {
		c := t.Socket(linux.AF_INET, linux.SOCK_STREAM, 0)
		if e := S(c).Connect(t.C, nil, addr, true); e != linux.EINPROGRESS {
			t.Fatal(e)
		}
		if ready := c.Ops.Ready(c)&wait.Out != 0; ready != (i < 2) {
			t.Errorf("connection %d: ready %v", i, ready)
		}
		cs = append(cs, c)
	}
	for range cs {
		t.Poll(l, wait.In)
		f, e := S(l).Accept(t.C, true, 0)
		t.OK(e, "accept")
		f.Put()
	}
	for _, c := range cs {
		t.Poll(c, wait.Out)
		if s := t.Read(c, 1); s != "" {
			t.Fatal(s)
		}
		c.Put()
	}
	l.Put()
}

func TestOptions(tt *testing.T) {
	t := New(tt)
	a := t.Socket(linux.AF_INET, linux.SOCK_STREAM, 0)
	set := func(level, name, v int32) linux.Errno {
		var b [4]byte
		sock.PutInt(b[:], v)
		return S(a).SetOpt(t.C, level, name, b[:])
	}
	get := func(level, name int32) int32 {
		var b [4]byte
		n, e := S(a).GetOpt(t.C, level, name, b[:])
		if n != 4 || e != 0 {
			t.Errorf("getsockopt %d %d: %d %v", level, name, n, e)
		}
		v, _ := sock.Int(b[:])
		return v
	}
	for _, x := range []struct{ level, name, v, want int32 }{
		{linux.SOL_SOCKET, linux.SO_REUSEADDR, 1, 1},
		{linux.SOL_SOCKET, linux.SO_KEEPALIVE, 1, 1},
		{linux.SOL_SOCKET, linux.SO_SNDBUF, 50000, 100000},
		{linux.SOL_SOCKET, linux.SO_RCVBUF, 1, linux.MinimumReceiveBuffer},
		{linux.IPPROTO_TCP, linux.TCP_NODELAY, 1, 1},
		{linux.IPPROTO_TCP, linux.TCP_CORK, 1, 1},
		{linux.IPPROTO_TCP, linux.TCP_KEEPIDLE, 30, 30},
		{linux.IPPROTO_TCP, linux.TCP_KEEPINTVL, 5, 5},
		{linux.IPPROTO_TCP, linux.TCP_KEEPCNT, 3, 3},
		{linux.IPPROTO_TCP, linux.TCP_USER_TIMEOUT, 5000, 5000},
		{linux.IPPROTO_TCP, linux.TCP_DEFER_ACCEPT, 1, 1},
		{linux.IPPROTO_TCP, linux.TCP_FASTOPEN, 5, 5},
		{linux.IPPROTO_IP, linux.IP_TOS, 16, 16},
		{linux.IPPROTO_IP, linux.IP_TTL, 7, 7},
	} {
		t.OK(set(x.level, x.name, x.v), "setsockopt")
		if v := get(x.level, x.name); v != x.want {
			t.Errorf("option %d %d is %d, want %d", x.level, x.name, v, x.want)
		}
	}
	t.Want(set(linux.IPPROTO_TCP, 9999, 1), linux.ENOPROTOOPT, "unknown option")
	t.Want(set(linux.SOL_SOCKET, 9999, 1), linux.ENOPROTOOPT, "unknown option")
	t.Want(set(12345, 1, 1), linux.ENOPROTOOPT, "unknown level")
	t.Want(S(a).SetOpt(t.C, linux.SOL_SOCKET, linux.SO_REUSEADDR, []byte{1}), linux.EINVAL, "short value")
	if v := get(linux.SOL_SOCKET, linux.SO_TYPE); v != linux.SOCK_STREAM {
		t.Error(v)
	}
	if v := get(linux.SOL_SOCKET, linux.SO_PROTOCOL); v != linux.IPPROTO_TCP {
		t.Error(v)
	}
	var b [256]byte
	if n, e := S(a).GetOpt(t.C, linux.IPPROTO_TCP, linux.TCP_INFO, b[:]); n != linux.SizeofTCPInfo || e != 0 || b[0] != linux.TCP_CLOSE {
		t.Error(n, e, b[0])
	}
	if n, e := S(a).GetOpt(t.C, linux.IPPROTO_TCP, linux.TCP_CONGESTION, b[:]); n != 16 || e != 0 || string(b[:6]) != "cubic\x00" {
		t.Error(n, e, b[:16])
	}
	a.Put()
}

func TestUDP(tt *testing.T) {
	t := New(tt)
	a, b := t.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0), t.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0)
	t.OK(S(a).Bind(t.C, a, nil, In4(127, 0, 0, 1, 0)), "bind")
	to := In4(127, 0, 0, 1, t.Port(a))
	n, e := t.Send(b, "datagram", &sock.Msg{To: to})
	if n != 8 || e != 0 {
		t.Fatal(n, e)
	}
	s, m, e := t.Recv(a, 4, linux.MSG_PEEK|linux.MSG_TRUNC)
	if s != "data" || e != 0 || m.OutFlags&linux.MSG_TRUNC == 0 || m.From.Len != 16 {
		t.Fatal(s, e, m.OutFlags, m.From.Len)
	}
	if s := t.Read(a, 100); s != "datagram" {
		t.Fatal(s)
	}
	_, e = t.Send(a, "back", &sock.Msg{To: &m.From})
	t.OK(e, "reply")
	if s := t.Read(b, 100); s != "back" {
		t.Fatal(s)
	}
	NonBlock(a)
	_, e = t.ReadErr(a, 1)
	t.Want(e, linux.EAGAIN, "read of nothing")
	t.OK(S(b).Connect(t.C, nil, In4(127, 0, 0, 1, 1), false), "connect")
	t.Write(b, "nobody there")
	t.Poll(b, wait.Err|wait.In)
	_, e = t.ReadErr(b, 1)
	t.Want(e, linux.ECONNREFUSED, "ICMP error")
	a.Put()
	b.Put()
}

func TestPing(tt *testing.T) {
	defer settings.PingGroupHi.Set(settings.PingGroupHi.Get())
	settings.PingGroupLo.Set(0)
	defer settings.PingGroupLo.Set(1)
	settings.PingGroupHi.Set(1 << 30)
	t := New(tt)
	a := t.Socket(linux.AF_INET, linux.SOCK_DGRAM, linux.IPPROTO_ICMP)
	_, e := t.Send(a, "\x08\x00\x00\x00\x00\x00\x00\x01payload", &sock.Msg{To: In4(127, 0, 0, 1, 0)})
	t.OK(e, "echo request")
	s := t.Read(a, 100)
	if len(s) != 15 || s[0] != 0 || s[8:] != "payload" {
		t.Fatalf("%q", s)
	}
	a.Put()
}

func TestRoundTripDoesNotAllocate(tt *testing.T) {
	t := New(tt)
	a, b := pair(t)
	buf := make([]byte, 64)
	var v uio.Vec
	if n := testing.AllocsPerRun(100, func() {
		v.InitBytes(buf[:5])
		a.Ops.Write(t.C, a, &v, 0)
		v.InitBytes(buf)
		b.Ops.Read(t.C, b, &v, 0)
	}); n != 0 {
		t.Fatal(n, "allocations")
	}
	a.Put()
	b.Put()
}

func TestAcceptWakesOne(tt *testing.T) {
	t := New(tt)
	l, addr := listen(t, 10)
	got := make(chan *vfs.File, 4)
	for range 2 {
		t.Go(func(t *T) {
			f, e := S(l).Accept(t.C, false, 0)
			t.OK(e, "accept")
			got <- f
		})
	}
	for range 2 {
		c := t.Socket(linux.AF_INET, linux.SOCK_STREAM, 0)
		t.OK(S(c).Connect(t.C, nil, addr, false), "connect")
	}
	for range 2 {
		select {
		case <-got:
		case <-time.After(time.Minute):
			t.Fatal("accept hangs")
		}
	}
}

func echo(t *T, f *vfs.File) {
	buf := make([]byte, 64)
	var v uio.Vec
	for {
		v.InitBytes(buf)
		n, e := f.Ops.Read(t.C, f, &v, 0)
		if n == 0 || e != 0 {
			return
		}
		v.InitBytes(buf[:n])
		f.Ops.Write(t.C, f, &v, 0)
	}
}

func benchRoundTrip(t *T, bb *testing.B, a, b *vfs.File) {
	done := t.Go(func(t *T) { echo(t, b) })
	bb.ReportAllocs()
	buf := make([]byte, 64)
	var v uio.Vec
	for bb.Loop() {
		v.InitBytes(buf[:5])
		a.Ops.Write(t.C, a, &v, 0)
		v.InitBytes(buf)
		a.Ops.Read(t.C, a, &v, 0)
	}
	a.Put()
	t.Wait(done)
}

func BenchmarkLocalRoundTrip(bb *testing.B) {
	t := New(bb)
	a, b := pair(t)
	benchRoundTrip(t, bb, a, b)
}

func BenchmarkLocalConnect(bb *testing.B) {
	t := New(bb)
	l, addr := listen(t, 10)
	bb.ReportAllocs()
	for bb.Loop() {
		c := t.Socket(linux.AF_INET, linux.SOCK_STREAM, 0)
		t.OK(S(c).Connect(t.C, nil, addr, false), "connect")
		f, e := S(l).Accept(t.C, false, 0)
		t.OK(e, "accept")
		c.Put()
		f.Put()
	}
	l.Put()
}

// BenchmarkStackRoundTrip goes through netstack: SO_BINDTODEVICE wants it.
func BenchmarkStackRoundTrip(bb *testing.B) {
	t := New(bb)
	l, addr := listen(t, 1)
	a := t.Socket(linux.AF_INET, linux.SOCK_STREAM, 0)
	t.OK(S(a).SetOpt(t.C, linux.SOL_SOCKET, linux.SO_BINDTODEVICE, []byte("lo")), "SO_BINDTODEVICE")
	t.OK(S(a).Connect(t.C, nil, addr, false), "connect")
	b, e := S(l).Accept(t.C, false, 0)
	t.OK(e, "accept")
	l.Put()
	benchRoundTrip(t, bb, a, b)
}
