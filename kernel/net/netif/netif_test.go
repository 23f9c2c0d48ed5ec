package netif_test

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	mrand "math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/netdev"
	"hardtack/kernel/net/netif"
	"hardtack/kernel/net/sock"
	. "hardtack/kernel/net/socktest"
)

// cable is one end of a wire between two devices.
type cable struct {
	mac      [6]byte
	features netdev.Features
	out, in  chan netdev.Frame
	drop     func(f *netdev.Frame) bool // loses frames
	sent     atomic.Pointer[atomic.Int32]
}

func cables(features netdev.Features) (a, b *cable) {
	x, y := make(chan netdev.Frame, 1024), make(chan netdev.Frame, 1024)
	return &cable{mac: [6]byte{2, 0, 0, 0, 0, 1}, features: features, out: x, in: y},
		&cable{mac: [6]byte{2, 0, 0, 0, 0, 2}, features: features, out: y, in: x}
}

func (c *cable) MAC() [6]byte              { return c.mac }
func (c *cable) MTU() int                  { return 1500 }
func (c *cable) Features() netdev.Features { return c.features }

func (c *cable) Transmit(pkts []netdev.Frame) int {
	if n := c.sent.Load(); n != nil {
		n.Add(int32(len(pkts)))
	}
	for i, f := range pkts {
		if c.drop != nil && c.drop(&f) {
			continue
		}
		var b []byte
		for _, p := range f.Parts {
			b = append(b, p...)
		}
		f.Parts = [][]byte{b}
		select {
		case c.out <- f:
		default:
			return i
		}
	}
	return len(pkts)
}

func (c *cable) Hold()  {}
func (c *cable) Flush() {}

func (c *cable) SetReceiver(recv func([]netdev.Frame)) {
	go func() {
		for f := range c.in {
			batch := []netdev.Frame{f}
			for len(batch) < 16 && len(c.in) > 0 {
				batch = append(batch, <-c.in)
			}
			recv(batch)
			for _, f := range batch { // the device overwrites its buffers
				for _, p := range f.Parts {
					clear(p)
				}
			}
		}
	}()
}

// machines returns two networks joined by a wire, 10.9.0.1 and 10.9.0.2.
func machines(t testing.TB, features netdev.Features) (a, b *inet.Net, ca, cb *cable) {
	ca, cb = cables(features)
	nets := [2]*inet.Net{}
	for i, c := range []*cable{ca, cb} {
		nets[i] = inet.New(inet.Config{Rand: rand.Reader, Log: os.Stderr})
		l, err := netif.Add(nets[i], c, "eth0")
		if err != nil {
			t.Fatal(err)
		}
		address := netip.MustParsePrefix([]string{"10.9.0.1/24", "10.9.0.2/24"}[i])
		if err := l.Apply(netif.Settings{Address: address}); err != nil {
			t.Fatal(err)
		}
	}
	return nets[0], nets[1], ca, cb
}

func socket(t *T, n *inet.Net, typ int32) *vfs.File {
	s, e := n.Socket(t.C, linux.AF_INET, typ, 0)
	t.OK(e, "socket")
	return sock.NewFile(s, 0)
}

// connected returns the ends of a TCP connection between the two machines.
func connected(t *T, a, b *inet.Net) (x, y *vfs.File) {
	l := socket(t, b, linux.SOCK_STREAM)
	t.OK(S(l).Bind(t.C, l, nil, In4(0, 0, 0, 0, 0)), "bind")
	t.OK(S(l).Listen(t.C, 5), "listen")
	x = socket(t, a, linux.SOCK_STREAM)
	t.OK(S(x).Connect(t.C, nil, In4(10, 9, 0, 2, t.Port(l)), false), "connect")
	y, e := S(l).Accept(t.C, false, 0)
	t.OK(e, "accept")
	l.Put()
	return x, y
}

var kinds = map[string]netdev.Features{
	"plain":   0,
	"offload": netdev.TxChecksum | netdev.TSO4 | netdev.TSO6 | netdev.RxChecksum | netdev.LRO,
}

func TestTransferBothWays(tt *testing.T) {
	for name, features := range kinds {
		tt.Run(name, func(tt *testing.T) {
			t := New(tt)
			a, b, _, _ := machines(tt, features)
			x, y := connected(t, a, b)
			data := make([]byte, 2<<20)
			rand.Read(data)
			send := func(f *vfs.File) func(*T) {
				return func(t *T) {
					n, e := f.Ops.Write(t.C, f, uio.Bytes(data), 0)
					if n != len(data) || e != 0 {
						t.Errorf("write: %d, %v", n, e)
					}
					S(f).Shutdown(t.C, linux.SHUT_WR)
				}
			}
			recv := func(f *vfs.File) func(*T) {
				return func(t *T) {
					var got []byte
					for {
						s, e := t.ReadErr(f, 40000)
						if e != 0 {
							t.Errorf("read: %v", e)
							return
						}
						if s == "" {
							break
						}
						got = append(got, s...)
					}
					if !bytes.Equal(got, data) {
						t.Errorf("data damaged: %d of %d bytes", len(got), len(data))
					}
				}
			}
			for _, d := range []<-chan struct{}{t.Go(send(x)), t.Go(send(y)), t.Go(recv(x)), t.Go(recv(y))} {
				t.Wait(d)
			}
			x.Put()
			y.Put()
		})
	}
}

// The segments of a connection do not pass netstack's IP layer, unless a raw
// socket wants to see them.
func TestFastPath(tt *testing.T) {
	t := New(tt)
	a, b, _, _ := machines(tt, 0)
	x, y := connected(t, a, b)
	before := b.Stack.Stats().IP.PacketsReceived.Value()
	_, packets, _, _ := b.Statistics(2)
	t.Write(x, "fast")
	if s := t.Read(y, 10); s != "fast" {
		t.Fatal(s)
	}
	if n := b.Stack.Stats().IP.PacketsReceived.Value(); n != before {
		t.Error(n-before, "packets went through the IP layer")
	}
	if _, n, _, _ := b.Statistics(2); n == packets {
		t.Error("the interface did not count the packet")
	}
	s, e := b.Socket(t.C, linux.AF_INET, linux.SOCK_RAW, linux.IPPROTO_TCP)
	t.OK(e, "raw socket")
	r := sock.NewFile(s, 0)
	t.Write(x, "seen")
	got := t.Read(r, 100)
	for strings.HasSuffix(got, "fast") { // sent again, on a slow machine
		got = t.Read(r, 100)
	}
	if !strings.HasSuffix(got, "seen") {
		t.Errorf("%q", got)
	}
	r.Put()
	x.Put()
	y.Put()
}

// No frame from the wire may harm the kernel.
func TestWildFrames(tt *testing.T) {
	t := New(tt)
	a, b, ca, _ := machines(tt, 0)
	var frames [][]byte
	var mu sync.Mutex
	ca.drop = func(f *netdev.Frame) bool {
		mu.Lock()
		defer mu.Unlock()
		if len(frames) < 20 {
			frames = append(frames, bytes.Clone(bytes.Join(f.Parts, nil)))
		}
		return false
	}
	x, y := connected(t, a, b)
	t.Write(x, "some data for the corpus")
	t.Read(y, 100)
	var recv func([]netdev.Frame)
	dev := &capture{set: func(fn func([]netdev.Frame)) { recv = fn }}
	l, err := netif.Add(b, dev, "eth1")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Apply(netif.Settings{Address: netip.MustParsePrefix("10.9.0.2/24")}); err != nil {
		t.Fatal(err)
	}
	rng := mrand.New(mrand.NewPCG(1, 2))
	mu.Lock()
	seeds := frames[:len(frames):len(frames)]
	mu.Unlock()
	for range 20000 {
		f := bytes.Clone(seeds[rng.IntN(len(seeds))])
		for range 1 + rng.IntN(4) {
			f[rng.IntN(len(f))] = byte(rng.Uint32())
		}
		copy(f, []byte{2, 0, 0, 0, 0, 9})
		f = f[:rng.IntN(len(f)+1)]
		if len(f) >= 34 && rng.IntN(2) == 0 { // make the header checksum right
			f[24], f[25] = 0, 0
			c := ^checksum.Checksum(f[14:34], 0)
			f[24], f[25] = byte(c>>8), byte(c)
		}
		recv([]netdev.Frame{{Parts: [][]byte{f}}})
	}
	x.Put()
	y.Put()
}

// capture is a device without a wire.
type capture struct{ set func(func([]netdev.Frame)) }

func (*capture) MAC() [6]byte                          { return [6]byte{2, 0, 0, 0, 0, 9} }
func (*capture) MTU() int                              { return 1500 }
func (*capture) Features() netdev.Features             { return 0 }
func (*capture) Transmit(p []netdev.Frame) int         { return len(p) }
func (c *capture) Hold()                               {}
func (c *capture) Flush()                              {}
func (c *capture) SetReceiver(fn func([]netdev.Frame)) { c.set(fn) }

func TestDamagedChecksumIsDropped(tt *testing.T) {
	t := New(tt)
	a, b, ca, _ := machines(tt, kinds["offload"])
	x, y := connected(t, a, b)
	damage := true
	ca.drop = func(f *netdev.Frame) bool {
		if damage && f.Len() > 100 { // a segment with data: as if from a wire, and wrong
			damage = false
			f.NeedsChecksum = false
		}
		return false
	}
	t.Write(x, string(make([]byte, 100)))
	if s := t.Read(y, 200); len(s) != 100 {
		t.Fatal(len(s))
	}
	if damage {
		t.Fatal("nothing was damaged")
	}
	x.Put()
	y.Put()
}

func TestNonBlockingConnectAndReset(tt *testing.T) {
	t := New(tt)
	a, b, _, _ := machines(tt, 0)
	l := socket(t, b, linux.SOCK_STREAM)
	t.OK(S(l).Bind(t.C, l, nil, In4(0, 0, 0, 0, 0)), "bind")
	t.OK(S(l).Listen(t.C, 5), "listen")
	addr := In4(10, 9, 0, 2, t.Port(l))
	x := socket(t, a, linux.SOCK_STREAM)
	NonBlock(x)
	t.Want(S(x).Connect(t.C, nil, addr, true), linux.EINPROGRESS, "connect")
	t.Poll(x, wait.Out)
	t.OK(S(x).Connect(t.C, nil, addr, true), "connect again")
	t.Want(S(x).Connect(t.C, nil, addr, true), linux.EISCONN, "connect a third time")
	t.Poll(l, wait.In)
	y, e := S(l).Accept(t.C, true, 0)
	t.OK(e, "accept")
	_, e = t.ReadErr(x, 1)
	t.Want(e, linux.EAGAIN, "read of nothing")
	t.Write(x, "never read")
	t.Poll(y, wait.In)
	y.Put() // with unread data: RST
	t.Poll(x, wait.Err|wait.Hup)
	_, e = t.ReadErr(x, 1)
	t.Want(e, linux.ECONNRESET, "read")
	x.Put()
	x = socket(t, a, linux.SOCK_STREAM)
	t.Want(S(x).Connect(t.C, nil, In4(10, 9, 0, 2, 1), false), linux.ECONNREFUSED, "connect to nobody")
	x.Put()
	l.Put()
}

func TestLossIsRepaired(tt *testing.T) {
	t := New(tt)
	a, b, ca, _ := machines(tt, 0)
	x, y := connected(t, a, b)
	n := 0
	ca.drop = func(*netdev.Frame) bool { n++; return n%50 == 0 }
	data := make([]byte, 300000)
	rand.Read(data)
	done := t.Go(func(t *T) { t.Write(x, string(data)); x.Put() })
	var got []byte
	for {
		s := t.Read(y, 50000)
		if s == "" {
			break
		}
		got = append(got, s...)
	}
	t.Wait(done)
	if !bytes.Equal(got, data) {
		t.Fatal("data damaged")
	}
	y.Put()
}

// What TCP_CORK holds back goes out with the FIN, not after netstack's timer, which
// is 200 ms each time.
func TestCloseUncorks(tt *testing.T) {
	t := New(tt)
	a, b, _, _ := machines(tt, 0)
	least := time.Hour
	for try := 0; try < 50 && least > 100*time.Millisecond; try++ {
		x, y := connected(t, a, b)
		t.OK(S(x).SetOpt(t.C, linux.IPPROTO_TCP, linux.TCP_CORK, []byte{1, 0, 0, 0}), "TCP_CORK")
		t.Write(x, "held back")
		start := time.Now()
		x.Put()
		if s := t.Read(y, 100); s != "held back" {
			t.Fatal(s)
		}
		least = min(least, time.Since(start))
		y.Put()
	}
	if least > 100*time.Millisecond {
		t.Error("it took", least)
	}
}

// Requests and answers need one frame each way with the kernel's netstack (the
// overlay's test runs this one with it); a request without an answer is
// acknowledged all the same, and so is a stream.
func TestAcksAreHeld(tt *testing.T) {
	t := New(tt)
	most := int32(200)
	if os.Getenv("HARDTACK_NETSTACK") == "patched" {
		most = 150
	}
	a, b, ca, cb := machines(tt, 0)
	x, y := connected(t, a, b)
	for _, f := range []*vfs.File{x, y} {
		t.OK(S(f).SetOpt(t.C, linux.IPPROTO_TCP, linux.TCP_NODELAY, []byte{1, 0, 0, 0}), "TCP_NODELAY")
	}
	time.Sleep(50 * time.Millisecond)
	var sent [2]atomic.Int32
	for i, c := range []*cable{ca, cb} {
		c.sent.Store(&sent[i])
	}
	// Where the machine stops for a while, what is late is sent again: the best of ten.
	const rounds = 100
	fewest := int32(1 << 30)
	for try := 0; try < 10 && fewest > most; try++ {
		sent[0].Store(0)
		sent[1].Store(0)
		for range rounds {
			t.Write(x, "request")
			t.Read(y, 100)
			t.Write(y, "answer")
			t.Read(x, 100)
		}
		fewest = min(fewest, max(sent[0].Load(), sent[1].Load()))
	}
	if fewest > most {
		t.Errorf("%d frames from one of them for %d round trips", fewest, rounds)
	}
	fewest = 1 << 30
	for try := 0; try < 10 && fewest > 1; try++ {
		sent[1].Store(0)
		t.Write(x, "no answer")
		for end := time.Now().Add(time.Minute); sent[1].Load() == 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond)
		fewest = min(fewest, sent[1].Load())
		t.Read(y, 100)
	}
	if fewest != 1 {
		t.Errorf("%d frames acknowledge a request", fewest)
	}
	x.Put()
	y.Put()
}

func TestUDPBetweenMachines(tt *testing.T) {
	t := New(tt)
	a, b, _, _ := machines(tt, kinds["offload"])
	x, y := socket(t, a, linux.SOCK_DGRAM), socket(t, b, linux.SOCK_DGRAM)
	t.OK(S(y).Bind(t.C, y, nil, In4(0, 0, 0, 0, 7000)), "bind")
	big := string(bytes.Repeat([]byte("fragmented "), 500))
	_, e := t.Send(x, big, &sock.Msg{To: In4(10, 9, 0, 2, 7000)})
	t.OK(e, "sendto")
	s, m, e := t.Recv(y, 10000, 0)
	if s != big || e != 0 || !bytes.Equal(m.From.B[4:8], []byte{10, 9, 0, 1}) {
		t.Fatal(len(s), e, m.From.Bytes())
	}
	x.Put()
	y.Put()
}

// A datagram for a socket goes past the IP layer; one for nobody is answered, and counted
// once.
func TestUDPFastPath(tt *testing.T) {
	t := New(tt)
	a, b, _, _ := machines(tt, 0)
	x, y := socket(t, a, linux.SOCK_DGRAM), socket(t, b, linux.SOCK_DGRAM)
	t.OK(S(y).Bind(t.C, y, nil, In4(0, 0, 0, 0, 7000)), "bind")
	send := func(port uint16) linux.Errno {
		_, e := t.Send(x, "fast", &sock.Msg{To: In4(10, 9, 0, 2, port)})
		return e
	}
	t.OK(send(7000), "sendto")
	if s, _, e := t.Recv(y, 100, 0); s != "fast" || e != 0 {
		t.Fatal(s, e)
	}
	before := b.Stack.Stats().IP.PacketsReceived.Value()
	t.OK(send(7000), "sendto")
	if s, m, e := t.Recv(y, 100, 0); s != "fast" || e != 0 || !bytes.Equal(m.From.B[4:8], []byte{10, 9, 0, 1}) {
		t.Fatal(s, e, m.From.Bytes())
	}
	if n := b.Stack.Stats().IP.PacketsReceived.Value(); n != before {
		t.Error(n-before, "packets went through the IP layer")
	}
	if n := b.UDPCounts(false).NoPorts; n != 0 {
		t.Error("NoPorts", n)
	}
	t.OK(S(x).Connect(t.C, nil, In4(10, 9, 0, 2, 7001), false), "connect")
	t.OK(send(7001), "sendto")
	if _, _, e := t.Recv(x, 100, 0); e != linux.ECONNREFUSED {
		t.Error("an answer to a datagram for nobody:", e)
	}
	if n := b.UDPCounts(false).NoPorts; n != 1 {
		t.Error("NoPorts", n)
	}
	x.Put()
	y.Put()
}

// The route of a socket that is not connected is looked for again when routes or addresses
// have changed.
func TestKeptRoute(tt *testing.T) {
	t := New(tt)
	a, b, _, _ := machines(tt, 0)
	x, y := socket(t, a, linux.SOCK_DGRAM), socket(t, b, linux.SOCK_DGRAM)
	t.OK(S(y).Bind(t.C, y, nil, In4(0, 0, 0, 0, 7000)), "bind")
	send := func(want linux.Errno, from byte) {
		tt.Helper()
		_, e := t.Send(x, "here", &sock.Msg{To: In4(10, 9, 0, 2, 7000)})
		if e != want {
			tt.Fatalf("sendto: %v, want %v", e, want)
		}
		if want != 0 {
			return
		}
		if s, m, e := t.Recv(y, 100, 0); s != "here" || e != 0 || m.From.B[7] != from {
			tt.Fatal(s, e, m.From.Bytes())
		}
	}
	send(0, 1)
	send(0, 1)
	routes := a.Routes()
	a.Stack.SetRouteTable(nil)
	send(linux.ENETUNREACH, 0)
	a.Stack.SetRouteTable(routes)
	send(0, 1)
	other := tcpip.AddrFrom4([4]byte{10, 9, 0, 3})
	if err := a.AddAddress(2, other, 24); err != nil {
		t.Fatal(err)
	}
	send(0, 3) // the stack prefers the address that was added last
	if err := a.Stack.RemoveAddress(2, other); err != nil {
		t.Fatal(err)
	}
	send(0, 1)
	x.Put()
	y.Put()
}

func TestResolvConf(t *testing.T) {
	s := netif.Settings{DNS: []netip.Addr{netip.MustParseAddr("10.0.2.3"), netip.MustParseAddr("1.1.1.1")}, Domain: "example.org"}
	if got := string(s.ResolvConf()); got != "search example.org\nnameserver 10.0.2.3\nnameserver 1.1.1.1\n" {
		t.Fatal(got)
	}
}

// server is a DHCP server on a bare cable: it ignores the first message, and
// refuses the first request.
func server(t testing.TB, c *cable, types *[]byte) {
	ignore, refuse := true, true
	c.SetReceiver(func(batch []netdev.Frame) {
		for _, f := range batch {
			b := f.Parts[0]
			if len(b) < 300 || binary.BigEndian.Uint16(b[36:]) != 67 {
				continue
			}
			if ignore {
				ignore = false
				continue
			}
			m := b[42:]
			typ, asked := byte(0), []byte(nil)
			for o := m[240:]; o[0] != 255; o = o[2+o[1]:] {
				switch o[0] {
				case 53:
					typ = o[2]
				case 50:
					asked = o[2:6]
				}
			}
			*types = append(*types, typ)
			r := make([]byte, 42+240+64)
			for i := range 6 {
				r[i] = 0xff
			}
			r[12] = 8
			ip := r[14:]
			ip[0], ip[8], ip[9] = 0x45, 64, 17
			binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
			copy(ip[12:], []byte{10, 0, 2, 2, 255, 255, 255, 255})
			udp := ip[20:]
			binary.BigEndian.PutUint16(udp, 67)
			binary.BigEndian.PutUint16(udp[2:], 68)
			binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
			rm := udp[8:]
			rm[0] = 2
			copy(rm[4:8], m[4:8])
			copy(rm[16:], []byte{10, 0, 2, 15})
			copy(rm[236:], []byte{0x63, 0x82, 0x53, 0x63})
			reply := byte(2)
			if typ == 3 {
				reply = 5
				if refuse {
					refuse, reply = false, 6
				} else if !bytes.Equal(asked, []byte{10, 0, 2, 15}) {
					t.Errorf("asked for %v", asked)
				}
			}
			copy(rm[240:], []byte{53, 1, reply, 54, 4, 10, 0, 2, 2, 1, 4, 255, 255, 255, 0, 3, 4, 10, 0, 2, 2,
				6, 4, 10, 0, 2, 3, 51, 4, 0, 0, 14, 16, 255})
			c.Transmit([]netdev.Frame{{Parts: [][]byte{r}}})
		}
	})
}

func TestDHCP(t *testing.T) {
	ca, cb := cables(0)
	var types []byte
	server(t, cb, &types)
	n := inet.New(inet.Config{Rand: rand.Reader, Log: os.Stderr})
	l, err := netif.Add(n, ca, "eth0")
	if err != nil {
		t.Fatal(err)
	}
	lease, err := l.DHCP(5 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if lease.Address != netip.MustParsePrefix("10.0.2.15/24") || lease.Router != netip.MustParseAddr("10.0.2.2") ||
		string(lease.ResolvConf()) != "nameserver 10.0.2.3\n" || lease.Valid != time.Hour || lease.Renew != time.Hour/2 {
		t.Fatal(lease)
	}
	if want := []byte{1, 3, 1, 3}; !bytes.Equal(types, want) {
		t.Fatal("messages", types, "want", want)
	}
	found := false
	for _, a := range n.Addresses(l.Index()) {
		found = found || a.String() == "10.0.2.15/24"
	}
	if !found || len(n.Routes()) < 4 {
		t.Fatal(n.Addresses(l.Index()), n.Routes())
	}
	lonely, _ := cables(0)
	l, _ = netif.Add(n, lonely, "eth1")
	if _, err := l.DHCP(50 * time.Millisecond); err != netif.ErrNoServer {
		t.Fatal(err)
	}
}

func BenchmarkRoundTrip(bb *testing.B) {
	t := New(bb)
	a, b, _, _ := machines(bb, 0)
	x, y := connected(t, a, b)
	one := []byte{1, 0, 0, 0}
	for _, f := range []*vfs.File{x, y} {
		t.OK(S(f).SetOpt(t.C, linux.IPPROTO_TCP, linux.TCP_NODELAY, one), "TCP_NODELAY")
	}
	done := t.Go(func(t *T) {
		buf := make([]byte, 64)
		var v uio.Vec
		for {
			v.InitBytes(buf)
			n, e := y.Ops.Read(t.C, y, &v, 0)
			if n == 0 || e != 0 {
				return
			}
			v.InitBytes(buf[:n])
			y.Ops.Write(t.C, y, &v, 0)
		}
	})
	bb.ReportAllocs()
	buf := make([]byte, 64)
	var v uio.Vec
	for bb.Loop() {
		v.InitBytes(buf[:5])
		x.Ops.Write(t.C, x, &v, 0)
		v.InitBytes(buf)
		x.Ops.Read(t.C, x, &v, 0)
	}
	x.Put()
	t.Wait(done)
	y.Put()
}
