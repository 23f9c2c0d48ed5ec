package unix_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/sock"
	. "hardtack/kernel/net/socktest"
	"hardtack/kernel/net/unix"
)

// Several threads do with a few sockets, at once, whatever calls can do with one; some pass
// them to each other. What is under way when all are closed is garbage: the next socket that is
// closed has it collected, as on Linux.
func TestSocketsOfManyThreads(tt *testing.T) {
	for round := range 300 {
		t := New(tt)
		var socks []*vfs.File
		for _, kind := range []int32{linux.SOCK_STREAM, linux.SOCK_STREAM, linux.SOCK_SEQPACKET, linux.SOCK_SEQPACKET, linux.SOCK_DGRAM, linux.SOCK_DGRAM} {
			f := t.Socket(linux.AF_UNIX, kind, 0)
			NonBlock(f)
			socks = append(socks, f)
		}
		a, b := t.Pair(linux.SOCK_STREAM)
		NonBlock(a)
		NonBlock(b)
		socks = append(socks, a, b)
		address := func(r *rand.Rand, s sock.Socket) *sock.Addr {
			a := new(sock.Addr)
			switch {
			case s == nil:
				a = Abstract(fmt.Sprint("many", round, r.IntN(8)))
			case r.IntN(4) == 0:
				a.Set(make([]byte, 2)) // disconnects
			default:
				s.LocalAddr(a)
			}
			return a
		}
		Meddle(tt, socks, []int32{linux.SOL_SOCKET}, address)
		for _, f := range socks {
			f.Put()
		}
		for until := time.Now().Add(30 * time.Second); unix.InFlight() != 0; time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				t.Fatal(unix.InFlight(), "files were not collected")
			}
			a, b := t.Pair(linux.SOCK_STREAM)
			a.Put()
			b.Put()
		}
	}
}
