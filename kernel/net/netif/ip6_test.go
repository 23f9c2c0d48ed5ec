package netif_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"

	"hardtack/abi/linux"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/netdev"
	"hardtack/kernel/net/sock"
	. "hardtack/kernel/net/socktest"
)

// Datagrams of IPv6 go to and fro between global addresses and between those of the link, and
// their checksums are right, which IPv6 asks for.
func TestDatagramsOfIPv6(tt *testing.T) {
	for name, features := range kinds {
		for _, net := range []byte{0xfd, 0xfe} {
			tt.Run(name+" "+map[byte]string{0xfd: "global", 0xfe: "link"}[net], func(tt *testing.T) { datagramsOfIPv6(tt, features, net) })
		}
	}
}

func datagramsOfIPv6(tt *testing.T, features netdev.Features, net byte) {
	t := New(tt)
	a, b, ca, cb := machines(tt, features)
	at := func(i byte) (ip [16]byte) {
		ip[0], ip[15] = net, i
		if net == 0xfe {
			ip[1] = 0x80
		}
		return ip
	}
	for i, n := range []*inet.Net{a, b} {
		e := n.GiveAddress(inet.By{}, n.InterfaceByIndex(2), tcpip.AddressWithPrefix{Address: tcpip.AddrFrom16(at(byte(i + 1))), PrefixLen: 64}, inet.AddressNote{})
		t.OK(e, "address")
	}
	var seen atomic.Int32
	look := func(f *netdev.Frame) bool {
		if p := slices.Concat(f.Parts...); p[12] == 0x86 && p[20] == linux.IPPROTO_UDP {
			seen.Add(1)
			m := p[54:]
			sum := checksum.Combine(checksum.Checksum(p[22:54], uint16(len(m))), linux.IPPROTO_UDP)
			if got := checksum.Checksum(m, sum); !f.NeedsChecksum && got != 0xffff {
				t.Errorf("a checksum is wrong: %#x", got)
			}
		}
		return false
	}
	ca.drop, cb.drop = look, look
	socket6 := func(n *inet.Net) *vfs.File {
		s, e := n.Socket(t.C, linux.AF_INET6, linux.SOCK_DGRAM, 0)
		t.OK(e, "socket")
		return sock.NewFile(s, 0)
	}
	x, y := socket6(a), socket6(b)
	defer x.Put()
	defer y.Put()
	t.OK(S(y).Bind(t.C, y, nil, In6([16]byte{}, 0)), "bind")
	to := In6(at(2), t.Port(y))
	if net == 0xfe {
		to.B[24] = 2 // sin6_scope_id
	}
	t.OK(S(x).Connect(t.C, nil, to, false), "connect")
	for _, n := range []int{1, 500, 1452} {
		t.Write(x, strings.Repeat("x", n))
		got, m, e := t.Recv(y, 2000, 0)
		t.OK(e, "recv")
		_, e = t.Send(y, got, &sock.Msg{To: &m.From})
		t.OK(e, "send")
		if back := t.Read(x, 2000); len(got) != n || len(back) != n {
			t.Fatalf("of %d bytes %d came, and %d back", n, len(got), len(back))
		}
	}
	if n := seen.Load(); n != 6 {
		t.Errorf("%d datagrams went by the cable", n)
	}
}
