package inet_test

import (
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/sock"
	. "hardtack/kernel/net/socktest"
)

// user returns a thread of a user without rights.
func user(t *T, uid uint32) *T {
	u := New(t.TB)
	u.C.SetCred(&creds.Cred{UID: uid, EUID: uid, SUID: uid, FSUID: uid})
	return u
}

func closeAll(files []*vfs.File) {
	for _, f := range files {
		f.Put()
	}
}

// One user binds as many sockets as it gets; another user and root find ports yet.
func TestPortsAreShared(tt *testing.T) {
	for _, typ := range []int32{linux.SOCK_STREAM, linux.SOCK_DGRAM} {
		t := New(tt)
		bind := func(u *T) (*vfs.File, linux.Errno) {
			f := u.Socket(linux.AF_INET, typ, 0)
			return f, S(f).Bind(u.C, f, nil, In4(127, 0, 0, 1, 0))
		}
		greedy := user(t, 1000)
		var all []*vfs.File
		for {
			f, e := bind(greedy)
			all = append(all, f)
			if e != 0 {
				break
			}
		}
		if len(all) < 10000 {
			t.Errorf("type %d: one user gets %d ports", typ, len(all))
		}
		for _, u := range []*T{user(t, 1001), t} {
			f, e := bind(u)
			t.OK(e, "bind of another user")
			f.Put()
			if typ == linux.SOCK_STREAM {
				l, addr := listen(t, 1)
				f := u.Socket(linux.AF_INET, typ, 0)
				t.OK(S(f).Connect(u.C, nil, addr, false), "connect of another user")
				f.Put()
				l.Put()
			} else {
				f := u.Socket(linux.AF_INET, typ, 0)
				_, e := u.Send(f, "x", &sock.Msg{To: In4(127, 0, 0, 1, 9)})
				t.OK(e, "send of another user")
				f.Put()
			}
		}
		closeAll(all)
		f, e := bind(greedy)
		t.OK(e, "bind after all is closed")
		f.Put()
	}
}

// One user connects as often as it can; another user and root connect yet, also to the
// same listener, and what is closed can be had again.
func TestPortsOfConnectionsAreShared(tt *testing.T) {
	t := New(tt)
	first, last := inet.Default.PortRange()
	const ports = 200
	t.OK(inet.Default.SetPortRange(40000, 40000+ports-1), "port range")
	defer inet.Default.SetPortRange(first, last)
	host := user(t, 1002)
	l := host.Socket(linux.AF_INET, linux.SOCK_STREAM, 0)
	t.OK(S(l).Bind(host.C, l, nil, In4(127, 0, 0, 1, 30000)), "bind")
	t.OK(S(l).Listen(host.C, 10), "listen")
	defer l.Put()
	addr := In4(127, 0, 0, 1, 30000)
	connect := func(u *T) ([]*vfs.File, linux.Errno) {
		f := u.Socket(linux.AF_INET, linux.SOCK_STREAM, 0)
		if e := S(f).Connect(u.C, nil, addr, false); e != 0 {
			f.Put()
			return nil, e
		}
		x, e := S(l).Accept(host.C, false, 0)
		host.OK(e, "accept")
		return []*vfs.File{f, x}, 0
	}
	greedy := user(t, 1000)
	for round := range 2 {
		var all []*vfs.File
		for {
			pair, e := connect(greedy)
			if e != 0 {
				if e != linux.EADDRNOTAVAIL {
					t.Errorf("connect without ports: %v", e)
				}
				break
			}
			if all = append(all, pair...); len(all) > 2*ports {
				t.Fatal("more connections than ports")
			}
		}
		if n := len(all) / 2; n < ports/2 || n >= ports {
			t.Errorf("round %d: one user gets %d of %d ports", round, n, ports)
		}
		for _, u := range []*T{user(t, 1001), t} {
			pair, e := connect(u)
			t.OK(e, "connect of another user")
			closeAll(pair)
		}
		for i := len(all) - 1; i >= 0; i-- { // the far ends first: they wait for nothing
			all[i].Put()
		}
	}
}

// Connections that nobody accepts outlive the sockets that made them.
func TestUnacceptedAreShared(tt *testing.T) {
	t := New(tt)
	greedy, n := user(t, 1000), 0
	var all []*vfs.File
	for e := linux.Errno(0); e == 0; {
		l, addr := listen(greedy, 500)
		all = append(all, l)
		for range 500 {
			f := greedy.Socket(linux.AF_INET, linux.SOCK_STREAM, 0)
			if e = S(f).Connect(greedy.C, nil, addr, false); e == 0 {
				n++
			}
			f.Put()
		}
		if n > 1<<20 {
			t.Fatal("one user has a million connections that nobody accepted")
		}
	}
	for _, u := range []*T{user(t, 1001), t} {
		l, addr := listen(u, 1)
		f := u.Socket(linux.AF_INET, linux.SOCK_STREAM, 0)
		t.OK(S(f).Connect(u.C, nil, addr, false), "connect of another user")
		f.Put()
		l.Put()
	}
	closeAll(all)
	l, addr := listen(greedy, 1)
	f := greedy.Socket(linux.AF_INET, linux.SOCK_STREAM, 0)
	t.OK(S(f).Connect(greedy.C, nil, addr, false), "connect after all is closed")
	f.Put()
	l.Put()
}

// Datagrams without bytes cost memory, too, and many sockets hold more than one.
func TestDatagramsAreShared(tt *testing.T) {
	for _, size := range []int{0, 1, 30000} {
		t := New(tt)
		greedy := user(t, 1000)
		text := string(make([]byte, size))
		var all []*vfs.File
		var addrs []*sock.Addr
		for range 200 {
			f := greedy.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0)
			NonBlock(f)
			t.OK(S(f).Bind(greedy.C, f, nil, In4(127, 0, 0, 1, 0)), "bind")
			all, addrs = append(all, f), append(addrs, In4(127, 0, 0, 1, t.Port(f)))
		}
		from := greedy.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0)
		for i := range 50_000 {
			greedy.Send(from, text, &sock.Msg{To: addrs[i%len(addrs)]})
		}
		got := 0
		for _, f := range all {
			for {
				if _, _, e := greedy.Recv(f, 1, 0); e != 0 {
					break
				}
				got++
			}
		}
		if most := 40 << 20; got*(size+1024) > most || got == 0 {
			t.Errorf("%d bytes: %d datagrams were kept", size, got)
		}
		// What was shut opens again, and others have been served all the time.
		for _, f := range []*vfs.File{all[0], all[199]} {
			greedy.Send(from, "again", &sock.Msg{To: In4(127, 0, 0, 1, t.Port(f))})
			if s, _, e := greedy.Recv(f, 10, 0); e != 0 || s != "again" {
				t.Errorf("%d bytes: a drained socket gives %q, %v", size, s, e)
			}
		}
		from.Put()
		closeAll(all)
	}
}

func TestGroupsPerSocket(tt *testing.T) {
	t := New(tt)
	f := t.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0)
	defer f.Put()
	for i := range 21 {
		e := S(f).SetOpt(t.C, linux.IPPROTO_IP, linux.IP_ADD_MEMBERSHIP, []byte{224, 1, 1, byte(i), 127, 0, 0, 1})
		if want := linux.Errno(0); i == 20 {
			want = linux.ENOBUFS
			t.Want(e, want, "one group more")
		} else {
			t.OK(e, "join")
		}
	}
	t.OK(S(f).SetOpt(t.C, linux.IPPROTO_IP, linux.IP_DROP_MEMBERSHIP, []byte{224, 1, 1, 3, 127, 0, 0, 1}), "leave")
	t.OK(S(f).SetOpt(t.C, linux.IPPROTO_IP, linux.IP_ADD_MEMBERSHIP, []byte{224, 1, 1, 200, 127, 0, 0, 1}), "join again")
}

// What UDP_CORK and MSG_MORE collect is charged to the sockets' user until it is sent or
// the socket is closed, and one user cannot take what another needs.
func TestCorkedDataIsCharged(tt *testing.T) {
	t := New(tt)
	part := make([]byte, 60000)
	to := In4(127, 0, 0, 1, 9)
	cork := func(u *T) (*vfs.File, linux.Errno) {
		f := u.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0)
		_, e := u.Send(f, string(part), &sock.Msg{To: to, Flags: linux.MSG_MORE})
		return f, e
	}
	before := sock.RingBytes.Used()
	f, e := cork(t)
	t.OK(e, "send of a part")
	if got := sock.RingBytes.Used() - before; got != int64(len(part)) {
		t.Errorf("%d bytes are charged for %d", got, len(part))
	}
	_, e = t.Send(f, "", &sock.Msg{To: to})
	t.OK(e, "send of the rest")
	if got := sock.RingBytes.Used() - before; got != 0 {
		t.Errorf("%d bytes are charged for what was sent", got)
	}
	f.Put()
	greedy := user(t, 1002)
	var all []*vfs.File
	for e = 0; e == 0 && len(all) < 4000; {
		var f *vfs.File
		f, e = cork(greedy)
		all = append(all, f)
	}
	t.Want(e, linux.ENOBUFS, "parts beyond a user's share")
	f, e = cork(user(t, 1003))
	t.OK(e, "part of another user")
	f.Put()
	closeAll(all)
	if got := sock.RingBytes.Used() - before; got != 0 {
		t.Errorf("%d bytes are charged for closed sockets", got)
	}
}

// One user holds the ports that would be next; bind to port 0 finds others.
func TestHeldRunOfPorts(tt *testing.T) {
	begin, end := inet.Default.PortRange()
	defer inet.Default.SetPortRange(begin, end)
	for _, typ := range []int32{linux.SOCK_STREAM, linux.SOCK_DGRAM} {
		t := New(tt)
		bind := func(u *T, port uint16) (*vfs.File, linux.Errno) {
			f := u.Socket(linux.AF_INET, typ, 0)
			return f, S(f).Bind(u.C, f, nil, In4(127, 0, 0, 1, port))
		}
		first, last := int64(2000), int64(30000) // a turn begins with the first of a new range
		if typ == linux.SOCK_DGRAM {
			first, last = first+30000, last+30000
		}
		t.OK(inet.Default.SetPortRange(first, last), "port range")
		greedy := user(t, 1000)
		var all []*vfs.File
		for port := first; port < first+15000; port++ {
			f, e := bind(greedy, uint16(port))
			t.OK(e, "bind of a port")
			all = append(all, f)
		}
		for range 1000 {
			f, e := bind(user(t, 1001), 0)
			t.OK(e, "bind of another user")
			all = append(all, f)
		}
		closeAll(all)
	}
}
