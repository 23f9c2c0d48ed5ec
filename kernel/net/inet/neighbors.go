package inet

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"hardtack/abi/linux"
)

// Neighbor is a machine on an interface's link whose hardware address is known.
type Neighbor struct {
	Addr     tcpip.Address
	LinkAddr tcpip.LinkAddress

	Permanent bool // it was given by a program
}

// Neighbors returns what ARP has found out on an interface.
func (n *Net) Neighbors(i *Interface) (out []Neighbor) {
	if i.Loopback {
		return nil
	}
	list, err := n.Stack.Neighbors(tcpip.NICID(i.Index), ipv4.ProtocolNumber)
	if err != nil {
		return nil
	}
	for _, x := range list {
		if x.LinkAddr != "" {
			out = append(out, Neighbor{x.Addr, x.LinkAddr, x.State == stack.Static})
		}
	}
	return out
}

// NeighborEntries returns what netstack knows of an interface's neighbours.
func (n *Net) NeighborEntries(i *Interface, six bool) []stack.NeighborEntry {
	proto := ipv4.ProtocolNumber
	if six {
		proto = ipv6.ProtocolNumber
	}
	if i.Loopback {
		return nil
	}
	list, err := n.Stack.Neighbors(tcpip.NICID(i.Index), proto)
	if err != nil {
		return nil
	}
	return list
}

// NeighborEntry returns what is known of one neighbour.
func (n *Net) NeighborEntry(i *Interface, a tcpip.Address) (stack.NeighborEntry, bool) {
	for _, x := range n.NeighborEntries(i, a.Len() == 16) {
		if x.Addr == a {
			return x, true
		}
	}
	return stack.NeighborEntry{}, false
}

// AddNeighbor says for good which hardware address a neighbour has.
func (n *Net) AddNeighbor(i *Interface, a tcpip.Address, mac tcpip.LinkAddress) linux.Errno {
	n.changing.Lock()
	defer n.changing.Unlock()
	return errno(n.Stack.AddStaticNeighbor(tcpip.NICID(i.Index), protocolOf(a), a, mac))
}

// RemoveNeighbor forgets a neighbour.
func (n *Net) RemoveNeighbor(i *Interface, a tcpip.Address) linux.Errno {
	n.changing.Lock()
	defer n.changing.Unlock()
	if n.Stack.RemoveNeighbor(tcpip.NICID(i.Index), protocolOf(a), a) != nil {
		return linux.ENOENT
	}
	return 0
}

// setArp is SIOCSARP: an entry that stays.
func (n *Net) setArp(i *Interface, b *[linux.SizeofArpreq]byte) linux.Errno {
	const hardwareAt, flagsAt, permanent, publish = 16, 32, 0x04, 0x08
	switch flags := binary.LittleEndian.Uint32(b[flagsAt:]); {
	case binary.LittleEndian.Uint16(b[hardwareAt:]) != i.HardwareType():
		return linux.EINVAL
	case flags&publish != 0, flags&permanent == 0, i.Loopback:
		return linux.EOPNOTSUPP
	}
	return n.AddNeighbor(i, tcpip.AddrFrom4([4]byte(b[4:8])), tcpip.LinkAddress(b[hardwareAt+2:hardwareAt+8]))
}
