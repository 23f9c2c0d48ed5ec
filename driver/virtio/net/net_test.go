package net_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"

	"hardtack/driver/virtio"
	"hardtack/driver/virtio/net"
	"hardtack/driver/virtio/softdev"
	"hardtack/kernel/net/netdev"
)

const (
	csum, guestCsum        = 1 << 0, 1 << 1
	mac, mtuFeature        = 1 << 5, 1 << 3
	guestTSO4              = 1 << 7
	hostTSO4               = 1 << 11
	mergeable              = 1 << 15
	control                = 1 << 17
	multiQueue             = 1 << 22
	all             uint64 = csum | guestCsum | mac | guestTSO4 | hostTSO4 | mergeable |
		virtio.FeatureEventIndex | virtio.FeatureIndirect
)

func config(pairs, mtu int) []byte {
	b := []byte{0x52, 0x54, 0, 1, 2, 3, 0, 0}
	b = binary.LittleEndian.AppendUint16(b, uint16(pairs))
	return binary.LittleEndian.AppendUint16(b, uint16(mtu))
}

func newDevice(t testing.TB, offer uint64, size int) (*net.Device, *softdev.Transport) {
	t.Helper()
	m := softdev.NewMachine()
	tr := &softdev.Transport{M: m, DeviceType: virtio.TypeNet, Offer: offer, Sizes: []int{size, size}, Space: config(1, 1500)}
	d, err := net.New(m, tr, 1)
	if err != nil {
		t.Fatal(err)
	}
	return d, tr
}

func TestIdentity(t *testing.T) {
	d, _ := newDevice(t, all, 256)
	if d.MAC() != [6]byte{0x52, 0x54, 0, 1, 2, 3} || d.MTU() != 1500 {
		t.Errorf("%x, MTU %d", d.MAC(), d.MTU())
	}
	if want := netdev.TxChecksum | netdev.TSO4 | netdev.RxChecksum | netdev.LRO; d.Features() != want {
		t.Errorf("features %b, want %b", d.Features(), want)
	}
	d, _ = newDevice(t, 0, 256)
	if m := d.MAC(); m[0]&3 != 2 || d.Features() != 0 {
		t.Errorf("no features: MAC %x, features %b", m, d.Features())
	}
	d, tr := newDevice(t, hostTSO4|guestTSO4|guestCsum, 256) // neither CSUM nor mergeable buffers
	if d.Features() != netdev.RxChecksum || tr.Accepted&^(guestCsum|virtio.FeatureVersion1) != 0 {
		t.Errorf("features %b, accepted %#x", d.Features(), tr.Accepted)
	}
}

// sent takes all frames off the transmit queue and completes them in a random order.
func sent(t *testing.T, r *softdev.Ring, complete bool) (frames [][]byte) {
	t.Helper()
	var heads []uint16
	for {
		q, ok := r.Next()
		if !ok {
			break
		}
		if len(q.In) != 0 {
			t.Fatal("writable buffer in a transmit request")
		}
		frames = append(frames, bytes.Clone(q.Bytes()))
		heads = append(heads, q.Head)
	}
	if complete {
		rand.Shuffle(len(heads), func(i, j int) { heads[i], heads[j] = heads[j], heads[i] })
		for _, h := range heads {
			r.Push(h, 0)
		}
		r.Flush()
	}
	return frames
}

func random(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

func TestTransmit(t *testing.T) {
	for _, offer := range []uint64{all, all &^ virtio.FeatureIndirect, mac} {
		d, tr := newDevice(t, offer, 256)
		tx := tr.Ring(1)
		for round := range 300 {
			var pkts []netdev.Frame
			var want [][]byte
			for range 1 + rand.IntN(5) {
				size := 14 + rand.IntN(1500)
				if rand.IntN(4) == 0 {
					size = 14 + rand.IntN(65535)
				}
				b := random(size)
				f := netdev.Frame{NeedsChecksum: true, ChecksumStart: 34, ChecksumOffset: 16, GSO: netdev.GSOTCPv4, HeaderLen: 54, SegmentSize: 1448}
				cut := rand.IntN(size)
				f.Parts = [][]byte{b[:cut], nil, b[cut:]}
				pkts = append(pkts, f)
				want = append(want, append([]byte{1, 1, 54, 0, 1448 & 0xff, 1448 >> 8, 34, 0, 16, 0, 0, 0}, b...))
			}
			if n := d.Transmit(pkts); n != len(pkts) {
				t.Fatalf("round %d: %d of %d frames taken", round, n, len(pkts))
			}
			got := sent(t, tx, true)
			if len(got) != len(want) {
				t.Fatalf("%d frames, want %d", len(got), len(want))
			}
			for i := range got {
				if !bytes.Equal(got[i], want[i]) {
					t.Fatalf("round %d: frame %d differs (%d and %d bytes)", round, i, len(got[i]), len(want[i]))
				}
			}
		}
		if tr.Kicks.Load() == 0 || d.Err() != nil {
			t.Errorf("kicks %d, %v", tr.Kicks.Load(), d.Err())
		}
	}
}

// Held frames go at the last Flush, for one doorbell; a full ring lets them go
// before.
func TestHold(t *testing.T) {
	d, tr := newDevice(t, all, 16)
	tx := tr.Ring(1)
	frame := []netdev.Frame{{Parts: [][]byte{random(100)}}}
	d.Hold()
	d.Hold()
	before := tr.Kicks.Load()
	for range 3 {
		if d.Transmit(frame) != 1 {
			t.Fatal("no room")
		}
	}
	d.Flush()
	if _, ok := tx.Next(); ok || tr.Kicks.Load() != before {
		t.Fatal("the device saw a frame that is held")
	}
	d.Flush()
	if n := len(sent(t, tx, true)); n != 3 || tr.Kicks.Load() != before+1 {
		t.Errorf("%d frames, %d doorbells", n, tr.Kicks.Load()-before)
	}
	d.Hold()
	for range 20 {
		d.Transmit(frame)
	}
	if n := len(sent(t, tx, true)); n != 16 {
		t.Errorf("a full ring showed %d frames", n)
	}
	d.Flush()
	if d.Transmit(frame) != 1 || len(sent(t, tx, true)) != 1 {
		t.Error("no frame goes after Flush")
	}
}

func TestTransmitFull(t *testing.T) {
	d, tr := newDevice(t, all, 16)
	tx := tr.Ring(1)
	ready := 0
	d.OnTransmitReady(func() { ready++ })
	pkts := make([]netdev.Frame, 20)
	for i := range pkts {
		pkts[i].Parts = [][]byte{random(100)}
	}
	if n := d.Transmit(pkts); n != 16 {
		t.Fatalf("%d frames taken by 16 slots", n)
	}
	tr.Interrupt(1) // shared line: nothing is done yet
	if ready != 0 {
		t.Error("ready while full")
	}
	var heads []uint16
	for {
		q, ok := tx.Next()
		if !ok {
			break
		}
		heads = append(heads, q.Head)
	}
	interrupts := 0
	for _, h := range heads {
		tx.Push(h, 0)
		if tx.Flush() {
			interrupts++
			tr.Interrupt(1)
		}
	}
	if interrupts != 1 || ready != 1 {
		t.Errorf("%d interrupts, ready called %d times", interrupts, ready)
	}
	if n := d.Transmit(pkts[16:]); n != 4 || len(sent(t, tx, true)) != 4 {
		t.Errorf("%d frames taken after completion", n)
	}
	// One that can never fit is dropped, not refused for ever.
	if n := d.Transmit([]netdev.Frame{{Parts: [][]byte{random(70000)}}, {Parts: [][]byte{random(60)}}}); n != 2 {
		t.Errorf("%d taken", n)
	}
	if f := sent(t, tx, true); len(f) != 1 || len(f[0]) != 72 {
		t.Errorf("%d frames", len(f))
	}
}

// A notification that the driver misses, or the device, holds frames up until the next
// frame, or until the ring is full and another is refused; not for good. (TCP sends
// again what is not acknowledged: that is the next frame.)
func TestNotificationMissed(t *testing.T) {
	d, tr := newDevice(t, all, 16)
	tx := tr.Ring(1)
	frame := []netdev.Frame{{Parts: [][]byte{random(100)}}}
	transmit := func(taken, notifications int, what string) {
		t.Helper()
		before := tr.Kicks.Load()
		if n := d.Transmit(frame); n != taken || tr.Kicks.Load() != before+int64(notifications) {
			t.Errorf("%s: %d frames taken, %d notifications; want %d and %d", what, n, tr.Kicks.Load()-before, taken, notifications)
		}
	}
	transmit(1, 1, "the device waits")
	sent(t, tx, true)
	transmit(1, 0, "the device has not asked")
	tx.WantNotifyFrom(1)
	transmit(1, 1, "the device asked for the frame before")
	if n := len(sent(t, tx, true)); n != 2 {
		t.Errorf("%d frames sent, want 2", n)
	}
	for round := range 2 {
		tx.WantNotify()
		transmit(1, 1, "a notification that the device ignores")
		for range 15 {
			transmit(1, 0, "until the ring is full")
		}
		ready := 0
		d.OnTransmitReady(func() { ready++ })
		transmit(0, 0, "a full ring")
		transmit(0, 1, "a ring that stays full")
		transmit(0, 1, "a ring that stays full")
		transmit(0, 0, "a ring that stays full")
		transmit(0, 1, "a ring that stays full")
		if n := len(sent(t, tx, true)); n != 16 {
			t.Errorf("round %d: %d frames sent of a full ring", round, n)
		}
		tr.Interrupt(1)
		if ready != 1 {
			t.Errorf("round %d: ready called %d times", round, ready)
		}
	}
	if got, want := string(d.Stats()), "tx0 late 1 reminded 6 dropped 0\nrx0 late 0 dropped 0\n"; got != want {
		t.Errorf("statistics %q, want %q", got, want)
	}
}

// deliver puts a frame into as many receive buffers as it takes.
func deliver(t *testing.T, r *softdev.Ring, header, frame []byte, merge bool) {
	t.Helper()
	b := append(bytes.Clone(header), frame...)
	type part struct {
		head uint16
		n    uint32
	}
	var parts []part
	var first []byte
	for left := b; len(left) > 0; {
		q, ok := r.Next()
		if !ok {
			t.Fatal("no receive buffer")
		}
		if first == nil {
			first = q.In[0]
		}
		n := q.Fill(left)
		left = left[n:]
		parts = append(parts, part{q.Head, n})
		if !merge && len(left) > 0 {
			t.Fatal("frame does not fit a buffer")
		}
	}
	binary.LittleEndian.PutUint16(first[10:], uint16(len(parts)))
	for _, p := range parts {
		r.Push(p.head, p.n)
	}
}

func TestReceive(t *testing.T) {
	for _, offer := range []uint64{all, mac} {
		d, tr := newDevice(t, offer, 256)
		var got []netdev.Frame
		var bodies [][]byte
		d.SetReceiver(func(batch []netdev.Frame) {
			for _, f := range batch {
				bodies = append(bodies, bytes.Join(f.Parts, nil))
				f.Parts = nil
				got = append(got, f)
			}
		})
		rx := tr.Ring(0)
		for round := range 200 {
			got, bodies = nil, nil
			var want [][]byte
			for range 1 + rand.IntN(3) {
				n := 60 + rand.IntN(1400)
				if offer&mergeable != 0 && rand.IntN(3) == 0 {
					n = 60 + rand.IntN(65000)
				}
				b := random(n)
				want = append(want, b)
				deliver(t, rx, []byte{1, 0x81, 54, 0, 100, 5, 34, 0, 16, 0, 0, 0}, b, offer&mergeable != 0)
			}
			if !rx.Flush() {
				t.Fatal("interrupts stayed off")
			}
			tr.Interrupt(0)
			if len(bodies) != len(want) {
				t.Fatalf("round %d: %d frames, want %d", round, len(bodies), len(want))
			}
			for i := range want {
				if !bytes.Equal(bodies[i], want[i]) {
					t.Fatalf("round %d: frame %d differs", round, i)
				}
				f := got[i]
				if !f.NeedsChecksum || f.ChecksumValid || f.ChecksumStart != 34 || f.ChecksumOffset != 16 || f.GSO != netdev.GSOTCPv4 || f.SegmentSize != 1380 {
					t.Fatalf("frame %+v", f)
				}
			}
		}
	}
}

// Nonsense from the device costs frames, never buffers or the kernel.
func TestReceiveNonsense(t *testing.T) {
	d, tr := newDevice(t, all, 16)
	frames := 0
	d.SetReceiver(func(batch []netdev.Frame) { frames += len(batch) })
	rx := tr.Ring(0)
	body := random(60)
	for name, header := range map[string][]byte{
		"no buffers":       {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"too many buffers": {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0},
		"checksum outside": {1, 0, 0, 0, 0, 0, 58, 0, 2, 0, 1, 0},
		"headers outside":  {0, 1, 255, 0, 10, 0, 0, 0, 0, 0, 1, 0},
		"no segment size":  {0, 1, 54, 0, 0, 0, 0, 0, 0, 0, 1, 0},
		"no Ethernet":      {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0},
		"half a header":    {0, 0, 0, 0, 0},
		"nothing":          nil,
	} {
		q, ok := rx.Next()
		if !ok {
			t.Fatalf("%s: buffers got lost", name)
		}
		b := header
		if len(header) == 12 && name != "no Ethernet" {
			b = append(bytes.Clone(header), body...)
		}
		rx.Push(q.Head, q.Fill(b))
		rx.Flush()
		tr.Interrupt(0)
		if frames != 0 {
			t.Errorf("%s: %d frames came through", name, frames)
			frames = 0
		}
	}
	for range 100 { // all buffers are still in use
		deliver(t, rx, make([]byte, 12), body, true)
		rx.Flush()
		tr.Interrupt(0)
	}
	if frames != 100 || d.Err() != nil {
		t.Errorf("%d frames, %v", frames, d.Err())
	}
}

func TestMultiQueue(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		m := softdev.NewMachine()
		tr := &softdev.Transport{M: m, DeviceType: virtio.TypeNet, Offer: all | control | multiQueue, Sizes: []int{64, 64, 64, 64, 64, 64, 64, 64, 16}, Space: config(4, 0)}
		var command []byte
		tr.OnNotify = func(queue int) {
			if queue != 8 {
				return
			}
			q, _ := tr.Ring(8).Next()
			command = q.Bytes()
			answer := byte(0)
			if refuse {
				answer = 1
			}
			tr.Ring(8).Push(q.Head, q.Fill([]byte{answer}))
			tr.Ring(8).Flush()
		}
		d, err := net.New(m, tr, 3)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(command, []byte{4, 0, 3, 0}) {
			t.Errorf("command % x", command)
		}
		want := 3
		if refuse {
			want = 1
		}
		if d.Pairs() != want || tr.Ring(6) != nil {
			t.Errorf("%d pairs", d.Pairs())
		}
		var pkts []netdev.Frame
		for i := range 30 {
			pkts = append(pkts, netdev.Frame{Parts: [][]byte{random(60)}, Hash: uint32(i / 2)})
		}
		if n := d.Transmit(pkts); n != 30 {
			t.Errorf("%d frames taken", n)
		}
		for i := range want {
			if n := len(sent(t, tr.Ring(2*i+1), true)); n != 30/want {
				t.Errorf("queue %d sent %d frames", i, n)
			}
		}
		frames := 0
		d.SetReceiver(func(b []netdev.Frame) { frames += len(b) })
		for i := range 3 { // the device may use all pairs that are enabled
			deliver(t, tr.Ring(2*i), make([]byte, 12), random(60), true)
			tr.Ring(2 * i).Flush()
			tr.Interrupt(2 * i)
		}
		if frames != 3 {
			t.Errorf("%d frames received", frames)
		}
	}
}

func TestConcurrentSenders(t *testing.T) {
	d, tr := newDevice(t, all, 64)
	tx := tr.Ring(1)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	count := make(chan int)
	go func() {
		n := 0
		for {
			q, ok := tx.Next()
			if ok {
				b := q.Bytes()[12:]
				for _, c := range b {
					if c != b[0] {
						t.Error("two frames mixed")
					}
				}
				n++
				tx.Push(q.Head, 0)
				tx.Flush()
				continue
			}
			select {
			case <-stop:
				if !tx.WantNotify() {
					count <- n
					return
				}
			default:
			}
		}
	}()
	for g := range 4 {
		wg.Go(func() {
			f := []netdev.Frame{{Parts: [][]byte{bytes.Repeat([]byte{byte(g)}, 1000+3000*g)}}}
			for range 2000 {
				for d.Transmit(f) == 0 {
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	if n := <-count; n != 8000 {
		t.Errorf("%d frames sent", n)
	}
}

func TestLink(t *testing.T) {
	const status = 1 << 16
	m := softdev.NewMachine()
	tr := &softdev.Transport{M: m, DeviceType: virtio.TypeNet, Offer: all | status, Sizes: []int{16, 16}, Space: config(1, 0)}
	tr.Space[6] = 1
	d, err := net.New(m, tr, 1)
	if err != nil {
		t.Fatal(err)
	}
	changes := 0
	d.OnLink(func() { changes++ })
	for i, up := range []byte{1, 0, 0, 1, 0} {
		tr.Space[6] = up
		tr.ConfigChanged()
		if d.LinkUp() != (up == 1) || changes != []int{0, 1, 1, 2, 3}[i] {
			t.Errorf("step %d: link %v, %d changes", i, d.LinkUp(), changes)
		}
	}
}

func TestJumbo(t *testing.T) {
	for _, x := range []struct {
		offer          uint64
		mtu, now, most int
	}{{all, 0, 1500, 65535}, {all | mtuFeature, 9000, 9000, 9000}, {all &^ mergeable, 0, 1500, 2022}, {all&^mergeable | mtuFeature, 9000, 2022, 2022}} {
		m := softdev.NewMachine()
		d, err := net.New(m, &softdev.Transport{M: m, DeviceType: virtio.TypeNet, Offer: x.offer, Sizes: []int{16, 16}, Space: config(1, x.mtu)}, 1)
		if err != nil || d.MTU() != x.now || d.MaxMTU() != x.most {
			t.Errorf("%+v: %d, %d, %v", x, d.MTU(), d.MaxMTU(), err)
		}
	}
}

func TestTransmitDoesNotAllocate(t *testing.T) {
	d, tr := newDevice(t, all, 64)
	f := []netdev.Frame{{Parts: [][]byte{random(1000), random(9000)}}}
	if n := testing.AllocsPerRun(20, func() { d.Transmit(f) }); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
	if n := len(sent(t, tr.Ring(1), true)); n != 21 {
		t.Errorf("%d frames sent", n)
	}
}
