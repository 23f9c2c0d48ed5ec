package netif_test

import (
	"os"
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/inet"
	. "hardtack/kernel/net/socktest"
)

// eventually waits for something that timers and the other machine do.
func eventually(t *T, what string, is func() bool) {
	for range 2000 {
		if is() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal(what, "does not come to be")
}

// closedFirst makes a connection from a port of a (0: any) to a listener of b, which closes
// first, and returns a's port.
func closedFirst(t *T, a *inet.Net, l *vfs.File, port uint16) uint16 {
	var x *vfs.File
	eventually(t, "a connection", func() bool { // the one before may be ending yet
		x = socket(t, a, linux.SOCK_STREAM)
		t.OK(S(x).SetOpt(t.C, linux.SOL_SOCKET, linux.SO_REUSEADDR, []byte{1, 0, 0, 0}), "SO_REUSEADDR")
		t.OK(S(x).Bind(t.C, x, nil, In4(10, 9, 0, 1, port)), "bind")
		e := S(x).Connect(t.C, nil, In4(10, 9, 0, 2, t.Port(l)), false)
		if e != 0 {
			t.Want(e, linux.EADDRNOTAVAIL, "connect")
			x.Put()
		}
		return e == 0
	})
	port = t.Port(x)
	y, e := S(l).Accept(t.C, false, 0)
	t.OK(e, "accept")
	t.Write(y, "bye")
	y.Put()
	for _, want := range []string{"bye", ""} {
		if s := t.Read(x, 10); s != want {
			t.Fatalf("%q comes, not %q", s, want)
		}
	}
	x.Put()
	return port
}

// A closed connection in TIME_WAIT is small with the kernel's netstack (the overlay's test
// runs this one with it). It keeps its port until the time is over, and a new connection
// from the same port takes its place.
func TestTimeWait(tt *testing.T) {
	const uid = 4242 // nobody else's
	t := New(tt)
	t.C.SetCred(&creds.Cred{UID: uid, EUID: uid, SUID: uid, FSUID: uid})
	patched := os.Getenv("HARDTACK_NETSTACK") == "patched"
	a, b, _, _ := machines(tt, 0)
	listen := func() (*vfs.File, linux.Errno) {
		l := socket(t, b, linux.SOCK_STREAM)
		e := S(l).Bind(t.C, l, nil, In4(10, 9, 0, 2, 7777))
		if e == 0 {
			e = S(l).Listen(t.C, 5)
		}
		return l, e
	}
	l, e := listen()
	t.OK(e, "listen")
	const n = 20
	var port uint16
	for range n {
		port = closedFirst(t, a, l, 0)
	}
	if patched {
		eventually(t, "TIME_WAIT", func() bool { return b.TimeWaits() == n })
		eventually(t, "a small charge", func() bool {
			kept := inet.KeptBy(uid)
			return kept > 0 && kept <= n<<10
		})
	}
	closedFirst(t, a, l, port)
	if patched {
		eventually(t, "TIME_WAIT again", func() bool { return b.TimeWaits() == n })
	}
	l.Put()
	f, e := listen()
	t.Want(e, linux.EADDRINUSE, "bind of a port in TIME_WAIT")
	f.Put()
	if !patched {
		return
	}
	if got := b.ForgetOutside(); got != n || b.TimeWaits() != 0 {
		t.Errorf("%d are forgotten, and %d stay", got, b.TimeWaits())
	}
	l, e = listen()
	t.OK(e, "bind of a port that is free again")
	l.Put()
	eventually(t, "nothing charged", func() bool { return inet.KeptBy(uid) == 0 })
}

// A machine that closed first does not connect from the same port to the same peer before
// the time is over.
func TestTimeWaitKeepsPort(tt *testing.T) {
	t := New(tt)
	a, b, _, _ := machines(tt, 0)
	l := socket(t, b, linux.SOCK_STREAM)
	t.OK(S(l).Bind(t.C, l, nil, In4(10, 9, 0, 2, 0)), "bind")
	t.OK(S(l).Listen(t.C, 5), "listen")
	dial := func(port uint16) (*vfs.File, linux.Errno) {
		x := socket(t, a, linux.SOCK_STREAM)
		t.OK(S(x).SetOpt(t.C, linux.SOL_SOCKET, linux.SO_REUSEADDR, []byte{1, 0, 0, 0}), "SO_REUSEADDR")
		t.OK(S(x).Bind(t.C, x, nil, In4(10, 9, 0, 1, port)), "bind")
		return x, S(x).Connect(t.C, nil, In4(10, 9, 0, 2, t.Port(l)), false)
	}
	x, e := dial(0)
	t.OK(e, "connect")
	port := t.Port(x)
	y, e := S(l).Accept(t.C, false, 0)
	t.OK(e, "accept")
	x.Put()
	if s := t.Read(y, 10); s != "" {
		t.Fatalf("%q instead of the end", s)
	}
	y.Put()
	if os.Getenv("HARDTACK_NETSTACK") == "patched" {
		eventually(t, "TIME_WAIT", func() bool { return a.TimeWaits() == 1 })
	}
	x, e = dial(port)
	t.Want(e, linux.EADDRNOTAVAIL, "connect as one in TIME_WAIT")
	x.Put()
	l.Put()
}
