package inet_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/sock"
	. "hardtack/kernel/net/socktest"
)

// Several threads do with a few sockets, at once, whatever calls can do with one.
func TestSocketsOfManyThreads(tt *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	defer settings.PingGroupHi.Set(settings.PingGroupHi.Get())
	settings.PingGroupLo.Set(0)
	defer settings.PingGroupLo.Set(1)
	settings.PingGroupHi.Set(1 << 30)
	for range rounds {
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
		var all sync.WaitGroup
		for range 3 {
			seed := rand.Uint64()
			all.Go(func() { meddle(New(tt), rand.New(rand.NewPCG(seed, 1)), socks) })
		}
		all.Wait()
		for _, f := range socks {
			f.Put()
		}
	}
}

// meddle makes random calls on sockets; none waits, and any error is right.
func meddle(t *T, r *rand.Rand, socks []*vfs.File) {
	for range 60 {
		f := socks[r.IntN(len(socks))]
		s := S(f)
		var name sock.Addr
		switch r.IntN(16) {
		case 0:
			a := In4(0, 0, 0, 0, 0)
			if r.IntN(2) == 0 {
				a = In6([16]byte{15: 1}, 0)
			}
			s.Bind(t.C, f, nil, a)
		case 1, 2:
			s.Listen(t.C, r.IntN(4))
		case 3:
			if g, e := s.Accept(t.C, true, 0); e == 0 {
				t.WriteErr(g, "accepted")
				g.Put()
			}
		case 4, 5:
			S(socks[r.IntN(len(socks))]).LocalAddr(&name)
			if r.IntN(4) == 0 {
				name.Set(make([]byte, 16)) // disconnects
			} else if name.Len == 16 && name.B[4] == 0 {
				name.B[4], name.B[7] = 127, 1
			}
			s.Connect(t.C, nil, &name, true)
		case 6:
			s.Shutdown(t.C, int32(r.IntN(3)))
		case 7:
			s.PeerAddr(&name)
		case 8:
			t.Send(f, "some text", &sock.Msg{Flags: []int32{0, linux.MSG_MORE, linux.MSG_OOB}[r.IntN(3)] | linux.MSG_DONTWAIT | linux.MSG_NOSIGNAL})
		case 9:
			t.Recv(f, 100, []int32{0, linux.MSG_PEEK, linux.MSG_OOB}[r.IntN(3)]|linux.MSG_DONTWAIT)
		case 10:
			var sum ledger.Sum
			if tcp, is := f.Ops.(*inet.TCP); is { // of the others an estimate is read without a lock
				tcp.Holds(&sum)
			}
		case 11:
			level := []int32{linux.SOL_SOCKET, linux.IPPROTO_TCP, linux.IPPROTO_IP}[r.IntN(3)]
			s.SetOpt(t.C, level, int32(r.IntN(60)), []byte{byte(r.IntN(3)), 0, 0, 0, 0, 0, 0, 0}[:4+4*r.IntN(2)])
		case 12:
			level := []int32{linux.SOL_SOCKET, linux.IPPROTO_TCP, linux.IPPROTO_IP}[r.IntN(3)]
			s.GetOpt(t.C, level, int32(r.IntN(60)), make([]byte, 256))
		default:
			Ready(f)
		}
	}
}
