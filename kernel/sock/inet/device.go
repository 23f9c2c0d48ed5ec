package inet

import (
	"sort"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/abi/linux"
	"hardtack/kernel/kern"
	"hardtack/kernel/sock"
	"hardtack/kernel/uio"
)

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

// Addresses returns an interface's addresses, IPv4 first.
func (n *Net) Addresses(index int32) []tcpip.AddressWithPrefix {
	var out []tcpip.AddressWithPrefix
	for _, a := range n.Stack.AllAddresses()[tcpip.NICID(index)] {
		if a.AddressWithPrefix.Address != header.IPv4Broadcast { // netstack's own
			out = append(out, a.AddressWithPrefix)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Address.Len() < out[j].Address.Len() })
	return out
}

// address4 returns an interface's first IPv4 address.
func (n *Net) address4(index int32) (tcpip.AddressWithPrefix, bool) {
	for _, a := range n.Addresses(index) {
		if a.Address.Len() == 4 {
			return a, true
		}
	}
	return tcpip.AddressWithPrefix{}, false
}

// Flags returns IFF_* of an interface.
func (i *Interface) Flags() uint32 {
	if i.Loopback {
		return linux.IFF_UP | linux.IFF_RUNNING | linux.IFF_LOOPBACK
	}
	return linux.IFF_UP | linux.IFF_RUNNING | linux.IFF_BROADCAST | linux.IFF_MULTICAST
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

// Routes returns the routing table.
func (n *Net) Routes() []tcpip.Route { return n.Stack.GetRouteTable() }

// deviceIoctl is the ioctl requests that any socket answers.
func (n *Net) deviceIoctl(c *kern.Ctx, cmd uint32, arg uint64) (uint64, linux.Errno) {
	if cmd>>8 != 0x89 {
		return 0, linux.ENOTTY
	}
	if cmd == linux.SIOCGIFCONF {
		return n.ifconf(c, arg)
	}
	switch cmd {
	case linux.SIOCGIFNAME, linux.SIOCGIFFLAGS, linux.SIOCGIFADDR, linux.SIOCGIFDSTADDR, linux.SIOCGIFBRDADDR,
		linux.SIOCGIFNETMASK, linux.SIOCGIFMETRIC, linux.SIOCGIFMTU, linux.SIOCGIFHWADDR, linux.SIOCGIFINDEX,
		linux.SIOCGIFTXQLEN, linux.SIOCGIFMAP:
	case linux.SIOCETHTOOL:
		return 0, linux.EOPNOTSUPP
	case linux.SIOCSIFFLAGS, linux.SIOCSIFADDR, linux.SIOCSIFMTU, linux.SIOCADDRT:
		return 0, linux.EPERM // interfaces are configured by the kernel's command line
	default:
		return 0, linux.ENOTTY
	}
	var r [linux.SizeofIfreq]byte
	if _, e := c.Mem.CopyIn(r[:], uio.Addr(arg)); e != 0 {
		return 0, e
	}
	body := r[linux.IFNAMSIZ:]
	var i *Interface
	if cmd == linux.SIOCGIFNAME {
		index, _ := sock.Int(body)
		if i = n.InterfaceByIndex(index); i == nil {
			return 0, linux.ENODEV
		}
		clear(r[:linux.IFNAMSIZ])
		copy(r[:linux.IFNAMSIZ-1], i.Name)
	} else {
		if i = n.interfaceByName(cstring(r[:linux.IFNAMSIZ])); i == nil {
			return 0, linux.ENODEV
		}
		clear(body)
		if e := n.ifreq(i, cmd, body); e != 0 {
			return 0, e
		}
	}
	_, e := c.Mem.CopyOut(uio.Addr(arg), r[:])
	return 0, e
}

// ifreq fills the answer to a request about one interface.
func (n *Net) ifreq(i *Interface, cmd uint32, body []byte) linux.Errno {
	putIn := func(a [4]byte) {
		body[0] = linux.AF_INET
		copy(body[4:], a[:])
	}
	switch cmd {
	case linux.SIOCGIFFLAGS:
		body[0], body[1] = byte(i.Flags()), byte(i.Flags()>>8)
	case linux.SIOCGIFINDEX:
		sock.PutInt(body, i.Index)
	case linux.SIOCGIFMTU:
		sock.PutInt(body, int32(i.MTU))
	case linux.SIOCGIFTXQLEN:
		sock.PutInt(body, 1000)
	case linux.SIOCGIFHWADDR:
		body[0], body[1] = byte(i.HardwareType()), byte(i.HardwareType()>>8)
		copy(body[2:], i.MAC[:])
	case linux.SIOCGIFMETRIC, linux.SIOCGIFMAP:
	default:
		a, ok := n.address4(i.Index)
		if !ok {
			return linux.EADDRNOTAVAIL
		}
		net := a.Subnet()
		m := net.Mask()
		mask := [4]byte(m.AsSlice())
		ip := a.Address.As4()
		switch cmd {
		case linux.SIOCGIFADDR, linux.SIOCGIFDSTADDR:
			putIn(ip)
		case linux.SIOCGIFNETMASK:
			putIn(mask)
		case linux.SIOCGIFBRDADDR:
			if i.Loopback {
				putIn([4]byte{})
				break
			}
			for k := range ip {
				ip[k] |= ^mask[k]
			}
			putIn(ip)
		}
	}
	return 0
}

// ifconf is SIOCGIFCONF: the interfaces with IPv4 addresses.
func (n *Net) ifconf(c *kern.Ctx, arg uint64) (uint64, linux.Errno) {
	var h [linux.SizeofIfconf]byte
	if _, e := c.Mem.CopyIn(h[:], uio.Addr(arg)); e != 0 {
		return 0, e
	}
	room, _ := sock.Int(h[:])
	to := sock.Uint64(h[8:])
	if room < 0 {
		return 0, linux.EINVAL
	}
	done := int32(0)
	for _, i := range n.Interfaces() {
		a, ok := n.address4(i.Index)
		if !ok {
			continue
		}
		if to != 0 {
			if room-done < linux.SizeofIfreq {
				break
			}
			var r [linux.SizeofIfreq]byte
			copy(r[:linux.IFNAMSIZ-1], i.Name)
			r[16] = linux.AF_INET
			ip := a.Address.As4()
			copy(r[20:], ip[:])
			if _, e := c.Mem.CopyOut(uio.Addr(to)+uio.Addr(done), r[:]); e != 0 {
				return 0, e
			}
		}
		done += linux.SizeofIfreq
	}
	var b [4]byte
	sock.PutInt(b[:], done)
	_, e := c.Mem.CopyOut(uio.Addr(arg), b[:])
	return 0, e
}
