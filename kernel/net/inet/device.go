package inet

import (
	"bytes"
	"sort"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/abi/linux"
)

// DeviceIndex is the number of the interface with a name; 0 for none.
func (n *Net) DeviceIndex(name string) int32 {
	if i := n.interfaceByName(name); i != nil {
		return i.Index
	}
	return 0
}

// DeviceName is the name of the interface with a number; "" for none.
func (n *Net) DeviceName(index int32) string {
	if i := n.InterfaceByIndex(index); i != nil {
		return i.Name
	}
	return ""
}

// InterfaceByIndex returns an interface, or nil.
func (n *Net) InterfaceByIndex(index int32) *Interface {
	for _, i := range n.Interfaces() {
		if i.Index == index {
			return i
		}
	}
	return nil
}

func (n *Net) interfaceByName(name string) *Interface {
	for _, i := range n.Interfaces() {
		if i.Name == name {
			return i
		}
	}
	return nil
}

// Addresses returns an interface's addresses in Linux's order: those of IPv4 as they came,
// but the first of each prefix before the others; those of IPv6 by scope, the newest first.
func (n *Net) Addresses(index int32) []tcpip.AddressWithPrefix {
	var out []tcpip.AddressWithPrefix
	for _, a := range n.Stack.AllAddresses()[tcpip.NICID(index)] {
		if a.AddressWithPrefix.Address != header.IPv4Broadcast { // netstack's own
			out = append(out, a.AddressWithPrefix)
		}
	}
	when := func(a tcpip.Address) uint64 {
		v, _ := n.addressOrder.Load(addressKey{index, a})
		at, _ := v.(uint64)
		return at
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i].Address, out[j].Address
		switch x, y := scope6(a), scope6(b); {
		case a.Len() != b.Len():
			return a.Len() < b.Len()
		case a.Len() == 4:
			return when(a) < when(b)
		case x != y:
			return x > y
		}
		return when(a) > when(b)
	})
	return firstOfPrefix(out)
}

// scope6 orders addresses of IPv6 by how far they reach.
func scope6(a tcpip.Address) int {
	switch {
	case a.Len() != 16 || a == header.IPv6Loopback:
		return 0
	case header.IsV6LinkLocalUnicastAddress(a):
		return 1
	}
	return 2
}

// firstOfPrefix moves addresses of IPv4 whose prefix another has had behind the others.
func firstOfPrefix(list []tcpip.AddressWithPrefix) []tcpip.AddressWithPrefix {
	var later []tcpip.AddressWithPrefix
	out := make([]tcpip.AddressWithPrefix, 0, len(list))
	for k, a := range list {
		if a.Address.Len() == 16 && later != nil {
			out, later = append(out, later...), nil
		}
		if a.Address.Len() == 4 && secondary(list[:k], a) {
			later = append(later, a)
		} else {
			out = append(out, a)
		}
	}
	return append(out, later...)
}

// HardwareType returns ARPHRD_*.
func (i *Interface) HardwareType() uint16 {
	if i.Loopback {
		return linux.ARPHRD_LOOPBACK
	}
	return linux.ARPHRD_ETHER
}

// Statistics returns what has gone through an interface.
func (n *Net) Statistics(index int32) (rxBytes, rxPackets, txBytes, txPackets uint64) {
	info, ok := n.Stack.SingleNICInfo(tcpip.NICID(index))
	if !ok {
		return
	}
	s := info.Stats
	return s.Rx.Bytes.Value(), s.Rx.Packets.Value(), s.Tx.Bytes.Value(), s.Tx.Packets.Value()
}

// SortedRoutes returns the routing table in the order that Linux shows it in: by
// destination, of one destination the longer prefix first.
func (n *Net) SortedRoutes() []tcpip.Route {
	list := n.Routes()
	sort.SliceStable(list, func(i, j int) bool {
		a, b := list[i].Destination.ID(), list[j].Destination.ID()
		return bytes.Compare(a.AsSlice(), b.AsSlice()) < 0
	})
	return list
}

// Routes returns the routing table.
func (n *Net) Routes() []tcpip.Route { return n.Stack.GetRouteTable() }
