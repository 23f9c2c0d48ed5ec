package netif_test

import (
	"crypto/rand"
	"encoding/binary"
	"io"
	mrand "math/rand/v2"
	"net/netip"
	"sync"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"

	"hardtack/abi/linux"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/netdev"
	"hardtack/kernel/net/netif"
	. "hardtack/kernel/net/socktest"
)

// An end is a connection between a server and segments that a test makes. The server sends
// back what it receives, and closes when there is no more.
type end struct {
	recv func([]netdev.Frame)
	mu   sync.Mutex
	// What the server has sent; guarded by mu.
	iss      uint32            // its first number
	acked    uint32            // what it has acknowledged, from our first number
	data     map[uint32]string // segments by their place
	open     bool
	reset    bool
	finished uint32 // the place of its FIN; 0 for none
}

const (
	endISN  = 1000
	endPort = 5000
)

func (*end) MAC() [6]byte                          { return [6]byte{2, 0, 0, 0, 0, 9} }
func (*end) MTU() int                              { return 1500 }
func (*end) Features() netdev.Features             { return 0 }
func (*end) Hold()                                 {}
func (*end) Flush()                                {}
func (c *end) SetReceiver(fn func([]netdev.Frame)) { c.recv = fn }

func (c *end) Transmit(frames []netdev.Frame) int {
	for _, f := range frames {
		var b []byte
		for _, p := range f.Parts {
			b = append(b, p...)
		}
		c.look(b)
	}
	return len(frames)
}

// look takes what the server sends.
func (c *end) look(b []byte) {
	be := binary.BigEndian
	if len(b) < 54 || b[12] != 8 || b[13] != 0 || b[23] != 6 {
		return
	}
	t := b[34 : 14+be.Uint16(b[16:])]
	pseudo := append(append([]byte{}, b[26:34]...), 0, 6, byte(len(t)>>8), byte(len(t)))
	right := checksum.Checksum(t, checksum.Checksum(pseudo, 0)) == 0xffff && checksum.Checksum(b[14:34], 0) == 0xffff
	c.mu.Lock()
	defer c.mu.Unlock()
	seq := be.Uint32(t[4:])
	switch {
	case !right:
		c.reset = true // which no end should be
	case t[13]&4 != 0:
		c.reset = true
	case t[13]&2 != 0:
		c.iss, c.open = seq, true
	default:
		c.acked = max(c.acked, be.Uint32(t[8:])-endISN)
		data := string(t[t[12]>>4*4:])
		if data != "" {
			c.data[seq-c.iss-1] = data
		}
		if t[13]&1 != 0 {
			c.finished = seq - c.iss + uint32(len(data))
		}
	}
}

// received returns what the server has sent without a gap.
func (c *end) received() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all string
	for {
		s := ""
		for at, d := range c.data {
			if int(at) <= len(all) && int(at)+len(d) > len(all) {
				s = d[len(all)-int(at):]
				break
			}
		}
		if s == "" {
			return all
		}
		all += s
	}
}

// segment makes one: its place counts from the first byte, ack from the server's. A wrong
// one has a bad checksum.
func (c *end) segment(flags byte, place, ack uint32, data string, stamp uint32, wrong bool) netdev.Frame {
	be := binary.BigEndian
	options := []byte{1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0}
	if flags&2 != 0 {
		options = append([]byte{2, 4, 5, 0xb4, 4, 2, 3, 3, 7, 1, 1, 1}, append([]byte{1, 1}, options[2:]...)...)
	}
	at := len(options) - 8
	be.PutUint32(options[at:], stamp)
	b := make([]byte, 54+len(options)+len(data))
	copy(b, []byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 8, 0})
	h, t := b[14:34], b[34:]
	h[0], h[8], h[9] = 0x45, 64, 6
	be.PutUint16(h[2:], uint16(len(b)-14))
	copy(h[12:], []byte{10, 9, 0, 1, 10, 9, 0, 2})
	be.PutUint16(h[10:], ^checksum.Checksum(h, 0))
	be.PutUint16(t, endPort)
	be.PutUint16(t[2:], 7)
	be.PutUint32(t[4:], endISN+place)
	c.mu.Lock()
	if flags&16 != 0 {
		be.PutUint32(t[8:], c.iss+1+ack)
	}
	c.mu.Unlock()
	t[12], t[13] = byte(20+len(options))/4<<4, flags
	be.PutUint16(t[14:], 60000)
	copy(t[20:], options)
	copy(t[20+len(options):], data)
	pseudo := append(append([]byte{}, h[12:20]...), 0, 6, byte(len(t)>>8), byte(len(t)))
	be.PutUint16(t[16:], ^checksum.Checksum(t, checksum.Checksum(pseudo, 0)))
	if wrong {
		t[16] ^= 0x55
	}
	return netdev.Frame{Parts: [][]byte{b}}
}

// newEnd makes a machine with a server. general: what it receives passes all layers,
// because a socket looks at it.
func newEnd(t *T, general bool) *end {
	c := &end{data: map[uint32]string{}}
	n := inet.New(inet.Config{Rand: rand.Reader, Log: io.Discard})
	l, err := netif.Add(n, c, "eth0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Apply(netif.Settings{Address: netip.MustParsePrefix("10.9.0.2/24")}); err != nil {
		t.Fatal(err)
	}
	if general {
		s, e := n.Socket(t.C, linux.AF_INET, linux.SOCK_RAW, linux.IPPROTO_TCP)
		t.OK(e, "raw socket")
		_ = s
	}
	server := socket(t, n, linux.SOCK_STREAM)
	t.OK(S(server).Bind(t.C, server, nil, In4(0, 0, 0, 0, 7)), "bind")
	t.OK(S(server).Listen(t.C, 5), "listen")
	t.Go(func(t *T) { serve(t, server) })
	// The server asks for our MAC first.
	c.recv([]netdev.Frame{{Parts: [][]byte{{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1,
		2, 0, 0, 0, 0, 1, 10, 9, 0, 1, 0, 0, 0, 0, 0, 0, 10, 9, 0, 2}}}})
	c.recv([]netdev.Frame{c.segment(2, 0, 0, "", 1, false)})
	eventually(t, "an answer to the SYN", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.open
	})
	c.recv([]netdev.Frame{c.segment(16, 1, 0, "", 2, false)})
	return c
}

func serve(t *T, server *vfs.File) {
	y, e := S(server).Accept(t.C, false, 0)
	t.OK(e, "accept")
	defer y.Put()
	for {
		s, e := t.ReadErr(y, 3000)
		if e != 0 || s == "" {
			return
		}
		if _, e := t.WriteErr(y, s); e != 0 {
			return
		}
	}
}

// Segments that come in order, out of order, twice, overlapping, damaged, with old
// timestamps and with acknowledgements old and new lead to the same on the short way
// (overlay/_netstack/tcp_receive.go) and on the general one: every byte is received once,
// sent back and acknowledged. (With netstack as it is both go the general way.)
func TestShortWayAgrees(tt *testing.T) {
	const rounds = 30
	for round := range uint64(rounds) {
		t := New(tt)
		ends := []*end{newEnd(t, false), newEnd(t, true)}
		rng := mrand.New(mrand.NewPCG(round, 7))
		text := make([]byte, 4000+rng.IntN(30000))
		for i := range text {
			text[i] = 'a' + byte(rng.IntN(26))
		}
		stamp := uint32(10)
		var batch [2][]netdev.Frame
		add := func(from, to int, late uint32, wrong bool) {
			for i, c := range ends {
				batch[i] = append(batch[i], c.segment(16|8, 1+uint32(from), uint32(len(c.received())), string(text[from:to]), stamp-late, wrong))
			}
		}
		for at := 0; at < len(text); {
			to := min(len(text), at+1+rng.IntN(1440))
			stamp++
			switch rng.IntN(8) {
			case 0: // lost for now: what follows comes first
				next := min(len(text), to+1+rng.IntN(700))
				if next > to {
					add(to, next, 0, false)
				}
			case 1:
				add(at, to, 0, true)
			case 2:
				add(max(0, at-rng.IntN(900)), to, 0, false)
			case 3:
				add(at, to, 1000, false) // it is too old
			case 4:
				add(at, to, 0, false)
			}
			add(at, to, 0, false)
			at = to
			if rng.IntN(3) == 0 {
				for i, c := range ends {
					c.recv(batch[i])
					batch[i] = nil
				}
			}
		}
		for i, c := range ends {
			c.recv(batch[i])
			acknowledge := func(flags byte, place int) {
				stamp++
				c.recv([]netdev.Frame{c.segment(flags, uint32(place), uint32(len(c.received())), "", stamp, false)})
			}
			eventually(t, "all data", func() bool {
				acknowledge(16, 1+len(text))
				return c.received() == string(text)
			})
			acknowledge(16|1, 1+len(text))
			eventually(t, "the end", func() bool {
				c.mu.Lock()
				defer c.mu.Unlock()
				return c.finished == uint32(len(text))+1 && c.acked == uint32(len(text))+2
			})
			if c.reset {
				t.Error("round", round, "end", i, "has reset the connection, or sent a wrong checksum")
			}
		}
	}
}
