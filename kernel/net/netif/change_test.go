package netif_test

import (
	"sync/atomic"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/abi/linux"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/sock"
	. "hardtack/kernel/net/socktest"
)

const add = linux.NLM_F_CREATE | linux.NLM_F_EXCL

// eth returns the interface of machines.
func eth(n *inet.Net) *inet.Interface { return n.Interfaces()[1] }

func TestInterfaceGoesDown(tt *testing.T) {
	t := New(tt)
	a, b, _, _ := machines(tt, kinds["plain"])
	x, y := connected(t, a, b)
	t.OK(a.SetFlags(eth(a), 0, linux.IFF_UP), "down")
	if f := eth(a).Flags(); f&(linux.IFF_UP|linux.IFF_RUNNING) != 0 {
		t.Fatalf("flags %#x", f)
	}
	u := socket(t, a, linux.SOCK_DGRAM)
	_, e := t.Send(u, "lost", &sock.Msg{To: In4(10, 9, 0, 2, 7000)})
	t.Want(e, linux.ENETUNREACH, "sendto while down")
	own := socket(t, a, linux.SOCK_DGRAM)
	t.OK(S(own).Bind(t.C, own, nil, In4(10, 9, 0, 1, 0)), "bind to its own address")
	t.Write(x, "held") // the connection keeps its way and repeats what is lost
	NonBlock(y)
	_, e = t.ReadErr(y, 10)
	t.Want(e, linux.EAGAIN, "read while down")
	t.OK(a.SetFlags(eth(a), linux.IFF_UP, linux.IFF_UP), "up")
	z, w := connected(t, a, b)
	t.Write(z, "again")
	if s := t.Read(w, 10); s != "again" {
		t.Fatal(s)
	}
}

func TestAddressIsTakenAway(tt *testing.T) {
	t := New(tt)
	a, b, _, _ := machines(tt, kinds["plain"])
	own := tcpip.AddrFrom4([4]byte{10, 9, 0, 2})
	t.OK(b.TakeAddress(inet.By{}, eth(b), own), "take")
	t.Want(b.TakeAddress(inet.By{}, eth(b), own), linux.EADDRNOTAVAIL, "take again")
	l := socket(t, b, linux.SOCK_STREAM)
	t.OK(S(l).Bind(t.C, l, nil, In4(0, 0, 0, 0, 7001)), "bind")
	t.OK(S(l).Listen(t.C, 5), "listen")
	x := socket(t, a, linux.SOCK_STREAM)
	NonBlock(x)
	S(x).Connect(t.C, nil, In4(10, 9, 0, 2, 7001), true)
	NonBlock(l)
	_, e := S(l).Accept(t.C, true, 0)
	t.Want(e, linux.EAGAIN, "accept at an address that is gone")
	t.OK(b.GiveAddress(inet.By{}, eth(b), tcpip.AddressWithPrefix{Address: own, PrefixLen: 24}, inet.AddressNote{}), "give")
	p, q := connected(t, a, b)
	t.Write(p, "here")
	if s := t.Read(q, 10); s != "here" {
		t.Fatal(s)
	}
}

func TestRoutesByGateway(tt *testing.T) {
	t := New(tt)
	a, _, _, _ := machines(tt, kinds["plain"])
	ip := func(a, b, c, d byte) tcpip.Address { return tcpip.AddrFrom4([4]byte{a, b, c, d}) }
	to := func(x tcpip.Address, prefix int, via tcpip.Address) *tcpip.Route {
		return &tcpip.Route{Destination: tcpip.AddressWithPrefix{Address: x, PrefixLen: prefix}.Subnet(), Gateway: via}
	}
	give := func(r *tcpip.Route, metric uint32, flags uint16) linux.Errno {
		return a.GiveRoute(inet.By{}, r, inet.RouteNote{Metric: metric, Proto: linux.RTPROT_BOOT}, flags)
	}
	far := ip(192, 0, 2, 1)
	via := func() tcpip.Address { p, _ := a.PathTo(far); return p.Gateway }
	t.Want(give(to(far, 32, ip(172, 16, 0, 1)), 0, add), linux.ENETUNREACH, "gateway off the link")
	t.OK(give(to(header.IPv4Any, 0, ip(10, 9, 0, 2)), 200, add), "default")
	if via() != ip(10, 9, 0, 2) {
		t.Fatal(via())
	}
	t.OK(give(to(header.IPv4Any, 0, ip(10, 9, 0, 3)), 100, add), "default of a smaller metric")
	if via() != ip(10, 9, 0, 3) {
		t.Fatal("the smaller metric does not win:", via())
	}
	t.Want(give(to(header.IPv4Any, 0, ip(10, 9, 0, 4)), 100, add), linux.EEXIST, "the same metric")
	t.OK(give(to(header.IPv4Any, 0, ip(10, 9, 0, 4)), 100, linux.NLM_F_CREATE|linux.NLM_F_REPLACE), "replaced")
	if via() != ip(10, 9, 0, 4) {
		t.Fatal(via())
	}
	w := inet.Wanted{Route: *to(header.IPv4Any, 0, tcpip.Address{}), Metric: 100, Scope: linux.RT_SCOPE_NOWHERE}
	t.OK(a.TakeRoute(inet.By{}, w), "take")
	if via() != ip(10, 9, 0, 2) {
		t.Fatal(via())
	}
	t.OK(a.SetFlags(eth(a), 0, linux.IFF_UP), "down")
	t.Want(give(to(far, 32, ip(10, 9, 0, 2)), 0, add), linux.ENETUNREACH, "by an interface that is down")
	t.OK(a.SetFlags(eth(a), linux.IFF_UP, linux.IFF_UP), "up")
	if _, e := a.PathTo(far); e != linux.ENETUNREACH {
		t.Fatal("the gateway's route came back")
	}
	if _, e := a.PathTo(ip(10, 9, 0, 77)); e != 0 {
		t.Fatal("the link's route did not come back:", e)
	}
}

// counter is a Tap that counts TCP frames.
type counter struct{ in, out, down atomic.Int32 }

func (c *counter) Tap(p *inet.Tapped) {
	switch {
	case p.Protocol != linux.ETH_P_IP || p.Frame[14+9] != linux.IPPROTO_TCP:
	case p.Type == linux.PACKET_OUTGOING:
		c.out.Add(1)
	case p.Type == linux.PACKET_HOST:
		c.in.Add(1)
	}
}

func (c *counter) InterfaceDown(int32) { c.down.Add(1) }

func TestTap(tt *testing.T) {
	t := New(tt)
	a, b, _, _ := machines(tt, kinds["offload"])
	c := new(counter)
	a.AddTap(c)
	x, y := connected(t, a, b)
	t.Write(x, "seen")
	if s := t.Read(y, 10); s != "seen" {
		t.Fatal(s)
	}
	if c.in.Load() < 1 || c.out.Load() < 2 {
		t.Fatal(c.in.Load(), c.out.Load())
	}
	t.OK(a.SetFlags(eth(a), 0, linux.IFF_UP), "down")
	if c.down.Load() != 1 {
		t.Fatal("the Tap was not told")
	}
	t.OK(a.SetFlags(eth(a), linux.IFF_UP, linux.IFF_UP), "up")
	a.RemoveTap(c)
	a.RemoveTap(c)
	if a.Tapped() || a.RawSockets() != 0 {
		t.Fatal("still tapped")
	}
}

func TestMTU(tt *testing.T) {
	t := New(tt)
	a, _, _, _ := machines(tt, kinds["plain"])
	for _, x := range []struct {
		mtu  int
		want linux.Errno
	}{{1400, 0}, {67, linux.EINVAL}, {-1, linux.EINVAL}, {1501, linux.EINVAL}, {1500, 0}} {
		t.Want(a.SetMTU(eth(a), x.mtu), x.want, "MTU")
	}
	if eth(a).CurrentMTU() != 1500 {
		t.Fatal(eth(a).CurrentMTU())
	}
}
