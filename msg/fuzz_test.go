package msg

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"testing"
	"time"

	"hardtack/msg/internal/ring"
)

// FuzzRing plays a hostile peer: a script writes into both rings and sends
// frames, while the connection sends and receives. Whatever comes, the
// connection hands out sound messages or ends with an error, in time.
//
// A step of the script is a byte that says what, and its arguments:
//
//	0  slot (8 bits), header (64 bits): into the ring that we receive from
//	1  slot, n, n bytes: into the body of a slot
//	2  word (0-3), value (32 bits): into the control words of a ring
//	3  n (8 bits), n bytes: a frame
//	4  a sound header for the next slot: num, flags, n (8 bits each)
//	5  send a message
//	6  receive a message
func FuzzRing(f *testing.F) {
	f.Add([]byte{4, 1, 0, 8, 6, 4, 1, 0, 8, 6, 5})
	f.Add([]byte{4, 2, 1, 56, 4, 2, 2, 9, 6})
	f.Add([]byte{4, 2, 1, 56, 4, 2, 1, 56, 6})
	f.Add([]byte{4, 2, 4, 12, 6})
	f.Add([]byte{4, 3, 8, 1, 6})
	f.Add([]byte{3, 9, 5, 1, 0, 0, 0, 0, 0, 4, 0, 1, 0, 12, 1, 0, 0, 0, 64, 0, 0, 0, 0, 16, 0, 0, 4, 2, 4, 12, 6})
	f.Add([]byte{3, 12, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 3, 8, 1, 6})
	f.Add([]byte{2, 0, 255, 255, 0, 0, 5, 5, 5, 2, 1, 1, 0, 0, 0, 5})
	f.Add([]byte{0, 0, 1, 0, 255, 255, 255, 255, 255, 255, 6})
	f.Add([]byte{3, 1, 6, 6, 3, 1, 6})
	f.Add([]byte{3, 3, 7, 'x', ':', 6})
	f.Fuzz(func(t *testing.T, script []byte) {
		x, y := inprocPair("", 1)
		g := greeting{}
		b, err := bind(x, &g)
		if err != nil {
			t.Fatal(err)
		}
		opts, _ := (&Options{Spin: -1, Resolver: Directory("")}).fill()
		c := newConn(TestIface, &opts, b, session{token: newToken()})
		defer c.Close()
		go func() { // the peer takes what we send
			for {
				_, files, err := y.Recv(context.Background())
				for _, f := range files {
					f.Close()
				}
				if err != nil {
					return
				}
			}
		}()
		defer y.Close()
		_, next, err := ring.Open(y.shared.tx, y.shared.rx)
		if err != nil {
			t.Fatal(err)
		}
		_ = next
		peer, _, _ := ring.Open(y.shared.tx, y.shared.rx)
		take := func(n int) []byte {
			out := make([]byte, n)
			script = script[copy(out, script):]
			return out
		}
		u64 := func() uint64 { return binary.LittleEndian.Uint64(take(8)) }
		for len(script) > 0 {
			switch take(1)[0] % 7 {
			case 0:
				i := int(take(1)[0]) % 60
				binary.LittleEndian.PutUint64(y.shared.tx[ring.ControlBytes+64*i+56:], u64())
			case 1:
				i, n := int(take(1)[0])%60, int(take(1)[0])%57
				copy(y.shared.tx[ring.ControlBytes+64*i:], take(n))
			case 2:
				w, v := take(1)[0], take(4)
				mem := y.shared.tx
				if w&4 != 0 {
					mem = y.shared.rx
				}
				copy(mem[64*int(w%4):], v)
			case 3:
				frame := take(int(take(1)[0]))
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
				y.Send(ctx, frame, nil)
				cancel()
			case 4:
				a := take(3)
				if peer.Room == 0 {
					peer.SetSeq(peer.Seq())
					peer.Refill()
				}
				if peer.Room > 0 {
					peer.Publish(uint16(a[0]), a[1]&15, int(a[2]%64))
				}
			case 5:
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Millisecond)
				if err := sendShort(ctx, c, 1); err != nil && ctx.Err() == nil {
					checkEnd(t, c, err)
				}
				cancel()
			case 6:
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Millisecond)
				num, body, err := c.Next(ctx)
				if err != nil && ctx.Err() == nil {
					checkEnd(t, c, err)
				}
				if err == nil {
					if m := TestIface.Message(num); m == nil || len(body) < m.Min || len(body) > m.Max {
						t.Fatalf("message %d of %d bytes", num, len(body))
					}
					for _, k := range c.Caps() {
						k.Close()
					}
				}
				cancel()
			}
		}
	})
}

// checkEnd checks that the connection ended for a reason.
func checkEnd(t *testing.T, c *Conn, err error) {
	var wrong *PeerError
	if !errors.As(err, &wrong) && !errors.Is(err, ErrPeerClosed) && !errors.Is(err, ErrPeerGone) && !errors.Is(err, ErrClosed) {
		t.Fatalf("%v; closed because %v", err, c.Err())
	}
}

// FuzzFrames gives the parsers of frames anything.
func FuzzFrames(f *testing.F) {
	g := greeting{kind: frameHello, name: "x", token: token{1}}
	f.Add(g.frame())
	f.Add(bulkFrame(1, 4096))
	caps, _, _ := capsFrame(3, []Cap{{}, {End: &End{name: "n", scheme: "unix", files: []*os.File{}}}})
	f.Add(caps)
	f.Add(append([]byte{255}, make([]byte, 300)...)) // a name as long as its length can say
	f.Fuzz(func(t *testing.T, b []byte) {
		if g, err := parseGreeting(b); err == nil {
			if again, err := parseGreeting(g.frame()); err != nil || again != g {
				t.Fatalf("%+v became %+v, %v", g, again, err)
			}
		}
		parseBulk(b)
		parseCaps(b, nil)
		unmarshalEnd(b, nil)
	})
}

// FuzzCarrier gives the receiving half of a link without memory any frames.
func FuzzCarrier(f *testing.F) {
	f.Add([]byte{8, 8, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}, 5)
	f.Add([]byte{8, 0, 2, 0, 0, 2, 0, 0, 0}, 3)
	f.Add([]byte{9, 1, 0, 0, 0, 0, 0, 0, 0}, 9)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		x, _ := inprocPair("", 1)
		k, mine := newCarrier(x, 0)
		_, rx, err := ring.Open(mine.tx, mine.rx)
		if err != nil {
			t.Fatal(err)
		}
		k.mine, k.in = rx, new(inbox)
		defer k.stop()
		time.AfterFunc(20*time.Millisecond, k.stop) // nobody makes room
		if len(b) == 0 {
			return
		}
		cut = 1 + max(0, cut)%len(b)
		k.frame(b[:cut])
		if rest := b[cut:]; len(rest) > 0 {
			k.frame(append([]byte{b[0]}, rest...))
		}
	})
}

// FuzzEnd reads ends from anybody. One that is accepted is written the same.
func FuzzEnd(f *testing.F) {
	plain := &End{name: "test", scheme: "unix", link: []byte{1, 0, 0}, files: make([]*os.File, 2), nlink: 2}
	f.Add(plain.marshal(), 2)
	full := *plain
	var pool bulkTx
	pool.replace(3, Region{Mem: make([]byte, MinBulk)})
	full.bulk = pool.appendState(nil)
	full.frames = []endFrame{{bulkFrame(7, MinBulk), 1}, {[]byte{frameCaps, 0, 1, 0, 0, 0, 0, 0, 0, 0}, 0}}
	f.Add(full.marshal(), 4)
	f.Fuzz(func(t *testing.T, b []byte, files int) {
		e, err := unmarshalEnd(b, make([]*os.File, min(max(files, 0), 300)))
		if err != nil {
			return
		}
		again, err := unmarshalEnd(e.marshal(), e.files)
		if err != nil || again.nlink != e.nlink || string(again.marshal()) != string(e.marshal()) {
			t.Fatalf("%+v\n%+v\n%v", e, again, err)
		}
		if len(e.bulk) > 0 {
			tx, _, err := ring.Open(ring.Memory(ring.PageBytes), ring.Memory(ring.PageBytes))
			if err != nil {
				t.Fatal(err)
			}
			n := bulkStateSize(e.bulk)
			if n > 1<<20 {
				return
			}
			var p bulkTx
			if p.restore(e.bulk, Region{Mem: make([]byte, n)}, tx) == nil && p.fits(tx, BulkBytes) {
				p.at(BulkBytes)
			}
		}
	})
}
