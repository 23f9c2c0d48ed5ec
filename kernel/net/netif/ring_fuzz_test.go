package netif_test

import (
	"crypto/rand"
	"encoding/binary"
	"io"
	"net/netip"
	"sync"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"

	"hardtack/abi/linux"
	"hardtack/driver/virtio"
	"hardtack/driver/virtio/net"
	"hardtack/driver/virtio/softdev"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/netif"
	. "hardtack/kernel/net/socktest"
)

// ringed is a network behind a virtio card whose device is the fuzz target. It lives for
// all inputs: a packet may leave what harms a later one.
type ringed struct {
	mu sync.Mutex
	tr *softdev.Transport
	rx *softdev.Ring
	tx *softdev.Ring
}

const ringedAddress = "10.9.0.2/24"

// newRinged makes one with a listening TCP socket and a UDP socket, both at port 7.
func newRinged(f *testing.F) *ringed {
	m := softdev.NewMachine()
	space := append([]byte{2, 0, 0, 0, 0, 9, 0, 0}, 1, 0, 0xdc, 5)
	// Checksums and segments both ways, buffers that are merged, no event index.
	tr := &softdev.Transport{M: m, DeviceType: virtio.TypeNet, Offer: 1<<0 | 1<<1 | 1<<5 | 1<<7 | 1<<11 | 1<<15, Sizes: []int{256, 256}, Space: space}
	d, err := net.New(m, tr, 1)
	if err != nil {
		f.Fatal(err)
	}
	n := inet.New(inet.Config{Rand: rand.Reader, Log: io.Discard})
	l, err := netif.Add(n, d, "eth0")
	if err != nil {
		f.Fatal(err)
	}
	if err := l.Apply(netif.Settings{Address: netip.MustParsePrefix(ringedAddress)}); err != nil {
		f.Fatal(err)
	}
	t := New(&testing.T{})
	for _, typ := range []int32{linux.SOCK_STREAM, linux.SOCK_DGRAM} {
		s := socket(t, n, typ)
		t.OK(S(s).Bind(t.C, s, nil, In4(0, 0, 0, 0, 7)), "bind")
		if typ == linux.SOCK_STREAM {
			t.OK(S(s).Listen(t.C, 5), "listen")
		}
	}
	return &ringed{tr: tr, rx: tr.Ring(0), tx: tr.Ring(1)}
}

// deliver puts a virtio header and a frame into the receive queue, and takes what is sent.
func (r *ringed) deliver(header, frame []byte) {
	var heads []uint16
	var sizes []uint32
	var first []byte
	for left := append(append([]byte(nil), header...), frame...); len(left) > 0; {
		q, ok := r.rx.Next()
		if !ok {
			break
		}
		if first == nil {
			first = q.In[0]
		}
		n := q.Fill(left)
		left = left[n:]
		heads, sizes = append(heads, q.Head), append(sizes, n)
	}
	if first == nil {
		return
	}
	binary.LittleEndian.PutUint16(first[10:], uint16(len(heads)))
	for i, h := range heads {
		r.rx.Push(h, sizes[i])
	}
	r.rx.Flush()
	r.tr.Interrupt(0)
	for {
		q, ok := r.tx.Next()
		if !ok {
			break
		}
		r.tx.Push(q.Head, 0)
	}
	if r.tx.Flush() {
		r.tr.Interrupt(1)
	}
}

// repair makes an IPv4 packet's checksums right, so that the stack looks further.
func repair(frame []byte) {
	if len(frame) < 34 || binary.BigEndian.Uint16(frame[12:]) != 0x0800 {
		return
	}
	p := frame[14:]
	size := int(p[0]&15) * 4
	if size < 20 || size > len(p) {
		return
	}
	put := func(at int, sum uint16) { binary.BigEndian.PutUint16(p[at:], ^sum) }
	p[10], p[11] = 0, 0
	put(10, checksum.Checksum(p[:size], 0))
	total := min(int(binary.BigEndian.Uint16(p[2:])), len(p))
	at := map[byte]int{1: 2, 6: 16, 17: 6}[p[9]]
	if at == 0 || total < size+at+2 {
		return
	}
	p[size+at], p[size+at+1] = 0, 0
	sum := checksum.Checksum(p[size:total], 0)
	if p[9] != 1 {
		sum = checksum.Combine(sum, checksum.Checksum(p[12:20], 0))
		sum = checksum.Combine(sum, uint16(p[9]))
		sum = checksum.Combine(sum, uint16(total-size))
	}
	put(size+at, sum)
}

// FuzzRing gives the card's receive queue frames at will: each input is a header of virtio's
// and a frame, whose checksums are made right if the first byte's lowest bit is set.
// Nothing may panic, and the queue must go on.
func FuzzRing(f *testing.F) {
	r := newRinged(f)
	eth := []byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 8, 0}
	ip := func(proto byte, body ...byte) []byte {
		p := append([]byte{0x45, 0, 0, byte(20 + len(body)), 0, 1, 0x40, 0, 64, proto, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2}, body...)
		return append(append([]byte(nil), eth...), p...)
	}
	header := make([]byte, 12)
	merged := []byte{0, 1, 54, 0, 10, 0, 34, 0, 16, 0, 1, 0} // segments of 10 bytes, made one
	tcp := func(flags byte, data ...byte) []byte {
		return ip(6, append([]byte{4, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, flags, 1, 0, 0, 0, 0, 0}, data...)...)
	}
	for _, frame := range [][]byte{
		{255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 9, 0, 1, 0, 0, 0, 0, 0, 0, 10, 9, 0, 2},
		ip(1, 8, 0, 0, 0, 1, 2, 3, 4), tcp(2), tcp(16), tcp(16, make([]byte, 60)...), tcp(4), tcp(1 | 16),
		ip(17, 4, 0, 0, 7, 0, 12, 0, 0, 'd', 'a', 't', 'a'), ip(17, 4, 0, 0, 7, 0, 2, 0, 0), ip(6, 1), ip(99, 1, 2, 3),
		append([]byte{0x33, 0x33, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 58, 255}, make([]byte, 40)...),
	} {
		f.Add(byte(1), header, frame)
		f.Add(byte(0), merged, frame)
	}
	f.Fuzz(func(_ *testing.T, fix byte, header, frame []byte) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(header) != 12 || len(frame) > 1<<16 {
			return
		}
		if fix&1 != 0 {
			repair(frame)
		}
		r.deliver(header, frame)
	})
}
