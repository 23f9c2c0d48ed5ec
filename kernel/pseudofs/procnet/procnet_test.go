package procnet

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/sock"
	. "hardtack/kernel/net/socktest"
	"hardtack/kernel/net/unix"
	"hardtack/kernel/pseudofs/procfs"
)

func TestMain(m *testing.M) {
	procfs.Init()
	Init()
	n := inet.Init(inet.Config{Rand: rand.Reader})
	sock.Register(linux.AF_INET, n.Socket, nil)
	sock.Register(linux.AF_INET6, n.Socket, nil)
	sock.Register(linux.AF_UNIX, unix.Create, unix.Pair)
	os.Exit(m.Run())
}

func TestTables(tt *testing.T) {
	t := New(tt)
	n := inet.Default
	l := t.Socket(linux.AF_INET, linux.SOCK_STREAM, 0)
	t.OK(S(l).Bind(t.C, l, nil, In4(127, 0, 0, 1, 8080)), "bind")
	t.OK(S(l).Listen(t.C, 5), "listen")
	c := t.Socket(linux.AF_INET, linux.SOCK_STREAM, 0)
	t.OK(S(c).Connect(t.C, nil, In4(127, 0, 0, 1, 8080), false), "connect")
	t.Write(c, "12345")
	u := t.Socket(linux.AF_INET6, linux.SOCK_DGRAM, 0)
	t.OK(S(u).Bind(t.C, u, nil, In6([16]byte{}, 53)), "bind")
	x := t.Socket(linux.AF_UNIX, linux.SOCK_STREAM, 0)
	t.OK(S(x).Bind(t.C, x, nil, Abstract("name")), "bind")
	has := func(text []byte, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(string(text), w) {
				t.Errorf("no %q in\n%s", w, text)
			}
		}
	}
	has(sockets(n, &tcp4), "0100007F:1F90 00000000:0000 0A 00000000:00000001", " 0100007F:1F90 01 00000000:00000000", "00000000:00000005")
	has(sockets(n, &udp6), "00000000000000000000000000000000:0035")
	has(unixSockets(n), " @name\n")
	has(devices(n), "    lo: ")
	has(addresses6(n), "00000000000000000000000000000001 01 80 10 80       lo\n")
	l.Put()
	c.Put()
	u.Put()
	x.Put()
	if text := string(sockets(n, &tcp4)); strings.Count(text, "\n") != 1 {
		t.Error("closed sockets are listed:", text)
	}
	if text := string(unixSockets(n)); strings.Contains(text, "@name") {
		t.Error("closed sockets are listed:", text)
	}
}
