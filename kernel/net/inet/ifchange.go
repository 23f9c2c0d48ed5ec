package inet

import (
	"encoding/binary"
	"math/bits"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/net/sock"
)

// Changes of addresses and routes by ioctl(2), as ifconfig and route ask for them.

// classPrefix returns the prefix of an address's class; -1 for one that no host has.
func classPrefix(a [4]byte) int {
	switch {
	case a[0] == 0 || a == [4]byte{255, 255, 255, 255}:
		return 0
	case a[0] >= 240:
		return 32
	case a[0] < 128:
		return 8
	case a[0] < 192:
		return 16
	case a[0] < 224:
		return 24
	}
	return -1
}

// maskBits returns the prefix of a mask; false if it has holes.
func maskBits(m []byte) (int, bool) {
	v := binary.BigEndian.Uint32(m)
	n := bits.LeadingZeros32(^v)
	return n, n == 32 || v<<n == 0
}

// labelled returns the address that a request means: the first with its name, or the very
// address that it names where exact says that it may.
func (n *Net) labelled(i *Interface, r *[linux.SizeofIfreq]byte, exact bool) (found tcpip.AddressWithPrefix, ok bool) {
	label, body := cstring(r[:linux.IFNAMSIZ-1]), r[linux.IFNAMSIZ:]
	exact = exact && body[0] == linux.AF_INET && body[1] == 0
	for _, a := range n.Addresses(i.Index) {
		if a.Address.Len() != 4 || n.Label(i, a.Address) != label {
			continue
		}
		if exact && a.Address == tcpip.AddrFrom4([4]byte(body[4:8])) {
			return a, true
		}
		if !ok {
			found, ok = a, true
		}
	}
	return found, ok
}

// setAddress is SIOCSIFADDR and its kin on the address a, if the interface has it.
func (n *Net) setAddress(i *Interface, cmd uint32, r *[linux.SizeofIfreq]byte, a tcpip.AddressWithPrefix, have bool) linux.Errno {
	body := r[linux.IFNAMSIZ:]
	ip := [4]byte(body[4:8])
	x := n.AddressNoteOf(i.Index, a.Address)
	next := a
	switch cmd {
	case linux.SIOCSIFADDR:
		next = tcpip.AddressWithPrefix{Address: tcpip.AddrFrom4(ip), PrefixLen: classPrefix(ip)}
		if next.PrefixLen < 0 {
			return linux.EINVAL
		}
		if have && next.Address == a.Address {
			return 0
		}
		x = AddressNote{Label: cstring(r[:linux.IFNAMSIZ-1])}
	case linux.SIOCSIFBRDADDR:
		x.Broadcast, x.HasBroadcast = tcpip.AddrFrom4(ip), true
		n.noteAddress(i.Index, a.Address, x)
		return 0
	case linux.SIOCSIFDSTADDR:
		if tcpip.AddrFrom4(ip) == a.Address {
			return 0
		}
		return linux.EOPNOTSUPP // no interface here has a single peer
	case linux.SIOCSIFNETMASK:
		prefix, ok := maskBits(ip[:])
		if !ok {
			return linux.EINVAL
		}
		if prefix == a.PrefixLen {
			return 0
		}
		if b, has := n.Broadcast(i, a); has {
			if s := a.Subnet(); b == s.Broadcast() {
				x.HasBroadcast = false // it is that of the prefix, the new one too
			}
		}
		next.PrefixLen = prefix
	}
	if have {
		if e := n.TakeAddress(By{}, i, a.Address); e != 0 {
			return e
		}
	}
	if next.Address == header.IPv4Any {
		return 0
	}
	return n.GiveAddress(By{}, i, next, x)
}

// setFlags is SIOCSIFFLAGS. Of one of an interface's names it can only take the address away.
func (n *Net) setFlags(i *Interface, r *[linux.SizeofIfreq]byte) linux.Errno {
	flags := uint32(binary.LittleEndian.Uint16(r[linux.IFNAMSIZ:]))
	if _, alias := ifname(r); alias {
		a, ok := n.labelled(i, r, false)
		switch {
		case !ok:
			return linux.EADDRNOTAVAIL
		case flags&linux.IFF_UP == 0:
			return n.TakeAddress(By{}, i, a.Address)
		}
		return 0
	}
	return n.SetFlags(i, flags, 0xffff)
}

// Flags of struct rtentry.
const rtfGateway, rtfHost, rtfReject = 0x2, 0x4, 0x200

// routeIoctl is SIOCADDRT and SIOCDELRT with a struct rtentry.
func (n *Net) routeIoctl(c *caller.Ctx, cmd uint32, arg uint64) linux.Errno {
	if !c.Cred().Has(creds.CapNetAdmin) {
		return linux.EPERM
	}
	var b [linux.SizeofRtentry]byte
	if _, e := c.Mem.CopyIn(b[:], uio.Addr(arg)); e != 0 {
		return e
	}
	const dstAt, viaAt, maskAt, flagsAt, metricAt, deviceAt = 8, 24, 40, 56, 80, 88
	family := func(at int) uint16 { return binary.LittleEndian.Uint16(b[at:]) }
	flags := family(flagsAt)
	if family(dstAt) != linux.AF_INET {
		return linux.EAFNOSUPPORT
	}
	prefix, ok := 32, true
	if flags&rtfHost == 0 {
		if family(maskAt) != linux.AF_INET && (binary.LittleEndian.Uint32(b[maskAt+4:]) != 0 || family(maskAt) != 0) {
			return linux.EAFNOSUPPORT
		}
		if prefix, ok = maskBits(b[maskAt+4 : maskAt+8]); !ok {
			return linux.EINVAL
		}
	}
	r := tcpip.Route{Destination: tcpip.AddressWithPrefix{Address: tcpip.AddrFrom4([4]byte(b[dstAt+4:])), PrefixLen: prefix}.Subnet()}
	if r.Destination.ID() != tcpip.AddrFrom4([4]byte(b[dstAt+4:])) {
		return linux.EINVAL
	}
	x := RouteNote{Proto: linux.RTPROT_BOOT, Scope: linux.RT_SCOPE_NOWHERE}
	if m := int16(family(metricAt)); m > 0 {
		x.Metric = uint32(m - 1)
	}
	if at := sock.Uint64(b[deviceAt:]); at != 0 {
		var name [linux.SizeofIfreq]byte
		if _, e := c.Mem.CopyIn(name[:linux.IFNAMSIZ-1], uio.Addr(at)); e != 0 {
			return e
		}
		base, _ := ifname(&name)
		i := n.interfaceByName(base)
		if i == nil {
			return linux.ENODEV
		}
		r.NIC = tcpip.NICID(i.Index)
	}
	if via := [4]byte(b[viaAt+4:]); family(viaAt) == linux.AF_INET && via != [4]byte{} {
		r.Gateway = tcpip.AddrFrom4(via)
		if flags&rtfGateway != 0 && !n.isBroadcast(r.Gateway) && !header.IsV4MulticastAddress(r.Gateway) {
			x.Scope = linux.RT_SCOPE_UNIVERSE
		}
	}
	if cmd == linux.SIOCDELRT {
		return n.TakeRoute(By{}, Wanted{Route: r, Metric: x.Metric, Scope: linux.RT_SCOPE_NOWHERE})
	}
	switch {
	case flags&rtfReject != 0:
		return linux.EOPNOTSUPP
	case flags&rtfGateway != 0 && r.Gateway.Len() == 0:
		return linux.EINVAL
	case x.Scope == linux.RT_SCOPE_NOWHERE:
		x.Scope = linux.RT_SCOPE_LINK
	}
	return n.GiveRoute(By{}, &r, x, linux.NLM_F_CREATE)
}
