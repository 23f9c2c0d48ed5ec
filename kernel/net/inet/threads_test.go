package inet_test

import (
	"math/rand/v2"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/sock"
	. "hardtack/kernel/net/socktest"
)

// Several threads do with a few sockets, at once, whatever calls can do with one, and leave
// nothing behind.
func TestSocketsOfManyThreads(tt *testing.T) {
	defer settings.PingGroupHi.Set(settings.PingGroupHi.Get())
	settings.PingGroupLo.Set(0)
	defer settings.PingGroupLo.Set(1)
	settings.PingGroupHi.Set(1 << 30)
	levels := []int32{linux.SOL_SOCKET, linux.IPPROTO_TCP, linux.IPPROTO_IP, linux.IPPROTO_IPV6}
	before := inet.KeptNow() // other tests leave some, which may go meanwhile
	for range 300 {
		t := New(tt)
		var socks []*vfs.File
		for _, kind := range [][3]int32{
			{linux.AF_INET, linux.SOCK_STREAM}, {linux.AF_INET, linux.SOCK_STREAM}, {linux.AF_INET6, linux.SOCK_STREAM},
			{linux.AF_INET, linux.SOCK_DGRAM}, {linux.AF_INET, linux.SOCK_DGRAM, linux.IPPROTO_ICMP},
		} {
			f := t.Socket(kind[0], kind[1], kind[2])
			NonBlock(f)
			socks = append(socks, f)
		}
		Meddle(tt, socks, levels, address)
		for _, f := range socks {
			f.Put()
		}
		if now := inet.KeptNow(); now.Pending > before.Pending || now.TCP > before.TCP || now.UDP > before.UDP || now.Sockets > before.Sockets {
			t.Fatalf("kept: %+v before, and now %+v", before, now)
		}
	}
}

// address returns where to bind to, or, with s, an address that leads to it.
func address(r *rand.Rand, s sock.Socket) *sock.Addr {
	if s == nil {
		if r.IntN(2) == 0 {
			return In6([16]byte{15: 1}, 0)
		}
		return In4(0, 0, 0, 0, 0)
	}
	a := new(sock.Addr)
	if s.LocalAddr(a); r.IntN(4) == 0 {
		a.Set(make([]byte, 16)) // disconnects
	} else if a.Len == 16 && a.B[4] == 0 {
		a.B[4], a.B[7] = 127, 1
	}
	return a
}
