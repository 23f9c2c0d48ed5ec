// Package clusternet joins the TCP/IP stacks of a machine's clusters: the device of the
// interface cl0.
//
// It is a link for IPv4 packets without ARP. Each other cluster has a wire (Wire) to the
// first one, which passes on what is for another. The destination's address says where a
// packet goes: cluster N has 10.0.3.N+1. Nobody waits: where a ring has no room the packet
// is lost, as on any network.
//
// # Trust
//
// A peer may write anything into a wire. Nonsense in its words or lengths ends the wire. What
// is in a packet is for the stack to judge, but a packet whose source is not its cluster's
// address is dropped. The other clusters trust the first one, which has started them.
//
// Lock order: netstack's locks, then Net.mu, then a Wire's.
package clusternet

import (
	mathbits "math/bits"
	"net/netip"
	"sync"
	"sync/atomic"

	"hardtack/abi/boot"
	"hardtack/kernel/net/netdev"
)

// MTU is the largest packet that is not a train of TCP segments: a sixteenth of a ring.
const MTU = ringBytes / 16

// network is the first three bytes of all addresses.
var network = [3]byte{10, 0, 3}

// Address is a cluster's address, with the length of its network's prefix.
func Address(index int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{network[0], network[1], network[2], byte(index + 1)}), 24)
}

// clusterOf is the cluster with an address, -1 if it is none's.
func clusterOf(a []byte) int {
	if [3]byte(a) != network || a[3] == 0 || a[3] > boot.MaxClusters {
		return -1
	}
	return int(a[3]) - 1
}

// Net is a cluster's device.
type Net struct {
	own   int // the cluster; immutable
	recv  atomic.Pointer[func([]netdev.Frame)]
	reset atomic.Pointer[func(netip.Addr)]

	mu    sync.Mutex
	life  [boot.MaxClusters]uint32               // in the first cluster: see control; guarded by mu
	wires [boot.MaxClusters]atomic.Pointer[Wire] // changed with mu held
	wired atomic.Uint32                          // bit for each wire that was ever there
	up    [boot.MaxClusters]atomic.Bool          // the cluster runs

	refused chan []byte // frames that answer packets to clusters that do not run

	// Dropped counts packets in others' names, for nobody, and those that were passed on
	// where there was no room.
	Dropped atomic.Uint64
}

// New makes the device of a cluster.
func New(own int) *Net {
	d := &Net{own: own, refused: make(chan []byte, maxRefused)}
	go func() {
		for b := range d.refused {
			d.deliver(b)
		}
	}()
	return d
}

// OnEnd names who resets the connections to an address whose cluster has ended.
func (d *Net) OnEnd(fn func(netip.Addr)) { d.reset.Store(&fn) }

// Rung is the doorbell's bottom half: some cluster rang.
func (d *Net) Rung() {
	for bits := d.wired.Load(); bits != 0; bits &= bits - 1 {
		if w := d.wires[mathbits.TrailingZeros32(bits)].Load(); w != nil {
			w.rung()
		}
	}
}

// Add joins another cluster to the first one.
func (d *Net) Add(index int, w *Wire) {
	d.mu.Lock()
	d.wires[index].Store(w)
	d.wired.Or(1 << index)
	d.life[index]++
	d.up[index].Store(true)
	d.tell()
	d.mu.Unlock()
	go func() {
		w.receive(ethernet, func(frame []byte) { d.pass(index, frame) }, func() {})
		d.End(index, w)
	}()
}

// End ends what Add began, and the connections to the cluster: it has ended, or broke the
// rules.
func (d *Net) End(index int, w *Wire) {
	w.close()
	<-w.stopped
	d.mu.Lock()
	was := d.wires[index].CompareAndSwap(w, nil)
	if was {
		d.life[index]++
		d.up[index].Store(false)
		d.tell()
	}
	d.mu.Unlock()
	if was {
		d.ended(index)
	}
}

// tell tells all clusters which others run; mu is held.
func (d *Net) tell() {
	for i := range d.wires {
		w := d.wires[i].Load()
		if w == nil {
			continue
		}
		for k, n := range d.life {
			w.c.Life[k].Store(n)
		}
		w.c.Changes.Add(1)
		w.call()
	}
}

func (d *Net) ended(index int) {
	if fn := d.reset.Load(); fn != nil {
		(*fn)(Address(index).Addr())
	}
}

// Join joins another cluster than the first one to that.
func (d *Net) Join(w *Wire) {
	d.wires[0].Store(w)
	d.wired.Store(1)
	d.up[0].Store(true)
	go func() {
		var seen [boot.MaxClusters]uint32
		w.receive(ethernet, d.take, func() { d.look(w, &seen) })
		for i := range d.up {
			if d.up[i].Swap(false) {
				d.ended(i)
			}
		}
	}()
}

// look finds out which clusters run.
func (d *Net) look(w *Wire, seen *[boot.MaxClusters]uint32) {
	for i := range seen {
		now := w.c.Life[i].Load()
		if i == 0 || i == d.own || now == seen[i] {
			continue
		}
		was := seen[i]
		seen[i] = now
		d.up[i].Store(now%2 == 1)
		if was%2 == 1 {
			d.ended(i)
		}
	}
}

// pass takes a packet of another cluster's in the first one.
func (d *Net) pass(from int, frame []byte) {
	p := frame[ethernet:]
	if clusterOf(p[sourceAt:]) != from {
		d.Dropped.Add(1)
		return
	}
	to := clusterOf(p[destinationAt:])
	switch {
	case to == d.own:
		d.arrived(from, frame)
	case to < 0 || to == from:
		d.Dropped.Add(1)
	default:
		w := d.wires[to].Load()
		if w == nil || !w.send([][]byte{frame}, ethernet, len(p)) {
			d.Dropped.Add(1)
		}
	}
}

// take takes a packet from the first cluster in another one.
func (d *Net) take(frame []byte) {
	p := frame[ethernet:]
	from := clusterOf(p[sourceAt:])
	if from < 0 || from == d.own || clusterOf(p[destinationAt:]) != d.own {
		d.Dropped.Add(1)
		return
	}
	d.arrived(from, frame)
}

// arrived hands a packet to the stack. Memory is not a wire: there are no checksums to test.
func (d *Net) arrived(from int, frame []byte) {
	putEthernet(frame, d.own, from)
	d.deliver(frame)
}

func (d *Net) deliver(frame []byte) {
	if recv := d.recv.Load(); recv != nil {
		(*recv)([]netdev.Frame{{Parts: [][]byte{frame}, ChecksumValid: true}})
	}
}
