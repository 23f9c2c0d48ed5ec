package netlink

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/net/inet"
)

// builder writes messages of one answer, and passes them on in datagrams that
// fit any reader's buffer.
type builder struct {
	s       *Sock // whose answer it is; nil of an announcement
	net     *inet.Net
	port    uint32
	seq     uint32
	flags   uint16
	b       []byte
	message int         // where the present message begins
	outcome linux.Errno // of a dump
}

// chunk is when a datagram is full; glibc reads with 4 KiB or more.
const chunk = 3072

func (w *builder) begin(typ uint16) {
	if len(w.b) > chunk {
		w.flush()
	}
	w.message = len(w.b)
	w.u32(0) // the length, known in end
	w.b = binary.LittleEndian.AppendUint16(w.b, typ)
	w.b = binary.LittleEndian.AppendUint16(w.b, w.flags)
	w.u32(w.seq)
	w.u32(w.port)
}

func (w *builder) end() {
	binary.LittleEndian.PutUint32(w.b[w.message:], uint32(len(w.b)-w.message))
}

func (w *builder) flush() {
	if len(w.b) > 0 {
		if w.s.in.Append(w.b, int(w.s.Opt.RcvBuf.Load()), w.s.Opt.Filter()) != 0 && !w.s.has(linux.NETLINK_NO_ENOBUFS) {
			w.s.NoteError(linux.ENOBUFS) // as on Linux, whoever reads too slowly loses answers
		}
		w.b = w.b[:0]
	}
}

func (w *builder) u32(v uint32) { w.b = binary.LittleEndian.AppendUint32(w.b, v) }

func (w *builder) attr(typ uint16, data []byte) {
	w.b = binary.LittleEndian.AppendUint16(w.b, uint16(linux.SizeofRtAttr+len(data)))
	w.b = binary.LittleEndian.AppendUint16(w.b, typ)
	w.b = append(w.b, data...)
	for len(w.b)&3 != 0 {
		w.b = append(w.b, 0)
	}
}

func (w *builder) attrU32(typ uint16, v uint32) {
	w.attr(typ, binary.LittleEndian.AppendUint32(nil, v))
}

// answer carries out one request; named says that it was sent to an address.
func (s *Sock) answer(c *caller.Ctx, req []byte, named bool) {
	typ := binary.LittleEndian.Uint16(req[4:])
	flags := binary.LittleEndian.Uint16(req[6:])
	// A privileged program may write what a user wrote into a socket that it got from that
	// user. It changes something only if it names the kernel itself.
	admin := c.Cred().Has(creds.CapNetAdmin) && (named || s.admin)
	w := &builder{s: s, net: s.net, port: s.port.Load(), seq: binary.LittleEndian.Uint32(req[8:])}
	e := linux.Errno(0)
	done := false
	switch body := req[linux.SizeofNlMsghdr:]; {
	case flags&linux.NLM_F_REQUEST == 0 || typ < linux.RTM_NEWLINK:
	case s.Protocol == linux.NETLINK_SOCK_DIAG:
		done, e = w.diagnose(admin, typ, flags, body)
	default:
		done, e = w.request(c, admin, typ, flags, body)
	}
	if e != 0 {
		w.b = w.b[:0]
	}
	w.flush() // the end comes by itself, as on Linux: whoever reads with little room sees it
	switch {
	case e != 0 || flags&linux.NLM_F_ACK != 0 && !done:
		w.flags = 0
		w.error(e, req)
	case done:
		w.begin(linux.NLMSG_DONE)
		w.u32(uint32(-int32(w.outcome)))
		w.end()
	}
	w.flush()
}

// request answers what is asked; done says that it was a dump.
func (w *builder) request(c *caller.Ctx, admin bool, typ, flags uint16, body []byte) (done bool, e linux.Errno) {
	dump := flags&linux.NLM_F_DUMP == linux.NLM_F_DUMP
	get := typ&3 == linux.RTM_GETLINK&3
	switch {
	case typ > linux.RTM_MAX:
		return false, linux.EOPNOTSUPP
	case len(body) == 0: // Linux wants a family
		return false, 0
	case !get && !admin:
		return false, linux.EPERM
	case !get:
		return false, w.change(c, typ, flags, body)
	case dump:
		w.flags = linux.NLM_F_MULTI
		w.outcome = w.dump(typ, body)
		return true, 0
	case typ == linux.RTM_GETROUTE:
		return false, w.lookup(c, body)
	case typ != linux.RTM_GETLINK:
		return false, linux.EOPNOTSUPP
	}
	i, e := w.s.find(body)
	if e == 0 {
		w.link(w.s.net, i)
	}
	return false, e
}

// dump lists what there is of one kind.
func (w *builder) dump(typ uint16, body []byte) linux.Errno {
	n := w.s.net
	switch typ {
	case linux.RTM_GETLINK:
		for _, i := range n.Interfaces() {
			w.link(n, i)
		}
	case linux.RTM_GETADDR:
		for _, i := range n.Interfaces() {
			for _, a := range n.Addresses(i.Index) {
				w.address(i, a, body[0], n.AddressFlags(i, a))
			}
		}
	case linux.RTM_GETROUTE:
		return w.dumpRoutes(body)
	case linux.RTM_GETRULE:
		return w.dumpRules(body[0])
	case linux.RTM_GETNEIGH:
		w.dumpNeighbors(body)
	}
	return 0
}

// error is NLMSG_ERROR: the outcome of a request, with all of it if it failed.
func (w *builder) error(e linux.Errno, req []byte) {
	if e == 0 || w.s.has(linux.NETLINK_CAP_ACK) {
		w.flags = linux.NLM_F_CAPPED
		req = req[:linux.SizeofNlMsghdr]
	}
	w.begin(linux.NLMSG_ERROR)
	w.u32(uint32(-int32(e)))
	w.b = append(w.b, req...)
	for len(w.b)&3 != 0 {
		w.b = append(w.b, 0)
	}
	w.end()
	w.flush()
}

// find returns the interface that RTM_GETLINK asks for, by index or name.
func (s *Sock) find(body []byte) (*inet.Interface, linux.Errno) {
	if len(body) < linux.SizeofIfInfomsg {
		return nil, linux.EINVAL
	}
	if index := int32(binary.LittleEndian.Uint32(body[4:])); index > 0 {
		if i := s.net.InterfaceByIndex(index); i != nil {
			return i, 0
		}
		return nil, linux.ENODEV
	}
	for b := body[linux.SizeofIfInfomsg:]; len(b) >= linux.SizeofRtAttr; {
		n := int(binary.LittleEndian.Uint16(b))
		if n < linux.SizeofRtAttr || n > len(b) {
			break
		}
		if binary.LittleEndian.Uint16(b[2:]) == linux.IFLA_IFNAME {
			return s.named(b[linux.SizeofRtAttr:n])
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return nil, linux.EINVAL
}

func (s *Sock) named(name []byte) (*inet.Interface, linux.Errno) {
	for _, i := range s.net.Interfaces() {
		if string(name) == i.Name || string(name) == i.Name+"\x00" {
			return i, 0
		}
	}
	return nil, linux.ENODEV
}

func (w *builder) link(n *inet.Net, i *inet.Interface) {
	w.begin(linux.RTM_NEWLINK)
	w.b = append(w.b, 0, 0, byte(i.HardwareType()), byte(i.HardwareType()>>8))
	w.u32(uint32(i.Index))
	flags, oper := i.Flags(), byte(linux.IF_OPER_DOWN)
	if i.Running() {
		flags |= linux.IFF_LOWER_UP
		if oper = linux.IF_OPER_UP; i.Loopback {
			oper = linux.IF_OPER_UNKNOWN
		}
	}
	w.u32(flags)
	w.u32(0)
	w.attr(linux.IFLA_IFNAME, []byte(i.Name+"\x00"))
	w.attrU32(linux.IFLA_TXQLEN, 1000)
	w.attr(linux.IFLA_OPERSTATE, []byte{oper})
	w.attr(linux.IFLA_LINKMODE, []byte{0})
	w.attrU32(linux.IFLA_MTU, uint32(i.CurrentMTU()))
	w.attrU32(linux.IFLA_GROUP, 0)
	w.attr(linux.IFLA_QDISC, []byte("noqueue\x00"))
	w.attr(linux.IFLA_ADDRESS, i.MAC[:])
	broadcast := []byte{255, 255, 255, 255, 255, 255}
	if i.Loopback {
		clear(broadcast)
	}
	w.attr(linux.IFLA_BROADCAST, broadcast)
	rb, rp, tb, tp := n.Statistics(i.Index)
	var st [24 * 8]byte
	for k, v := range []uint64{rp, tp, rb, tb} {
		binary.LittleEndian.PutUint64(st[8*k:], v)
	}
	w.attr(linux.IFLA_STATS64, st[:])
	var short [24 * 4]byte
	for k, v := range []uint64{rp, tp, rb, tb} {
		binary.LittleEndian.PutUint32(short[4*k:], uint32(v))
	}
	w.attr(linux.IFLA_STATS, short[:])
	for _, x := range []struct {
		typ uint16
		v   uint32
	}{{linux.IFLA_PROMISCUITY, i.Promiscuity()}, {linux.IFLA_NUM_TX_QUEUES, 1}, {linux.IFLA_NUM_RX_QUEUES, 1},
		{linux.IFLA_CARRIER_CHANGES, i.CarrierChanges()}} {
		w.attrU32(x.typ, x.v)
	}
	w.attr(linux.IFLA_CARRIER, []byte{byte(b2i(i.Carrier()))})
	w.attr(linux.IFLA_PROTO_DOWN, []byte{0})
	w.end()
}

func b2i(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func (w *builder) address(i *inet.Interface, a tcpip.AddressWithPrefix, family byte, flags uint32) {
	fam := byte(linux.AF_INET)
	if a.Address.Len() == 16 {
		fam = linux.AF_INET6
	}
	if family != 0 && family != fam {
		return
	}
	ip, scope := a.Address.AsSlice(), w.net.Scope(i, a.Address)
	x := w.net.AddressNoteOf(i.Index, a.Address)
	if i.Loopback && a.Address == header.IPv6Loopback {
		x.Proto = linux.IFAPROT_KERNEL_LO
	}
	w.begin(linux.RTM_NEWADDR)
	w.b = append(w.b, fam, byte(a.PrefixLen), byte(flags), scope)
	w.u32(uint32(i.Index))
	w.attr(linux.IFA_ADDRESS, ip)
	if fam == linux.AF_INET {
		w.attr(linux.IFA_LOCAL, ip)
		if b, ok := w.net.Broadcast(i, a); ok {
			w.attr(linux.IFA_BROADCAST, b.AsSlice())
		}
		w.attr(linux.IFA_LABEL, []byte(w.net.Label(i, a.Address)+"\x00"))
		w.addressProto(x.Proto)
		w.attrU32(linux.IFA_FLAGS, flags)
	}
	if x.Metric != 0 {
		w.attrU32(linux.IFA_RT_PRIORITY, x.Metric)
	}
	preferred, valid := x.Life.Left()
	if fam == linux.AF_INET && flags&linux.IFA_F_PERMANENT != 0 {
		preferred, valid = inet.Forever, inet.Forever
	}
	var cache [linux.SizeofIfaCacheinfo]byte
	const boot = 1 // hundredths of a second: of addresses that were given there
	for k, v := range []uint32{preferred, valid, uint32(max(x.Life.Made/1e7, boot)), uint32(max(x.Life.Changed/1e7, boot))} {
		binary.LittleEndian.PutUint32(cache[4*k:], v)
	}
	w.attr(linux.IFA_CACHEINFO, cache[:])
	if fam == linux.AF_INET6 {
		w.attrU32(linux.IFA_FLAGS, flags)
		w.addressProto(x.Proto)
	}
	w.end()
}

func (w *builder) addressProto(p uint8) {
	if p != 0 {
		w.attr(linux.IFA_PROTO, []byte{p})
	}
}

func (w *builder) route(r tcpip.Route, family byte) { w.routeWith(r, family, w.net.NoteOf(&r)) }

func (w *builder) routeWith(r tcpip.Route, family byte, x inet.RouteNote) {
	dst := r.Destination.ID()
	fam := byte(linux.AF_INET)
	if dst.Len() == 16 {
		fam = linux.AF_INET6
	}
	if family != 0 && family != fam {
		return
	}
	// Linux keeps the loopback addresses in its table "local".
	i := w.net.InterfaceByIndex(int32(r.NIC))
	if typ := inet.TypeOf(&r); typ != linux.RTN_UNICAST {
		w.nowhere(&r, fam, typ, &x)
		return
	}
	if i == nil || i.Loopback && x.Proto == linux.RTPROT_KERNEL && (fam == linux.AF_INET || dst == header.IPv6Loopback) {
		return
	}
	prefix := r.Destination.Prefix()
	w.begin(linux.RTM_NEWROUTE)
	w.b = append(w.b, fam, byte(prefix), 0, 0, linux.RT_TABLE_MAIN, x.Proto, x.Scope, linux.RTN_UNICAST)
	w.u32(0)
	w.attrU32(linux.RTA_TABLE, linux.RT_TABLE_MAIN)
	if prefix > 0 {
		w.attr(linux.RTA_DST, dst.AsSlice())
	}
	if x.Metric != 0 {
		w.attrU32(linux.RTA_PRIORITY, x.Metric)
	}
	switch {
	case r.SourceHint.Len() != 0:
		w.attr(linux.RTA_PREFSRC, r.SourceHint.AsSlice())
	case fam == linux.AF_INET && x.Proto == linux.RTPROT_KERNEL && r.Gateway.Len() == 0:
		for _, a := range w.net.Addresses(i.Index) {
			if a.Address.Len() == 4 && a.Subnet() == r.Destination {
				w.attr(linux.RTA_PREFSRC, a.Address.AsSlice())
				break
			}
		}
	}
	if r.Gateway.Len() != 0 {
		w.attr(linux.RTA_GATEWAY, r.Gateway.AsSlice())
	}
	w.attrU32(linux.RTA_OIF, uint32(r.NIC))
	w.routeEnd6(fam)
	w.end()
}

// nowhere writes a route that leads nowhere. Of IPv6 lo is its interface.
func (w *builder) nowhere(r *tcpip.Route, family, typ byte, x *inet.RouteNote) {
	prefix := r.Destination.Prefix()
	w.begin(linux.RTM_NEWROUTE)
	w.b = append(w.b, family, byte(prefix), 0, 0, linux.RT_TABLE_MAIN, x.Proto, x.Scope, typ)
	w.u32(0)
	w.attrU32(linux.RTA_TABLE, linux.RT_TABLE_MAIN)
	if prefix > 0 {
		dst := r.Destination.ID()
		w.attr(linux.RTA_DST, dst.AsSlice())
	}
	if x.Metric != 0 {
		w.attrU32(linux.RTA_PRIORITY, x.Metric)
	}
	if family == linux.AF_INET6 {
		w.attrU32(linux.RTA_OIF, inet.LoopbackNIC)
	}
	w.routeEnd6(family)
	w.end()
}

// routeEnd6 writes what Linux tells of each route of IPv6: it does not expire, and is of
// medium preference.
func (w *builder) routeEnd6(family byte) {
	if family == linux.AF_INET6 {
		w.attr(linux.RTA_CACHEINFO, make([]byte, linux.SizeofRtaCacheinfo))
		w.attr(linux.RTA_PREF, []byte{0})
	}
}
