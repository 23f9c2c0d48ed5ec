package clusternet

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"

	"hardtack/kernel/net/netdev"
)

// The stack sees an Ethernet device, so headers of Ethernet are made and taken off here.
const (
	ethernet      = 14
	sourceAt      = 12 // in an IPv4 header
	destinationAt = 16
)

func station(index int) [6]byte { return [6]byte{0x02, 'H', 'T', 0, 0, byte(index + 1)} }

func putEthernet(frame []byte, to, from int) {
	a, b := station(to), station(from)
	copy(frame, a[:])
	copy(frame[6:], b[:])
	frame[12], frame[13] = 0x08, 0x00
}

// MAC implements netdev.Device, as all that follows.
func (d *Net) MAC() [6]byte { return station(d.own) }

// MTU is the largest packet.
func (d *Net) MTU() int { return MTU }

// Features: trains of TCP segments pass as one packet, and nobody computes checksums.
func (d *Net) Features() netdev.Features {
	return netdev.TxChecksum | netdev.TSO4 | netdev.TSO6 | netdev.RxChecksum | netdev.LRO | netdev.NoARP
}

// SetReceiver names who gets packets. Those that came before are lost.
func (d *Net) SetReceiver(recv func([]netdev.Frame)) { d.recv.Store(&recv) }

// Hold does nothing: a peer that is awake is not rung for.
func (d *Net) Hold() {}

// Flush does nothing.
func (d *Net) Flush() {}

// Transmit sends packets to the clusters that have their destinations' addresses.
func (d *Net) Transmit(frames []netdev.Frame) int {
	for i := range frames {
		if !d.transmit(frames[i].Parts, frames[i].Len()-ethernet) {
			return i
		}
	}
	return len(frames)
}

// headers is the length of all headers that are looked at, if they have all options.
const headers = ethernet + 60 + 20

// transmit reports false if there was no room. What is for nobody is lost.
func (d *Net) transmit(parts [][]byte, n int) bool {
	if n < minPacket || n > maxPacket {
		return true
	}
	head := parts[0]
	var whole [headers]byte
	if len(head) < headers { // a raw socket's headers are data
		k := 0
		for _, b := range parts {
			k += copy(whole[k:], b)
		}
		head = whole[:k]
	}
	p := head[ethernet:]
	if head[12] != 0x08 || head[13] != 0x00 || p[0]>>4 != 4 {
		return true
	}
	to := clusterOf(p[destinationAt:])
	if to < 0 || to == d.own {
		return true
	}
	if !d.up[to].Load() {
		d.refuse(p)
		return true
	}
	by := to
	if d.own > 0 {
		by = 0
	}
	w := d.wires[by].Load()
	return w == nil || w.send(parts, ethernet, n)
}

// maxRefused bounds the answers that wait for the stack.
const maxRefused = 64

// refuse answers a packet to a cluster that does not run with what a router would say:
// "host unreachable". The sender may hold locks of the stack, so another goroutine delivers
// it.
func (d *Net) refuse(p []byte) {
	const (
		icmp, tcp, udp = 1, 6, 17
		header         = 20
		ports          = 8
		rst            = 4
	)
	n := int(p[0]&15) * 4
	switch {
	case n < header || len(p) < n+ports,
		binary.BigEndian.Uint16(p[6:])&0x1fff != 0, // not the first fragment
		p[9] != tcp && p[9] != udp,
		p[9] == tcp && (len(p) < n+header || p[n+13]&rst != 0):
		return
	}
	quote := p[:n+ports]
	f := make([]byte, ethernet+header+8+len(quote))
	putEthernet(f, d.own, clusterOf(p[destinationAt:]))
	ip := f[ethernet:]
	ip[0], ip[8], ip[9] = 0x45, 64, icmp
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	copy(ip[sourceAt:], p[destinationAt:destinationAt+4])
	copy(ip[destinationAt:], p[sourceAt:sourceAt+4])
	binary.BigEndian.PutUint16(ip[10:], ^checksum.Checksum(ip[:header], 0))
	m := ip[header:]
	m[0], m[1] = 3, 1 // destination unreachable: the host
	copy(m[8:], quote)
	binary.BigEndian.PutUint16(m[2:], ^checksum.Checksum(m, 0))
	select {
	case d.refused <- f:
	default:
	}
}
