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

// Groups that sockets join are listed with how many did, the newest first.
func TestGroups(tt *testing.T) {
	t := New(tt)
	n := inet.Default
	lo := n.InterfaceByIndex(1)
	if lo == nil || lo.Name != "lo" {
		t.Fatal("no lo")
	}
	if text := string(hardwareGroups(n)); strings.Contains(text, " lo ") {
		t.Errorf("dev_mcast:\n%s", text)
	}
	before, before6 := string(igmp(n)), string(igmp6(n))
	a, b, six := t.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0), t.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0), t.Socket(linux.AF_INET6, linux.SOCK_DGRAM, 0)
	one, two := []byte{224, 5, 6, 7, 127, 0, 0, 1}, []byte{224, 5, 6, 8, 0, 0, 0, 0, 1, 0, 0, 0}
	t.OK(S(a).SetOpt(t.C, linux.IPPROTO_IP, linux.IP_ADD_MEMBERSHIP, one), "join")
	t.OK(S(b).SetOpt(t.C, linux.IPPROTO_IP, linux.IP_ADD_MEMBERSHIP, one), "join")
	t.OK(S(b).SetOpt(t.C, linux.IPPROTO_IP, linux.IP_ADD_MEMBERSHIP, two), "join another")
	t.OK(S(six).SetOpt(t.C, linux.IPPROTO_IPV6, linux.IPV6_ADD_MEMBERSHIP, []byte{0: 0xff, 1: 2, 15: 0x77, 16: 1, 19: 0}), "join IPv6")
	want := "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n" +
		"1\tlo        :     3    NONE\n" +
		"\t\t\t\t080605E0     1 0:00000000\t\t0\n" +
		"\t\t\t\t070605E0     2 0:00000000\t\t0\n" +
		"\t\t\t\t010000E0     1 0:00000000\t\t0\n"
	if text := string(igmp(n)); text != want {
		t.Errorf("igmp:\n%swant\n%s", text, want)
	}
	want = "1    lo              ff020000000000000000000000000077     1 00000004 0\n"
	if text := string(igmp6(n)); text != want+before6 {
		t.Errorf("igmp6:\n%swant\n%s", text, want+before6)
	}
	t.OK(S(a).SetOpt(t.C, linux.IPPROTO_IP, linux.IP_DROP_MEMBERSHIP, one), "leave")
	if text := string(igmp(n)); !strings.Contains(text, "070605E0     1 0") {
		t.Error("after one left:\n" + text)
	}
	a.Put()
	b.Put()
	six.Put()
	if text := string(igmp(n)) + string(igmp6(n)); text != before+before6 {
		t.Errorf("closed sockets are members:\n%s", text)
	}
}
