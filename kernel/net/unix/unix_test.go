package unix_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/sock"
	. "hardtack/kernel/net/socktest"
	"hardtack/kernel/net/unix"
)

func TestMain(m *testing.M) {
	sock.Register(linux.AF_UNIX, unix.Create, unix.Pair)
	os.Exit(m.Run())
}

func TestStreamPair(tt *testing.T) {
	t := New(tt)
	a, b := t.Pair(linux.SOCK_STREAM)
	t.Write(a, "hello ")
	t.Write(a, "world")
	if s, _, e := t.Recv(b, 100, linux.MSG_PEEK); e != 0 || s != "hello world" {
		t.Fatal(s, e)
	}
	if s := t.Read(b, 7); s != "hello w" {
		t.Fatal(s)
	}
	if s := t.Read(b, 100); s != "orld" {
		t.Fatal(s)
	}
	NonBlock(b)
	_, e := t.ReadErr(b, 1)
	t.Want(e, linux.EAGAIN, "read of nothing")
	t.Want(S(a).Shutdown(t.C, linux.SHUT_WR), 0, "shutdown")
	if s := t.Read(b, 1); s != "" {
		t.Fatal("no end of file after shutdown")
	}
	if ev := Ready(b); ev&wait.RdHup == 0 || ev&wait.Hup != 0 {
		t.Fatalf("half closed: %#x", ev)
	}
	t.Write(b, "still")
	if s := t.Read(a, 10); s != "still" {
		t.Fatal(s)
	}
	_, e = t.WriteErr(a, "x")
	t.Want(e, linux.EPIPE, "write after shutdown")
	a.Put()
	if ev := Ready(b); ev&wait.Hup == 0 {
		t.Fatalf("closed: %#x", ev)
	}
	_, e = t.WriteErr(b, "x")
	t.Want(e, linux.EPIPE, "write after close")
	b.Put()
}

func TestCloseWithUnreadResets(tt *testing.T) {
	t := New(tt)
	a, b := t.Pair(linux.SOCK_STREAM)
	t.Write(a, "lost")
	b.Put()
	if Ready(a)&wait.Err == 0 {
		t.Fatal("no POLLERR")
	}
	_, e := t.ReadErr(a, 1)
	t.Want(e, linux.ECONNRESET, "read")
	if s := t.Read(a, 1); s != "" {
		t.Fatal("no end of file after the error")
	}
	a.Put()
}

func TestBlockingTransfer(tt *testing.T) {
	t := New(tt)
	a, b := t.Pair(linux.SOCK_STREAM)
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<17) // 2 MiB
	done := t.Go(func(t *T) {
		t.Write(a, string(big))
		a.Put()
	})
	var got []byte
	for {
		s := t.Read(b, 50000)
		if s == "" {
			break
		}
		got = append(got, s...)
	}
	t.Wait(done)
	if !bytes.Equal(got, big) {
		t.Fatal("data damaged")
	}
	b.Put()
	if n := sock.RingBytes.Used(); n != 0 {
		t.Fatal(n, "bytes of rings leaked")
	}
}

func TestWaitAllAndTimeout(tt *testing.T) {
	t := New(tt)
	a, b := t.Pair(linux.SOCK_STREAM)
	done := t.Go(func(t *T) {
		for _, x := range strings.Split("one two three", " ") {
			t.Write(a, x)
			time.Sleep(time.Millisecond)
		}
	})
	if s, _, e := t.Recv(b, 11, linux.MSG_WAITALL); e != 0 || s != "onetwothree" {
		t.Fatal(s, e)
	}
	t.Wait(done)
	var tv [16]byte
	sock.PutUint64(tv[8:], 5000)
	t.OK(S(b).SetOpt(t.C, linux.SOL_SOCKET, linux.SO_RCVTIMEO, tv[:]), "SO_RCVTIMEO")
	least := time.Hour
	var e linux.Errno
	for try := 0; try < 10 && least > time.Second; try++ {
		start := time.Now()
		_, e = t.ReadErr(b, 1)
		t.Want(e, linux.EAGAIN, "timed read")
		least = min(least, time.Since(start))
	}
	if least < 5*time.Millisecond || least > time.Second {
		t.Fatal(least)
	}
	t.C.SetInterrupted(true)
	_, e = t.ReadErr(b, 1)
	t.Want(e, linux.EINTR, "interrupted timed read")
	_, e = t.ReadErr(a, 1)
	t.Want(e, linux.ERESTARTSYS, "interrupted read")
}

func TestSeqpacketKeepsBoundaries(tt *testing.T) {
	t := New(tt)
	a, b := t.Pair(linux.SOCK_SEQPACKET)
	t.Write(a, "first")
	t.Write(a, "")
	t.Write(a, "third")
	s, m, e := t.Recv(b, 3, linux.MSG_TRUNC)
	if e != 0 || s != "fir" || m.OutFlags != linux.MSG_TRUNC {
		t.Fatal(s, e, m.OutFlags)
	}
	if s := t.Read(b, 10); s != "" {
		t.Fatal("empty message", s)
	}
	if s := t.Read(b, 10); s != "third" {
		t.Fatal(s)
	}
	a.Put()
	if s := t.Read(b, 10); s != "" {
		t.Fatal("end", s)
	}
}

func TestDatagrams(tt *testing.T) {
	t := New(tt)
	srv, cli := t.Socket(linux.AF_UNIX, linux.SOCK_DGRAM, 0), t.Socket(linux.AF_UNIX, linux.SOCK_DGRAM, 0)
	t.OK(S(srv).Bind(t.C, srv, nil, Abstract("dg")), "bind")
	t.Want(S(cli).Bind(t.C, cli, nil, Abstract("dg")), linux.EADDRINUSE, "second bind")
	_, e := t.Send(cli, "x", &sock.Msg{To: Abstract("nobody")})
	t.Want(e, linux.ECONNREFUSED, "send to nobody")
	_, e = t.Send(cli, "x", &sock.Msg{})
	t.Want(e, linux.ENOTCONN, "send without destination")
	t.OK(S(cli).Bind(t.C, cli, nil, Bytes([]byte{linux.AF_UNIX, 0})), "autobind")
	_, e = t.Send(cli, "ping", &sock.Msg{To: Abstract("dg")})
	t.OK(e, "sendto")
	s, m, e := t.Recv(srv, 100, 0)
	if e != 0 || s != "ping" || m.From.Len != 8 {
		t.Fatal(s, e, m.From.Len)
	}
	_, e = t.Send(srv, "pong", &sock.Msg{To: &m.From})
	t.OK(e, "reply")
	if s := t.Read(cli, 10); s != "pong" {
		t.Fatal(s)
	}
	_, e = t.Send(cli, strings.Repeat("x", 300000), &sock.Msg{To: Abstract("dg")})
	t.Want(e, linux.EMSGSIZE, "too long")

	// A full queue: not writable, EAGAIN, and room is announced.
	t.OK(S(cli).Connect(t.C, nil, Abstract("dg"), false), "connect")
	NonBlock(cli)
	n := 0
	for ; ; n++ {
		if _, e := t.WriteErr(cli, strings.Repeat("y", 1000)); e == linux.EAGAIN {
			break
		} else if e != 0 || n > 100000 {
			t.Fatal(e, n)
		}
	}
	if Ready(cli)&wait.Out != 0 {
		t.Fatal("writable with a full peer")
	}
	done := t.Go(func(t *T) { t.Poll(cli, wait.Out) })
	for i := 0; i < n; i++ {
		if s := t.Read(srv, 2000); len(s) != 1000 {
			t.Fatal(len(s))
		}
	}
	t.Wait(done)
	srv.Put()
	_, e = t.WriteErr(cli, "x")
	t.Want(e, linux.ECONNREFUSED, "peer closed")
	cli.Put()
}

func listener(t *T, typ int32, name string, backlog int) *vfs.File {
	l := t.Socket(linux.AF_UNIX, typ, 0)
	t.OK(S(l).Bind(t.C, l, nil, Abstract(name)), "bind")
	t.OK(S(l).Listen(t.C, backlog), "listen")
	return l
}

func TestListenConnectAccept(tt *testing.T) {
	t := New(tt)
	l := listener(t, linux.SOCK_STREAM, "lca", 1)
	c := t.Socket(linux.AF_UNIX, linux.SOCK_STREAM, 0)
	t.Want(S(c).Connect(t.C, nil, Abstract("none"), false), linux.ECONNREFUSED, "no listener")
	_, e := t.ReadErr(c, 1)
	t.Want(e, linux.EINVAL, "read unconnected")
	done := t.Go(func(t *T) {
		f, e := S(l).Accept(t.C, false, 0)
		t.OK(e, "accept")
		if s := t.Read(f, 10); s != "hi" {
			t.Error(s)
		}
		var b [12]byte
		n, e := S(f).GetOpt(t.C, linux.SOL_SOCKET, linux.SO_PEERCRED, b[:])
		if pid, _ := sock.Int(b[:]); n != 12 || e != 0 || pid != 100 {
			t.Error("SO_PEERCRED", n, e, pid)
		}
		t.Write(f, "bye")
		f.Put()
	})
	t.OK(S(c).Connect(t.C, nil, Abstract("lca"), false), "connect")
	t.Want(S(c).Connect(t.C, nil, Abstract("lca"), false), linux.EISCONN, "connect again")
	t.Write(c, "hi")
	if s := t.Read(c, 10) + t.Read(c, 10); s != "bye" {
		t.Fatal(s)
	}
	t.Wait(done)
	var a sock.Addr
	t.OK(S(c).PeerAddr(&a), "getpeername")
	if string(a.Bytes()[2:]) != "\x00lca" {
		t.Fatal(a.Bytes())
	}
	// The backlog of 1 takes two; the third waits for accept.
	var cs [3]*vfs.File
	for i := range cs {
		cs[i] = t.Socket(linux.AF_UNIX, linux.SOCK_STREAM, 0)
	}
	t.OK(S(cs[0]).Connect(t.C, nil, Abstract("lca"), true), "1")
	t.OK(S(cs[1]).Connect(t.C, nil, Abstract("lca"), true), "2")
	t.Want(S(cs[2]).Connect(t.C, nil, Abstract("lca"), true), linux.EAGAIN, "3")
	done = t.Go(func(t *T) { t.OK(S(cs[2]).Connect(t.C, nil, Abstract("lca"), false), "3 blocking") })
	time.Sleep(time.Millisecond)
	f, e := S(l).Accept(t.C, true, 0)
	t.OK(e, "accept")
	t.Wait(done)
	f.Put()
	// Closing the listener resets what was not accepted.
	l.Put()
	_, e = t.ReadErr(cs[2], 1)
	t.Want(e, linux.ECONNRESET, "not accepted")
	for _, f := range cs {
		f.Put()
	}
	c.Put()
}

func TestRights(tt *testing.T) {
	t := New(tt)
	a, b := t.Pair(linux.SOCK_STREAM)
	x, y := t.Pair(linux.SOCK_STREAM)
	t.Write(a, "before")
	y.Get()
	_, e := t.Send(a, "with", &sock.Msg{Control: sock.Control{Rights: []*vfs.File{y}}})
	t.OK(e, "send rights")
	t.Write(a, "after")
	y.Put() // the descriptor is closed; the message holds it
	s, m, e := t.Recv(b, 100, 0)
	if e != 0 || s != "beforewith" || len(m.Rights) != 1 || m.Rights[0] != y {
		t.Fatalf("%q %v %v", s, e, m.Rights)
	}
	if s := t.Read(b, 100); s != "after" {
		t.Fatal(s)
	}
	t.Write(x, "through")
	if s := t.Read(y, 10); s != "through" {
		t.Fatal(s)
	}
	if n := unix.InFlight(); n != 0 {
		t.Fatal(n)
	}
	// Read without room for them drops them.
	y.Get()
	t.Send(a, "z", &sock.Msg{Control: sock.Control{Rights: []*vfs.File{y}}})
	y.Put()
	t.Read(b, 1)
	if _, e := t.WriteErr(x, "x"); e != linux.EPIPE {
		t.Fatal("a dropped file lives on")
	}
	for _, f := range []*vfs.File{a, b, x} {
		f.Put()
	}
}

func TestGarbageCycle(tt *testing.T) {
	t := New(tt)
	a, b := t.Pair(linux.SOCK_STREAM)
	c, d := t.Pair(linux.SOCK_DGRAM)
	// b's queue holds b's own end a, and d, whose queue holds b.
	for _, x := range []struct{ via, f *vfs.File }{{a, b}, {a, d}, {c, b}, {a, c}} {
		x.f.Get()
		_, e := t.Send(x.via, "x", &sock.Msg{Control: sock.Control{Rights: []*vfs.File{x.f}}})
		t.OK(e, "send")
	}
	c.Put()
	d.Put()
	b.Put()
	if unix.InFlight() != 4 {
		t.Fatal(unix.InFlight())
	}
	a.Put()
	if n := unix.InFlight(); n != 0 {
		t.Fatal(n, "files in a cycle were not collected")
	}
}

// A listener that waits in a connection to itself, which nobody can accept any more, is garbage.
func TestGarbageListener(tt *testing.T) {
	t := New(tt)
	l := t.Socket(linux.AF_UNIX, linux.SOCK_STREAM, 0)
	t.OK(S(l).Bind(t.C, l, nil, Abstract("garbage listener")), "bind")
	t.OK(S(l).Listen(t.C, 5), "listen")
	c := t.Socket(linux.AF_UNIX, linux.SOCK_STREAM, 0)
	t.OK(S(c).Connect(t.C, nil, Abstract("garbage listener"), true), "connect")
	l.Get()
	_, e := t.Send(c, "x", &sock.Msg{Control: sock.Control{Rights: []*vfs.File{l}}})
	t.OK(e, "send")
	l.Put()
	c.Put()
	if n := unix.InFlight(); n != 0 {
		t.Fatal(n, "files were not collected")
	}
}

// What becomes garbage soon after the collector ran is collected, though no socket is
// closed any more.
func TestGarbageOfMany(tt *testing.T) {
	t := New(tt)
	var ends []*vfs.File
	for range 100 {
		a, b := t.Pair(linux.SOCK_STREAM)
		b.Get()
		_, e := t.Send(a, "x", &sock.Msg{Control: sock.Control{Rights: []*vfs.File{b}}})
		t.OK(e, "send")
		b.Put()
		ends = append(ends, a)
	}
	for _, a := range ends {
		a.Put()
	}
	for until := time.Now().Add(30 * time.Second); unix.InFlight() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal(unix.InFlight(), "files were not collected")
		}
	}
}

// Sockets that hold only themselves do not use up what may be under way.
func TestTooManyReferences(tt *testing.T) {
	defer settings.UnixDgramQlen.Set(settings.UnixDgramQlen.Get())
	settings.UnixDgramQlen.Set(511)
	t := New(tt)
	keep, other := t.Pair(linux.SOCK_DGRAM)
	files := make([]*vfs.File, 0, linux.SCM_MAX_FD)
	n := 0
	for ; n <= unix.MaxInFlight; n++ {
		a, b := t.Pair(linux.SOCK_STREAM)
		b.Get()
		_, e := t.Send(a, "x", &sock.Msg{Control: sock.Control{Rights: []*vfs.File{b}}})
		t.OK(e, "send to itself") // garbage at once, collected when room is needed
		a.Put()
		b.Put()
	}
	NonBlock(keep)
	for {
		files = files[:0]
		for range linux.SCM_MAX_FD {
			keep.Get()
			files = append(files, keep)
		}
		_, e := t.Send(keep, "x", &sock.Msg{Control: sock.Control{Rights: files}})
		if e == 0 {
			files = make([]*vfs.File, 0, linux.SCM_MAX_FD) // the message's now
			continue
		}
		for range files {
			keep.Put()
		}
		t.Want(e, linux.ETOOMANYREFS, "send beyond the limit")
		break
	}
	other.Put()
	keep.Put()
	c, d := t.Pair(linux.SOCK_STREAM)
	time.Sleep(110 * time.Millisecond)
	c.Put()
	d.Put()
	if n := unix.InFlight(); n > linux.SCM_MAX_FD {
		t.Fatal(n, "files are still under way")
	}
}

func TestPassCred(tt *testing.T) {
	t := New(tt)
	a, b := t.Pair(linux.SOCK_STREAM)
	t.OK(S(b).SetOpt(t.C, linux.SOL_SOCKET, linux.SO_PASSCRED, []byte{1, 0, 0, 0}), "SO_PASSCRED")
	t.Write(a, "x")
	_, m, e := t.Recv(b, 10, 0)
	if e != 0 || !m.HasCred || m.Cred.PID != 100 || m.Cred.UID != 0 {
		t.Fatal(e, m.HasCred, m.Cred)
	}
}

func TestRoundTripDoesNotAllocate(tt *testing.T) {
	t := New(tt)
	a, b := t.Pair(linux.SOCK_STREAM)
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
}

func BenchmarkStreamRoundTrip(bb *testing.B) {
	t := New(bb)
	a, b := t.Pair(linux.SOCK_STREAM)
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
