package socktest

import (
	"math/rand/v2"
	"sync"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/sock"
)

// Meddle has three threads make random calls on some sockets, at once. No call waits, and any
// error is right. address returns an address to bind to, or, with a socket, one that leads to
// it; levels are those of options.
func Meddle(tb testing.TB, socks []*vfs.File, levels []int32, address func(*rand.Rand, sock.Socket) *sock.Addr) {
	var all sync.WaitGroup
	for range 3 {
		t, r := New(tb), rand.New(rand.NewPCG(rand.Uint64(), 1))
		all.Go(func() {
			for range 60 {
				meddle(t, r, socks, levels, address)
			}
		})
	}
	all.Wait()
}

func meddle(t *T, r *rand.Rand, socks []*vfs.File, levels []int32, address func(*rand.Rand, sock.Socket) *sock.Addr) {
	f, other := socks[r.IntN(len(socks))], socks[r.IntN(len(socks))]
	s := S(f)
	switch r.IntN(16) {
	case 0:
		s.Bind(t.C, f, nil, address(r, nil))
	case 1, 2:
		s.Listen(t.C, r.IntN(4))
	case 3:
		if g, e := s.Accept(t.C, true, 0); e == 0 {
			t.WriteErr(g, "accepted")
			g.Put()
		}
	case 4, 5:
		s.Connect(t.C, nil, address(r, S(other)), true)
	case 6:
		s.Shutdown(t.C, int32(r.IntN(3)))
	case 7:
		s.PeerAddr(new(sock.Addr))
	case 8:
		m := &sock.Msg{Flags: []int32{0, linux.MSG_MORE, linux.MSG_OOB}[r.IntN(3)] | linux.MSG_DONTWAIT | linux.MSG_NOSIGNAL}
		if r.IntN(4) == 0 {
			other.Get()
			m.Rights, m.MaxFiles = []*vfs.File{other}, 100
		}
		t.Send(f, "some text", m)
		putAll(m.Rights) // which were not taken
	case 9:
		if _, m, _ := t.Recv(f, 100, []int32{0, linux.MSG_PEEK, linux.MSG_OOB}[r.IntN(3)]|linux.MSG_DONTWAIT); m != nil {
			putAll(m.Rights)
		}
	case 10:
		if b := s.SockBase(); b.Domain == linux.AF_UNIX || b.Type == linux.SOCK_STREAM { // the others' estimate takes no lock
			f.Ops.(interface{ Holds(*ledger.Sum) }).Holds(new(ledger.Sum))
		}
	case 11:
		s.SetOpt(t.C, levels[r.IntN(len(levels))], int32(r.IntN(60)), []byte{byte(r.IntN(3)), 0, 0, 0, 0, 0, 0, 0}[:4+4*r.IntN(2)])
	case 12:
		s.GetOpt(t.C, levels[r.IntN(len(levels))], int32(r.IntN(60)), make([]byte, 256))
	default:
		Ready(f)
	}
}

func putAll(files []*vfs.File) {
	for _, f := range files {
		f.Put()
	}
}
