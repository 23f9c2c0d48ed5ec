package main

import (
	"net/netip"
	"sync/atomic"

	"hardtack/abi/boot"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/netdev"
	"hardtack/kernel/net/netif"
	"hardtack/monitor"
	"hardtack/nucleus"
)

// clusterNet is the device of the interface cl0: the network of the machine's clusters.
// Frames pass between the monitors. The first kernel is the switch of the others, which
// only have a link to it.
type clusterNet struct {
	m    *monitor.Monitor
	net  *inet.Net
	own  int
	recv atomic.Pointer[func([]netdev.Frame)]
}

// firstAddress is the last number of cluster 0's address; the others' is their own.
const firstAddress = 254

// clusterAddress is a cluster's address in its network.
func clusterAddress(index int) netip.Addr {
	if index == 0 {
		index = firstAddress
	}
	return netip.AddrFrom4([4]byte{10, 0, 3, byte(index)})
}

// clusterMAC is a cluster's station address.
func clusterMAC(index int) [6]byte { return [6]byte{0x02, 'H', 'T', 0, 0, byte(index)} }

// startClusterNet makes the interface.
func startClusterNet(net *inet.Net, m *monitor.Monitor) {
	d := &clusterNet{m: m, net: net, own: nucleus.ClusterIndex()}
	link, err := netif.Add(net, d, "cl0")
	if err == nil {
		err = link.Apply(netif.Settings{Address: netip.PrefixFrom(clusterAddress(d.own), 24)})
	}
	if err != nil {
		warn("cl0: %v", err)
		return
	}
	m.SetNet(d)
}

// MAC implements netdev.Device, as the methods up to SetReceiver.
func (d *clusterNet) MAC() [6]byte { return clusterMAC(d.own) }

func (d *clusterNet) MTU() int { return monitor.MaxFrame - 14 }

func (d *clusterNet) Features() netdev.Features { return 0 }

func (d *clusterNet) Transmit(frames []netdev.Frame) int {
	for i := range frames {
		parts := frames[i].Parts
		if len(parts) > 0 && len(parts[0]) >= 14 && !d.send([6]byte(parts[0]), d.own, parts) {
			return i
		}
	}
	return len(frames)
}

func (d *clusterNet) Hold()  {}
func (d *clusterNet) Flush() {}

func (d *clusterNet) SetReceiver(recv func([]netdev.Frame)) { d.recv.Store(&recv) }

// send sends a frame of a cluster towards another one, or to all but its sender. It
// reports false if there was no room.
func (d *clusterNet) send(to [6]byte, from int, parts [][]byte) bool {
	if d.own > 0 {
		return d.m.SendFrame(0, parts)
	}
	if to[0]&1 != 0 {
		for _, i := range d.m.Others() {
			if i != from {
				d.m.SendFrame(i, parts)
			}
		}
		return true
	}
	if i := int(to[5]); i < boot.MaxClusters && i != from && i != d.own && to == clusterMAC(i) {
		return d.m.SendFrame(i, parts)
	}
	return true // nobody has that address
}

// Receive implements monitor.Net.
func (d *clusterNet) Receive(from int, frame []byte) {
	if len(frame) < 14 || d.own == 0 && [6]byte(frame[6:]) != clusterMAC(from) {
		return // no frame, or in another's name
	}
	to := [6]byte(frame)
	if d.own == 0 && to != clusterMAC(0) {
		d.send(to, from, [][]byte{frame})
		if to[0]&1 == 0 {
			return
		}
	}
	if recv := d.recv.Load(); recv != nil {
		(*recv)([]netdev.Frame{{Parts: [][]byte{frame}}})
	}
}

// Ended implements monitor.Net: connections to a kernel that has ended are reset.
func (d *clusterNet) Ended(index int) { d.net.ResetPeer(clusterAddress(index)) }
