package clusternet

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"hardtack/abi/boot"
	"hardtack/kernel/net/netdev"
)

// machine is some clusters.
type machine struct {
	t     *testing.T
	nets  []*Net
	wires []*Wire // of the first one; that of cluster 0 is nil

	got   []chan []byte
	ended []chan netip.Addr
}

func newMachine(t *testing.T, clusters int) *machine {
	m := &machine{t: t, wires: make([]*Wire, clusters)}
	for i := range clusters {
		d, got, ended := New(i), make(chan []byte, 1000), make(chan netip.Addr, 100)
		d.SetReceiver(func(batch []netdev.Frame) {
			for _, f := range batch {
				got <- bytes.Clone(f.Parts[0])
			}
		})
		d.OnEnd(func(a netip.Addr) { ended <- a })
		m.nets, m.got, m.ended = append(m.nets, d), append(m.got, got), append(m.ended, ended)
	}
	for i := 1; i < clusters; i++ {
		m.start(i)
	}
	return m
}

// start starts a cluster, or starts it again. It returns the memory of its wire.
func (m *machine) start(i int) []byte {
	mem := pages()
	d := New(i)
	d.recv.Store(m.nets[i].recv.Load())
	d.reset.Store(m.nets[i].reset.Load())
	m.nets[i] = d
	m.wires[i] = NewWire(mem, 0, d.Rung)
	d.Join(NewWire(mem, 1, m.nets[0].Rung))
	m.nets[0].Add(i, m.wires[i])
	return mem
}

// packet is an IPv4 packet with an Ethernet header, as the stack makes it.
func packet(from, to, n int) []byte {
	f := make([]byte, ethernet+n)
	for i := range f {
		f[i] = byte(rand.Uint32())
	}
	putEthernet(f, to, from)
	ip := f[ethernet:]
	ip[0], ip[6], ip[7], ip[9] = 0x45, 0, 0, 17
	binary.BigEndian.PutUint16(ip[2:], uint16(n))
	a, b := Address(from).Addr().As4(), Address(to).Addr().As4()
	copy(ip[sourceAt:], a[:])
	copy(ip[destinationAt:], b[:])
	return f
}

func (m *machine) send(by int, f []byte) bool {
	head := rand.IntN(min(len(f), 100)) // of raw sockets, even the headers come in parts
	return m.nets[by].Transmit([]netdev.Frame{{Parts: [][]byte{f[:head], f[head:]}}}) == 1
}

// upTo waits until a cluster knows whether another runs.
func (m *machine) upTo(at, of int, up bool) {
	m.t.Helper()
	for start := time.Now(); m.nets[at].up[of].Load() != up; time.Sleep(time.Millisecond) {
		if time.Since(start) > time.Minute {
			m.t.Fatalf("cluster %d does not see that %d runs: %t", at, of, up)
		}
	}
}

// take waits for something.
func take[T any](t *testing.T, what string, c chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(time.Minute):
		t.Fatalf("%s: nothing", what)
	}
	return v
}

// Packets of all lengths arrive whole and in order, between any two clusters.
func TestPackets(t *testing.T) {
	m := newMachine(t, 3)
	m.upTo(1, 2, true)
	m.upTo(2, 1, true)
	for _, way := range [][2]int{{0, 1}, {1, 0}, {1, 2}, {2, 1}} {
		for i := range 500 {
			n := []int{minPacket, 28 + rand.IntN(100), MTU, maxPacket}[i%4]
			f := packet(way[0], way[1], n)
			if !m.send(way[0], f) {
				t.Fatalf("%v: no room for a packet of %d bytes", way, n)
			}
			if got := take(t, "a packet", m.got[way[1]]); !bytes.Equal(got, f) {
				t.Fatalf("%v: a packet of %d bytes came as %d others", way, n, len(got)-ethernet)
			}
		}
	}
}

// Where there is no room nobody waits.
func TestFull(t *testing.T) {
	stopped := NewWire(pages(), 0, func() {})
	d := New(0)
	d.wires[1].Store(stopped)
	d.up[1].Store(true)
	f, n := packet(0, 1, MTU), 0
	for d.Transmit([]netdev.Frame{{Parts: [][]byte{f}}}) == 1 {
		n++
	}
	if n != ringBytes/(MTU+8) {
		t.Errorf("%d packets have room", n)
	}
}

// What is in another's name, or for nobody, is dropped.
func TestNames(t *testing.T) {
	m := newMachine(t, 3)
	m.upTo(1, 2, true)
	bad := [][]byte{packet(2, 0, 40), packet(0, 2, 40), packet(2, 2, 40), packet(100, 0, 40), packet(1, 100, 40)}
	for _, f := range bad {
		m.nets[1].wires[0].Load().send([][]byte{f}, ethernet, len(f)-ethernet)
	}
	last := packet(1, 0, 40)
	m.send(1, last)
	if got := take(t, "a packet", m.got[0]); !bytes.Equal(got, last) {
		t.Errorf("arrived: %x", got)
	}
	if n := m.nets[0].Dropped.Load(); n != uint64(len(bad)) {
		t.Errorf("%d packets were dropped of %d", n, len(bad))
	}
	odd := [][]byte{{}, make([]byte, 10), make([]byte, 100000), packet(0, 1, 40)[:30]}
	for _, f := range odd {
		if m.nets[0].Transmit([]netdev.Frame{{Parts: [][]byte{f}}}) != 1 {
			t.Errorf("a frame of %d bytes waits", len(f))
		}
	}
	for i := 1; i <= 2; i++ {
		if len(m.got[i]) > 0 {
			t.Errorf("cluster %d got %x", i, <-m.got[i])
		}
	}
}

// All clusters hear of one's end, also if the next life begins at once. What is sent to it
// meanwhile is answered.
func TestEnd(t *testing.T) {
	m := newMachine(t, 3)
	for range 100 {
		m.upTo(2, 1, true)
		m.nets[0].End(1, m.wires[1])
		for _, at := range []int{0, 2} {
			if a := take(t, "an end", m.ended[at]); a != Address(1).Addr() {
				t.Fatalf("cluster %d hears of %v", at, a)
			}
			m.upTo(at, 1, false)
			m.send(at, packet(at, 1, 40))
			if ip := take(t, "an answer", m.got[at])[ethernet:]; ip[9] != 1 || ip[20] != 3 || ip[21] != 1 || clusterOf(ip[destinationAt:]) != at {
				t.Fatalf("the answer is %x", ip)
			}
		}
		m.start(1)
		m.upTo(2, 1, true)
		m.nets[0].End(1, m.wires[1])
		m.start(1)
		take(t, "an end", m.ended[0])
		take(t, "an end", m.ended[2])
	}
	m.upTo(2, 1, true)
	m.send(2, packet(2, 1, 40))
	take(t, "a packet", m.got[1])
}

// A peer that breaks the rules loses its wire, and nobody else does.
func TestRules(t *testing.T) {
	for name, wrong := range map[string]func(w *Wire){
		"more than a ring": func(w *Wire) { w.mine().Written.Store(ringBytes + align) },
		"not aligned":      func(w *Wire) { w.mine().Written.Store(12) },
		"no length":        func(w *Wire) { w.mine().Written.Store(24) },
		"too long": func(w *Wire) {
			binary.LittleEndian.PutUint32(w.out, maxPacket+1)
			w.mine().Written.Store(maxPacket + 5)
		},
		"longer than there is": func(w *Wire) {
			binary.LittleEndian.PutUint32(w.out, 60)
			w.mine().Written.Store(32)
		},
		"huge": func(w *Wire) {
			binary.LittleEndian.PutUint32(w.out, 1<<32-4)
			w.mine().Written.Store(32)
		},
	} {
		m := newMachine(t, 3)
		m.upTo(2, 1, true)
		w := m.nets[1].wires[0].Load()
		wrong(w)
		m.nets[0].Rung()
		if a := take(t, name, m.ended[2]); a != Address(1).Addr() || m.nets[0].up[1].Load() {
			t.Errorf("%s: the end of %v", name, a)
		}
		m.send(2, packet(2, 0, 40))
		take(t, name, m.got[0])
	}
	// A reader that claims to have read what was never sent.
	m := newMachine(t, 2)
	m.nets[1].wires[0].Load().mine().Read.Store(99999)
	m.send(0, packet(0, 1, 40))
	take(t, "read too much", m.ended[0])
	// The first cluster's rules are the others' too.
	m = newMachine(t, 2)
	m.wires[1].mine().Written.Store(4)
	m.nets[1].Rung()
	take(t, "the first cluster", m.ended[1])
}

// Many senders, and clusters that end meanwhile.
func TestStorm(t *testing.T) {
	m := newMachine(t, 3)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for i := range m.nets {
		wg.Add(2)
		go func() {
			defer wg.Done()
			for range 20000 {
				d := m.nets[0]
				if i == 2 {
					d = m.nets[2]
				}
				d.Transmit([]netdev.Frame{{Parts: [][]byte{packet(d.own, rand.IntN(boot.MaxClusters), 28+rand.IntN(500))}}})
			}
		}()
		go func() {
			defer wg.Done()
			for {
				select {
				case <-m.got[i]:
				case <-m.ended[i]:
				case <-stop:
					return
				}
			}
		}()
	}
	for range 200 {
		m.nets[0].End(1, m.wires[1])
		m.start(1)
	}
	close(stop)
	for i := range m.nets { // what still comes
		go func() {
			for {
				select {
				case <-m.got[i]:
				case <-m.ended[i]:
				}
			}
		}()
	}
	wg.Wait()
}

// A doorbell may come for a packet that was taken before the receiver went to sleep. The
// receiver must be rung for again all the same.
func TestLateDoorbell(t *testing.T) {
	m := newMachine(t, 2)
	asleep := &m.wires[1].theirs().Asleep
	sleeps := func() {
		t.Helper()
		for start := time.Now(); asleep.Load() == 0; time.Sleep(time.Millisecond) {
			if time.Since(start) > time.Minute {
				t.Fatal("the receiver asks for no doorbell")
			}
		}
	}
	for range 10 {
		sleeps()
		m.wires[1].call()
	}
	sleeps()
	m.send(0, packet(0, 1, 40))
	take(t, "a packet", m.got[1])
}
