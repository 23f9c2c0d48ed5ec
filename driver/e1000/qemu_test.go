package e1000_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hardtack/driver"
	"hardtack/driver/e1000"
	"hardtack/driver/qtest"
	"hardtack/kernel/net/netdev"
)

// patience is for what comes at once, except for a busy machine.
const patience = time.Minute

// card is one of QEMU's cards, the other end of its cable, and QEMU's monitor.
type card struct {
	t       *testing.T
	d       *e1000.Device
	c       *net.UnixConn
	to      *net.UnixAddr
	monitor net.Conn
}

// noMessages is a machine on which only pins interrupt.
type noMessages struct{ *qtest.Machine }

func (noMessages) MSI(int, func()) (uint64, uint32, error) { return 0, 0, errors.New("none here") }

var kinds = []struct {
	name, device string
	platform     func(*qtest.Machine) driver.Platform
}{
	{"82574L", "e1000e", func(m *qtest.Machine) driver.Platform { return m }},
	{"82574L pin", "e1000e", func(m *qtest.Machine) driver.Platform { return noMessages{m} }},
	{"82540EM", "e1000", func(m *qtest.Machine) driver.Platform { return m }},
	{"82545EM", "e1000-82545em", func(m *qtest.Machine) driver.Platform { return m }},
}

// each runs a test on each kind of card.
func each(t *testing.T, test func(c *card)) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			dir := t.TempDir()
			ours, theirs, mon := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "m")
			u, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: ours, Net: "unixgram"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { u.Close() })
			_ = u.SetReadBuffer(4 << 20)
			l, err := net.Listen("unix", mon)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			m := qtest.Start(t, "q35", "/machine/q35/ioapic", 0,
				"-netdev", fmt.Sprintf("dgram,id=n,local.type=unix,local.path=%s,remote.type=unix,remote.path=%s", theirs, ours),
				"-device", k.device+",netdev=n,mac=52:54:00:00:00:09,romfile=", "-monitor", "unix:"+mon)
			c := &card{t: t, c: u, to: &net.UnixAddr{Name: theirs, Net: "unixgram"}}
			if c.monitor, err = l.Accept(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.monitor.Close() })
			for _, f := range qtest.Functions(m) {
				if e1000.Is(f) {
					if c.d, err = e1000.New(k.platform(m), f); err != nil {
						t.Fatal(err)
					}
				}
			}
			if c.d == nil {
				t.Fatal("no card")
			}
			c.within("link", c.d.LinkUp)
			test(c)
		})
	}
}

func (c *card) within(what string, f func() bool) {
	c.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if f() {
			return
		}
	}
	c.t.Fatalf("%s: not within %v", what, patience)
}

// read returns the next frame on the cable.
func (c *card) read() []byte {
	c.t.Helper()
	b := make([]byte, 70000)
	_ = c.c.SetReadDeadline(time.Now().Add(patience))
	n, err := c.c.Read(b)
	if err != nil {
		c.t.Fatal(err)
	}
	return b[:n]
}

func (c *card) write(b []byte) {
	c.t.Helper()
	_ = c.c.SetWriteDeadline(time.Now().Add(patience))
	if _, err := c.c.WriteTo(b, c.to); err != nil {
		c.t.Fatal(err)
	}
}

// received has the card pass frames to the result, copied.
func (c *card) received() *inbox {
	x := new(inbox)
	c.d.SetReceiver(func(batch []netdev.Frame) {
		x.mu.Lock()
		defer x.mu.Unlock()
		for _, f := range batch {
			f.Parts = [][]byte{bytes.Join(f.Parts, nil)}
			x.frames = append(x.frames, f)
		}
	})
	return x
}

type inbox struct {
	mu     sync.Mutex
	frames []netdev.Frame
}

func (x *inbox) count() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.frames)
}

func (x *inbox) take() []netdev.Frame {
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.frames
	x.frames = nil
	return f
}

// numbered returns a broadcast frame with a number, and a size and content that follow from it.
func numbered(n uint32) []byte {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	b := make([]byte, 60+r.IntN(1454))
	copy(b, "\xff\xff\xff\xff\xff\xff\x52\x54\x00\x00\x00\x01\x88\xb5")
	binary.BigEndian.PutUint32(b[14:], n)
	for i := 18; i < len(b); i++ {
		b[i] = byte(r.Uint32())
	}
	return b
}

// Frames cross whole and in order, both ways, many times round the rings.
func TestQEMUFrames(t *testing.T) {
	each(t, func(c *card) {
		const total = 1500
		if c.d.MAC() != [6]byte{0x52, 0x54, 0, 0, 0, 9} || c.d.MTU() != 1500 || c.d.MaxMTU() != 9000 {
			c.t.Errorf("MAC %x, MTU %d", c.d.MAC(), c.d.MTU())
		}
		x := c.received()
		go func() {
			for sent := 0; sent < total; {
				var pkts []netdev.Frame
				for i := range min(1+rand.IntN(100), total-sent) {
					b := numbered(uint32(sent + i))
					pkts = append(pkts, netdev.Frame{Parts: [][]byte{b[:14], b[14:]}})
				}
				n := c.d.Transmit(pkts)
				if sent += n; n == 0 {
					time.Sleep(time.Millisecond)
				}
			}
		}()
		for i := range uint32(total) {
			if b := c.read(); !bytes.Equal(b, numbered(i)) {
				c.t.Fatalf("frame %d: %d bytes differ", i, len(b))
			}
		}
		for i := range uint32(total) {
			c.write(numbered(i))
		}
		c.within("all frames received", func() bool { return x.count() == total })
		for i, f := range x.take() {
			if !bytes.Equal(f.Parts[0], numbered(uint32(i))) || f.ChecksumValid {
				c.t.Fatalf("frame %d: %d bytes differ, or %v", i, f.Len(), f.ChecksumValid)
			}
		}
		if s := string(c.d.Stats()); !strings.Contains(s, fmt.Sprintf("tx_packets %d\n", total)) || !strings.Contains(s, fmt.Sprintf("rx_packets %d\n", total)) {
			c.t.Errorf("statistics:\n%s", s)
		}
	})
}

// ipv4 and ipv6 return a TCP segment with n bytes of data, whose checksum is that of the
// pseudo header only.
func ipv4(dst, src [6]byte, n int) []byte {
	b := make([]byte, 54+n)
	copy(b, dst[:])
	copy(b[6:], src[:])
	copy(b[12:], []byte{8, 0, 0x45, 0})
	binary.BigEndian.PutUint16(b[16:], uint16(40+n))
	copy(b[20:], []byte{0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2})
	binary.BigEndian.PutUint16(b[24:], ^sum(b[14:34], 0))
	tcp(b[34:], sum(b[26:34], uint32(6+20+n)))
	return b
}

func ipv6(dst, src [6]byte, n int) []byte {
	b := make([]byte, 74+n)
	copy(b, dst[:])
	copy(b[6:], src[:])
	copy(b[12:], []byte{0x86, 0xdd, 0x60, 0, 0, 0})
	binary.BigEndian.PutUint16(b[18:], uint16(20+n))
	copy(b[20:], []byte{6, 64, 0xfd, 15: 0, 17: 1, 18: 0xfd, 33: 2})
	tcp(b[54:], sum(b[22:54], uint32(6+20+n)))
	return b
}

func tcp(b []byte, pseudo uint16) {
	copy(b, []byte{0x10, 0, 0x20, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 0xff, 0xff})
	for i := 20; i < len(b); i++ {
		b[i] = byte(i * 11 >> 2)
	}
	binary.BigEndian.PutUint16(b[16:], pseudo)
}

func sum(b []byte, s uint32) uint16 {
	for ; len(b) >= 2; b = b[2:] {
		s += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) > 0 {
		s += uint32(b[0]) << 8
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// whole reports whether a segment's checksums are right.
func whole(b []byte) bool {
	if b[12] == 8 {
		end := 14 + int(binary.BigEndian.Uint16(b[16:]))
		return end <= len(b) && sum(b[14:34], 0) == 0xffff && sum(b[34:end], uint32(sum(b[26:34], uint32(6+end-34)))) == 0xffff
	}
	end := 54 + int(binary.BigEndian.Uint16(b[18:]))
	return end <= len(b) && sum(b[54:end], uint32(sum(b[22:54], uint32(6+end-54)))) == 0xffff
}

// Checksums are computed and segments are cut by the card, for IPv4 and IPv6 in turn.
func TestQEMUOffloads(t *testing.T) {
	each(t, func(c *card) {
		c.received()
		peer := [6]byte{2, 0, 0, 0, 0, 1}
		for round := range 200 {
			make, start, gso := ipv4, 34, netdev.GSOTCPv4
			if round&1 != 0 {
				make, start, gso = ipv6, 54, netdev.GSOTCPv6
			}
			const mss = 1400
			n := []int{1, 10, 1400, 3000, 30000, 1401}[round%6]
			b := make(peer, c.d.MAC(), n)
			f := netdev.Frame{Parts: [][]byte{b[:start+20], b[start+20:]}, NeedsChecksum: true, ChecksumStart: uint16(start), ChecksumOffset: 16}
			if n > mss {
				f.GSO, f.HeaderLen, f.SegmentSize = gso, uint16(start+20), mss
			}
			if c.d.Transmit([]netdev.Frame{f}) != 1 {
				c.t.Fatal("not taken")
			}
			for at := 0; at < n; at += mss {
				got := c.read()
				size := min(mss, n-at)
				head := got[start+4:]
				if !whole(got) || binary.BigEndian.Uint32(head) != uint32(1+at) || !bytes.Equal(got[start+20:start+20+size], b[start+20+at:start+20+at+size]) {
					c.t.Fatalf("round %d, %d bytes at %d: % x", round, n, at, got[:start+20])
				}
				if id := binary.BigEndian.Uint16(got[18:]); start == 34 && id != uint16(at/mss) {
					c.t.Fatalf("round %d, %d bytes at %d: identification %d", round, n, at, id)
				}
				if push := head[9]&8 != 0; push != (at+size == n) {
					c.t.Fatalf("round %d, %d bytes at %d: flags %#x", round, n, at, head[9])
				}
			}
		}
	})
}

// What the card checks is told, and what is wrong is not called right.
func TestQEMUReceiveChecksum(t *testing.T) {
	each(t, func(c *card) {
		x := c.received()
		peer := [6]byte{2, 0, 0, 0, 0, 1}
		for i, make := range []func(a, b [6]byte, n int) []byte{ipv4, ipv6} {
			b := make(c.d.MAC(), peer, 100)
			start := 34 + 20*i
			binary.BigEndian.PutUint16(b[start+16:], ^sum(b[start:], 0))
			bad := bytes.Clone(b)
			bad[len(bad)-1] ^= 1
			for _, b := range [][]byte{b, bad} {
				c.write(b)
				c.within("a frame", func() bool { return x.count() == 1 })
				f := x.take()[0]
				// QEMU's 8254x checks nothing.
				if f.ChecksumValid != (whole(b) && strings.Contains(string(c.d.Stats()), "82574L")) {
					c.t.Errorf("IP %d, whole %v: told %v", 4+2*i, whole(b), f.ChecksumValid)
				}
			}
		}
	})
}

// Frames of 9,000 bytes span several buffers.
func TestQEMUJumbo(t *testing.T) {
	each(t, func(c *card) {
		x := c.received()
		b := make([]byte, 14+9000)
		copy(b, "\xff\xff\xff\xff\xff\xff\x52\x54\x00\x00\x00\x01\x88\xb5")
		for i := 14; i < len(b); i++ {
			b[i] = byte(i * 7 >> 3)
		}
		for range 200 {
			c.write(b)
			c.within("a frame", func() bool { return x.count() == 1 })
			if f := x.take()[0]; !bytes.Equal(f.Parts[0], b) {
				c.t.Fatalf("%d bytes differ", f.Len())
			}
			if c.d.Transmit([]netdev.Frame{{Parts: [][]byte{b}}}) != 1 {
				c.t.Fatal("not taken")
			}
			if got := c.read(); !bytes.Equal(got, b) {
				c.t.Fatalf("%d bytes were sent", len(got))
			}
		}
	})
}

// A cable that is pulled out is seen, and frames are sent again when it is back.
func TestQEMULink(t *testing.T) {
	each(t, func(c *card) {
		changes := make(chan bool, 10)
		c.d.OnLink(func() { changes <- c.d.LinkUp() })
		c.received()
		for range 3 {
			for _, up := range []bool{false, true} {
				fmt.Fprintf(c.monitor, "set_link n %s\n", map[bool]string{true: "on", false: "off"}[up])
				select {
				case got := <-changes:
					if got != up {
						c.t.Fatalf("link %v, want %v", got, up)
					}
				case <-time.After(patience):
					c.t.Fatalf("the link's change to %v is not told", up)
				}
				b := numbered(1)
				if c.d.Transmit([]netdev.Frame{{Parts: [][]byte{b}}}) != 1 {
					c.t.Fatal("not taken")
				}
			}
			if !bytes.Equal(c.read(), numbered(1)) {
				c.t.Fatal("another frame")
			}
		}
	})
}

// Frames for other stations come only if they are wanted.
func TestQEMUStations(t *testing.T) {
	each(t, func(c *card) {
		x := c.received()
		other, own := numbered(1), numbered(2)
		copy(other, []byte{2, 0, 0, 0, 0, 77})
		mac := c.d.MAC()
		copy(own, mac[:])
		for _, all := range []bool{false, true, false} {
			c.d.SetPromiscuous(all)
			c.write(other)
			c.write(own)
			want := 1
			if all {
				want = 2
			}
			c.within("frames", func() bool { return x.count() >= want })
			f := x.take()
			if len(f) != want || !bytes.Equal(f[want-1].Parts[0], own) {
				c.t.Fatalf("promiscuous %v: %d frames", all, len(f))
			}
		}
	})
}
