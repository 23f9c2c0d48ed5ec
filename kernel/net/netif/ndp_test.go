package netif_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"

	"hardtack/abi/linux"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/netdev"
	"hardtack/kernel/net/netif"
	. "hardtack/kernel/net/socktest"
)

func ip6(s string) tcpip.Address {
	a := netip.MustParseAddr(s).As16()
	return tcpip.AddrFrom16(a)
}

// said is what a router advertises: itself for so many seconds, and a prefix for so many.
type said struct {
	router, prefix   string
	life, prefixLife uint32
}

func (x said) frame() netdev.Frame {
	b := make([]byte, 14+40+16+32)
	copy(b, []byte{0x33, 0x33, 0, 0, 0, 1, 2, 0, 0, 0, 0, 7, 0x86, 0xdd, 0x60})
	p := b[14:]
	p[5], p[6], p[7] = 16+32, 58, 255
	copy(p[8:], netip.MustParseAddr(x.router).AsSlice())
	copy(p[24:], netip.MustParseAddr("ff02::1").AsSlice())
	m := p[40:]
	m[0] = 134
	binary.BigEndian.PutUint16(m[6:], uint16(x.life))
	o := m[16:] // the prefix: on the link, and for addresses
	o[0], o[1], o[2], o[3] = 3, 4, 64, 0xc0
	binary.BigEndian.PutUint32(o[4:], x.prefixLife)
	binary.BigEndian.PutUint32(o[8:], x.prefixLife/2)
	copy(o[16:], netip.MustParseAddr(x.prefix).AsSlice())
	sum := checksum.Checksum(p[8:40], 0)
	sum = checksum.Combine(checksum.Combine(sum, uint16(len(m))), 58)
	binary.BigEndian.PutUint16(m[2:], ^checksum.Checksum(m, sum))
	return netdev.Frame{Parts: [][]byte{b}}
}

func advertisement(life uint32) netdev.Frame { return said{"fe80::7", "fd07::", life, 7200}.frame() }

// withDevice is a network with an interface whose frames a test receives.
func withDevice(t *T, tt *testing.T) (*inet.Net, *netif.Link, func([]netdev.Frame)) {
	a, _, _, _ := machines(tt, 0)
	a.SetAcceptRA(0, 1)
	var recv func([]netdev.Frame)
	l, err := netif.Add(a, &capture{set: func(fn func([]netdev.Frame)) { recv = fn }}, "eth1")
	if err != nil {
		t.Fatal(err)
	}
	return a, l, recv
}

func addressed(a *inet.Net, l *netif.Link, s string) bool {
	return slices.ContainsFunc(a.Addresses(l.Index()), func(x tcpip.AddressWithPrefix) bool { return x.Address == ip6(s) })
}

// An interface configures itself: its link-local address, and from a router's words an address,
// the routes, and their end.
func TestRouterAdvertisement(tt *testing.T) {
	t := New(tt)
	a, l, recv := withDevice(t, tt)
	has := func(s string) bool { return addressed(a, l, s) }
	if !has("fe80::ff:fe00:9") {
		t.Fatalf("no link-local address among %v", a.Addresses(l.Index()))
	}
	within := func(what string, f func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !f(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %v, %v", what, a.Addresses(l.Index()), a.Routes())
			}
		}
	}
	recv([]netdev.Frame{advertisement(1800)})
	const own = "fd07::ff:fe00:9"
	within("an address", func() bool { return has(own) })
	far := ip6("2001:db8::1")
	within("the default route", func() bool {
		r, e := a.PathTo(far)
		return e == 0 && r.Gateway == ip6("fe80::7")
	})
	within("the prefix", func() bool {
		r, e := a.PathTo(ip6("fd07::1"))
		return e == 0 && r.Gateway.Len() == 0
	})
	within("its lifetime", func() bool {
		x := a.AddressNoteOf(l.Index(), ip6(own))
		preferred, valid := x.Life.Left()
		return preferred > 3000 && preferred <= 3600 && valid > 7000 && valid <= 7200
	})
	recv([]netdev.Frame{advertisement(0)})
	within("the route's end", func() bool { _, e := a.PathTo(far); return e == linux.ENETUNREACH })
	if !has(own) {
		t.Fatal("the address went with the router")
	}
	a.DisableIPv6(l.Index(), true)
	if has(own) || has("fe80::ff:fe00:9") {
		t.Fatal("addresses without IPv6")
	}
	recv([]netdev.Frame{advertisement(1800)})
	within("no address without IPv6", func() bool { return !has(own) })
	if _, e := a.PathTo(far); e != linux.ENETUNREACH {
		t.Fatal("a route without IPv6")
	}
	// Only what is asked for is taken.
	a.DisableIPv6(l.Index(), false)
	a.SetAutoconf(l.Index(), 0)
	recv([]netdev.Frame{said{"fe80::7", "fd08::", 1800, 7200}.frame()})
	within("the default route again", func() bool { _, e := a.PathTo(far); return e == 0 })
	a.SetAcceptRA(l.Index(), 0)
	a.SetAutoconf(l.Index(), 1)
	recv([]netdev.Frame{said{"fe80::7", "fd09::", 0, 7200}.frame()})
	if _, e := a.PathTo(far); e != 0 || has("fd08::ff:fe00:9") || has("fd09::ff:fe00:9") {
		t.Fatal("a router was believed that should not be: ", a.Addresses(l.Index()))
	}
	// The interface goes down and comes up.
	a.SetAcceptRA(l.Index(), 1)
	t.OK(a.SetFlags(a.InterfaceByIndex(l.Index()), 0, linux.IFF_UP), "down")
	t.OK(a.SetFlags(a.InterfaceByIndex(l.Index()), linux.IFF_UP, linux.IFF_UP), "up")
	within("the link-local address again", func() bool { return has("fe80::ff:fe00:9") })
}

// Who advertises and withdraws without an end leaves no more than ten of each kind.
func TestManyAdvertisements(tt *testing.T) {
	t := New(tt)
	a, l, recv := withDevice(t, tt)
	before := len(a.Routes())
	for i := range uint32(20000) {
		x := said{fmt.Sprintf("fe80::%x", 1+i%500), fmt.Sprintf("fd07:%x::", i%999), 1800, 7200}
		switch i % 3 {
		case 1:
			x.life = 0
		case 2:
			x.prefixLife = 0
		}
		recv([]netdev.Frame{x.frame()})
	}
	for r := range 500 {
		recv([]netdev.Frame{said{fmt.Sprintf("fe80::%x", 1+r), "fd07::", 0, 0}.frame()})
	}
	for p := range 999 {
		recv([]netdev.Frame{said{"fe80::1", fmt.Sprintf("fd07:%x::", p), 0, 0}.frame()})
	}
	eventually(t, "the routes' end", func() bool { return len(a.Routes()) <= before+1 }) // one is the link-local prefix's
	if n := len(a.Addresses(l.Index())); n > 11 {
		t.Errorf("%d addresses", n)
	}
}
