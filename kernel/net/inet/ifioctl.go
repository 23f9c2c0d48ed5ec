package inet

import (
	"bytes"

	"gvisor.dev/gvisor/pkg/tcpip"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/net/sock"
)

// TxQueueLen is what every interface shows as the length of its queue.
const TxQueueLen = 1000

// inetIoctl is the requests that only sockets of the Internet families know, and
// then those of all sockets.
func (s *inetSock) inetIoctl(c *caller.Ctx, cmd uint32, arg uint64) (uint64, linux.Errno) {
	if s.v6 {
		switch cmd {
		case linux.SIOCADDRT, linux.SIOCDELRT, linux.SIOCSIFADDR, linux.SIOCDIFADDR, linux.SIOCSIFDSTADDR:
			return 0, notConfigurable(c)
		}
		return s.net.DeviceIoctl(c, cmd, arg)
	}
	return s.net.PacketIoctl(c, cmd, arg)
}

// PacketIoctl is the requests that sockets of AF_INET and AF_PACKET know.
func (n *Net) PacketIoctl(c *caller.Ctx, cmd uint32, arg uint64) (uint64, linux.Errno) {
	switch cmd {
	case linux.SIOCADDRT, linux.SIOCDELRT:
		return 0, n.routeIoctl(c, cmd, arg)
	case linux.SIOCRTMSG:
		return 0, linux.EINVAL
	case linux.SIOCDARP, linux.SIOCGARP, linux.SIOCSARP:
		return 0, n.arpIoctl(c, cmd, arg)
	case linux.SIOCGIFADDR, linux.SIOCGIFBRDADDR, linux.SIOCGIFNETMASK, linux.SIOCGIFDSTADDR, linux.SIOCGIFPFLAGS,
		linux.SIOCSIFADDR, linux.SIOCSIFBRDADDR, linux.SIOCSIFNETMASK, linux.SIOCSIFDSTADDR, linux.SIOCSIFPFLAGS:
		var r [linux.SizeofIfreq]byte
		if _, e := c.Mem.CopyIn(r[:], uio.Addr(arg)); e != 0 {
			return 0, e
		}
		e := n.addressRequest(c, cmd, &r)
		if e == 0 {
			_, e = c.Mem.CopyOut(uio.Addr(arg), r[:])
		}
		return 0, e
	}
	return n.DeviceIoctl(c, cmd, arg)
}

// notConfigurable refuses to change interfaces and routes, whose addresses are
// given on the kernel's command line.
func notConfigurable(c *caller.Ctx) linux.Errno {
	if !c.Cred().Has(creds.CapNetAdmin) {
		return linux.EPERM
	}
	return linux.EOPNOTSUPP
}

// ifname returns the interface's name in a request, without the part behind a
// colon, which names one of its addresses.
func ifname(r *[linux.SizeofIfreq]byte) (name string, alias bool) {
	name = cstring(r[:linux.IFNAMSIZ-1])
	if i := bytes.IndexByte([]byte(name), ':'); i >= 0 {
		return name[:i], true
	}
	return name, false
}

// addressRequest is the requests about an interface's address of IPv4.
func (n *Net) addressRequest(c *caller.Ctx, cmd uint32, r *[linux.SizeofIfreq]byte) linux.Errno {
	body := r[linux.IFNAMSIZ:]
	set := false
	switch cmd {
	case linux.SIOCGIFPFLAGS, linux.SIOCSIFPFLAGS:
		return linux.EINVAL
	case linux.SIOCSIFADDR, linux.SIOCSIFBRDADDR, linux.SIOCSIFNETMASK, linux.SIOCSIFDSTADDR:
		if set = true; !c.Cred().Has(creds.CapNetAdmin) {
			return linux.EPERM
		}
		if body[0] != linux.AF_INET || body[1] != 0 {
			return linux.EINVAL
		}
	}
	name, _ := ifname(r)
	i := n.interfaceByName(name)
	if i == nil {
		return linux.ENODEV
	}
	a, ok := n.labelled(i, r, !set)
	if !ok && cmd != linux.SIOCSIFADDR {
		return linux.EADDRNOTAVAIL
	}
	if set {
		return n.setAddress(i, cmd, r, a, ok)
	}
	subnet := a.Subnet()
	m := subnet.Mask()
	mask, ip := [4]byte(m.AsSlice()), a.Address.As4()
	clear(body[:linux.SizeofSockaddrIn])
	body[0] = linux.AF_INET
	switch cmd {
	case linux.SIOCGIFNETMASK:
		ip = mask
	case linux.SIOCGIFBRDADDR:
		ip = [4]byte{}
		if b, has := n.Broadcast(i, a); has {
			ip = b.As4()
		}
	}
	copy(body[4:], ip[:])
	return 0
}

// DeviceIoctl is the ioctl requests that any socket answers.
func (n *Net) DeviceIoctl(c *caller.Ctx, cmd uint32, arg uint64) (uint64, linux.Errno) {
	if cmd>>8 != 0x89 {
		return 0, linux.ENOTTY
	}
	switch cmd {
	case linux.SIOCGIFCONF:
		return n.ifconf(c, arg)
	case linux.SIOCGIFBR, linux.SIOCSIFBR, linux.SIOCBRADDBR, linux.SIOCBRDELBR, linux.SIOCGIFVLAN, linux.SIOCSIFVLAN:
		return 0, linux.ENOPKG
	case linux.SIOCGSTAMP, linux.SIOCGSTAMPNS: // of sockets that have no times
		return 0, linux.ENOTTY
	}
	var r [linux.SizeofIfreq]byte
	if _, e := c.Mem.CopyIn(r[:], uio.Addr(arg)); e != 0 {
		return 0, e
	}
	if cmd == linux.SIOCGIFNAME {
		index, _ := sock.Int(r[linux.IFNAMSIZ:])
		i := n.InterfaceByIndex(index)
		if i == nil {
			return 0, linux.ENODEV
		}
		clear(r[:linux.IFNAMSIZ])
		copy(r[:linux.IFNAMSIZ-1], i.Name)
	} else if e := n.ifreq(c, cmd, &r); e != 0 {
		return 0, e
	}
	_, e := c.Mem.CopyOut(uio.Addr(arg), r[:])
	return 0, e
}

// ifreq carries out a request about one interface.
func (n *Net) ifreq(c *caller.Ctx, cmd uint32, r *[linux.SizeofIfreq]byte) linux.Errno {
	if !isDeviceRequest(cmd) {
		return linux.ENOTTY
	}
	if wantsAdmin(cmd) && !c.Cred().Has(creds.CapNetAdmin) {
		return linux.EPERM
	}
	name, _ := ifname(r)
	i := n.interfaceByName(name)
	body := r[linux.IFNAMSIZ:]
	if cmd == linux.SIOCETHTOOL {
		return ethtool(c, i, sock.Uint64(body))
	}
	if i == nil {
		return linux.ENODEV
	}
	switch cmd {
	case linux.SIOCGIFFLAGS:
		body[0], body[1] = byte(i.Flags()), byte(i.Flags()>>8)
	case linux.SIOCGIFINDEX:
		sock.PutInt(body, i.Index)
	case linux.SIOCGIFMTU:
		sock.PutInt(body, int32(i.CurrentMTU()))
	case linux.SIOCGIFTXQLEN:
		sock.PutInt(body, TxQueueLen)
	case linux.SIOCGIFMETRIC:
		sock.PutInt(body, 0)
	case linux.SIOCGIFMAP:
		clear(body[:21]) // without the padding of struct ifmap
	case linux.SIOCGIFHWADDR:
		clear(body[:2+len(i.MAC)])
		body[0], body[1] = byte(i.HardwareType()), byte(i.HardwareType()>>8)
		copy(body[2:], i.MAC[:])
	case linux.SIOCGIFSLAVE:
		return linux.EINVAL
	case linux.SIOCSIFFLAGS:
		return n.setFlags(i, r)
	case linux.SIOCSIFMTU:
		v, _ := sock.Int(body)
		return n.SetMTU(i, int(v))
	default:
		return i.change(c, cmd, body)
	}
	return 0
}

// change is a request that would change an interface: one that changes nothing succeeds.
func (i *Interface) change(c *caller.Ctx, cmd uint32, body []byte) linux.Errno {
	v, _ := sock.Int(body)
	same := false
	switch cmd {
	case linux.SIOCSIFTXQLEN:
		if v < 0 {
			return linux.EINVAL
		}
		same = v == TxQueueLen
	case linux.SIOCSIFHWADDR, linux.SIOCSIFHWBROADCAST:
		if uint16(v) != i.HardwareType() {
			return linux.EINVAL
		}
	case linux.SIOCADDMULTI, linux.SIOCDELMULTI:
		if uint16(v) != linux.AF_UNSPEC {
			return linux.EINVAL
		}
	case linux.SIOCSIFNAME:
		same = cstring(body[:linux.IFNAMSIZ-1]) == i.Name
	case linux.SIOCSIFSLAVE:
		return linux.EINVAL
	case linux.SIOCSHWTSTAMP:
		var b [12]byte
		if _, e := c.Mem.CopyIn(b[:], uio.Addr(sock.Uint64(body))); e != 0 {
			return e
		}
	}
	if same {
		return 0
	}
	return linux.EOPNOTSUPP
}

// isDeviceRequest reports whether a request is one about an interface.
func isDeviceRequest(cmd uint32) bool {
	switch cmd {
	case linux.SIOCGIFFLAGS, linux.SIOCGIFMETRIC, linux.SIOCGIFMTU, linux.SIOCGIFSLAVE, linux.SIOCGIFMAP, linux.SIOCGIFINDEX,
		linux.SIOCGIFTXQLEN, linux.SIOCGIFHWADDR, linux.SIOCETHTOOL, linux.SIOCWANDEV, linux.SIOCGHWTSTAMP,
		linux.SIOCBONDFIRST + 3, linux.SIOCBONDFIRST + 4:
		return true
	}
	return wantsAdmin(cmd) || cmd >= linux.SIOCDEVPRIVATE && cmd <= linux.SIOCDEVPRIVATE+15
}

// wantsAdmin reports whether a request about an interface needs CAP_NET_ADMIN.
func wantsAdmin(cmd uint32) bool {
	switch cmd {
	case linux.SIOCGMIIPHY, linux.SIOCGMIIREG, linux.SIOCSIFNAME, linux.SIOCSIFMAP, linux.SIOCSIFTXQLEN, linux.SIOCSIFFLAGS,
		linux.SIOCSIFMETRIC, linux.SIOCSIFMTU, linux.SIOCSIFHWADDR, linux.SIOCSIFSLAVE, linux.SIOCADDMULTI, linux.SIOCDELMULTI,
		linux.SIOCSIFHWBROADCAST, linux.SIOCSMIIREG, linux.SIOCSHWTSTAMP:
		return true
	case linux.SIOCBONDFIRST + 3, linux.SIOCBONDFIRST + 4:
		return false
	}
	return cmd >= linux.SIOCBONDFIRST && cmd <= linux.SIOCBONDLAST
}

// ethtool is SIOCETHTOOL: whether there is a link, and which time stamps there are.
func ethtool(c *caller.Ctx, i *Interface, at uint64) linux.Errno {
	var b [linux.SizeofEthtoolTsInfo]byte
	if _, e := c.Mem.CopyIn(b[:4], uio.Addr(at)); e != 0 {
		return e
	}
	if i == nil {
		return linux.ENODEV
	}
	size := len(b)
	switch cmd, _ := sock.Int(b[:]); cmd {
	case linux.ETHTOOL_GLINK:
		sock.PutInt(b[4:], 1)
		size = 8
	case linux.ETHTOOL_GET_TS_INFO:
		sock.PutInt(b[4:], sock.StampRxSoftware|sock.StampSoftware)
		sock.PutInt(b[8:], -1)
	default:
		if !c.Cred().Has(creds.CapNetAdmin) {
			return linux.EPERM
		}
		return linux.EOPNOTSUPP
	}
	_, e := c.Mem.CopyOut(uio.Addr(at), b[:size])
	return e
}

// arpIoctl is SIOCGARP and its kin, with a struct arpreq.
func (n *Net) arpIoctl(c *caller.Ctx, cmd uint32, arg uint64) linux.Errno {
	const flagsAt, maskAt, deviceAt, complete, permanent = 32, 36, 52, 0x02, 0x04
	admin := c.Cred().Has(creds.CapNetAdmin)
	if cmd != linux.SIOCGARP && !admin {
		return linux.EPERM
	}
	var b [linux.SizeofArpreq]byte
	if _, e := c.Mem.CopyIn(b[:], uio.Addr(arg)); e != 0 {
		return e
	}
	if b[0] != linux.AF_INET || b[1] != 0 {
		return linux.EPFNOSUPPORT
	}
	i := n.interfaceByName(cstring(b[deviceAt : deviceAt+linux.IFNAMSIZ]))
	if b[deviceAt] == 0 && cmd != linux.SIOCGARP { // the way to the neighbour says where
		i = n.InterfaceByIndex(n.wayOut(tcpip.AddrFrom4([4]byte(b[4:8]))))
	}
	switch {
	case i == nil:
		return linux.ENODEV
	case cmd == linux.SIOCSARP:
		return n.setArp(i, &b)
	case cmd == linux.SIOCDARP:
		if _, have := n.NeighborEntry(i, tcpip.AddrFrom4([4]byte(b[4:8]))); !have {
			return linux.ENXIO
		}
		return n.RemoveNeighbor(i, tcpip.AddrFrom4([4]byte(b[4:8])))
	}
	for _, x := range n.Neighbors(i) {
		if x.Addr == tcpip.AddrFrom4([4]byte(b[4:8])) {
			clear(b[16:deviceAt])
			b[16], b[17] = byte(i.HardwareType()), byte(i.HardwareType()>>8)
			copy(b[18:], x.LinkAddr)
			if b[flagsAt] = complete; x.Permanent {
				b[flagsAt] |= permanent
			}
			copy(b[maskAt:], "\x02\x00\x00\x00\xff\xff\xff\xff")
			_, e := c.Mem.CopyOut(uio.Addr(arg), b[:])
			return e
		}
	}
	return linux.ENXIO
}

// ifconf is SIOCGIFCONF: the interfaces with IPv4 addresses.
func (n *Net) ifconf(c *caller.Ctx, arg uint64) (uint64, linux.Errno) {
	var h [linux.SizeofIfconf]byte
	if _, e := c.Mem.CopyIn(h[:], uio.Addr(arg)); e != 0 {
		return 0, e
	}
	room, _ := sock.Int(h[:])
	to := sock.Uint64(h[8:])
	done := int32(0)
	for _, x := range n.named4() {
		if to != 0 {
			if room-done < linux.SizeofIfreq {
				break
			}
			var r [linux.SizeofIfreq]byte
			copy(r[:linux.IFNAMSIZ-1], x.name)
			r[16] = linux.AF_INET
			ip := x.a.As4()
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
