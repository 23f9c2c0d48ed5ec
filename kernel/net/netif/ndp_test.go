package netif_test

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"

	"hardtack/abi/linux"
	"hardtack/kernel/net/netdev"
	"hardtack/kernel/net/netif"
	. "hardtack/kernel/net/socktest"
)

func ip6(s string) tcpip.Address {
	a := netip.MustParseAddr(s).As16()
	return tcpip.AddrFrom16(a)
}

// advertisement is what a router says: itself for so many seconds, and the prefix fd07::/64.
func advertisement(life uint16) netdev.Frame {
	b := make([]byte, 14+40+16+32)
	copy(b, []byte{0x33, 0x33, 0, 0, 0, 1, 2, 0, 0, 0, 0, 7, 0x86, 0xdd, 0x60})
	p := b[14:]
	p[5], p[6], p[7] = 16+32, 58, 255
	copy(p[8:], netip.MustParseAddr("fe80::7").AsSlice())
	copy(p[24:], netip.MustParseAddr("ff02::1").AsSlice())
	m := p[40:]
	m[0] = 134
	binary.BigEndian.PutUint16(m[6:], life)
	o := m[16:] // the prefix: on the link, and for addresses
	o[0], o[1], o[2], o[3] = 3, 4, 64, 0xc0
	binary.BigEndian.PutUint32(o[4:], 7200)
	binary.BigEndian.PutUint32(o[8:], 3600)
	copy(o[16:], netip.MustParseAddr("fd07::").AsSlice())
	sum := checksum.Checksum(p[8:40], 0)
	sum = checksum.Combine(checksum.Combine(sum, uint16(len(m))), 58)
	binary.BigEndian.PutUint16(m[2:], ^checksum.Checksum(m, sum))
	return netdev.Frame{Parts: [][]byte{b}}
}

// An interface configures itself: its link-local address, and from a router's words an address,
// the routes, and their end.
func TestRouterAdvertisement(tt *testing.T) {
	t := New(tt)
	a, _, _, _ := machines(tt, 0)
	var recv func([]netdev.Frame)
	l, err := netif.Add(a, &capture{set: func(fn func([]netdev.Frame)) { recv = fn }}, "eth1")
	if err != nil {
		t.Fatal(err)
	}
	has := func(s string) bool {
		for _, x := range a.Addresses(l.Index()) {
			if x.Address == ip6(s) {
				return true
			}
		}
		return false
	}
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
	// The interface goes down and comes up.
	a.DisableIPv6(l.Index(), false)
	t.OK(a.SetFlags(a.InterfaceByIndex(l.Index()), 0, linux.IFF_UP), "down")
	t.OK(a.SetFlags(a.InterfaceByIndex(l.Index()), linux.IFF_UP, linux.IFF_UP), "up")
	within("the link-local address again", func() bool { return has("fe80::ff:fe00:9") })
}
