package netlink

import (
	"encoding/binary"
	"slices"

	"hardtack/abi/linux"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/unix"
)

// NETLINK_SOCK_DIAG: what there is of TCP, UDP and raw sockets and those of AF_UNIX,
// AF_NETLINK and AF_PACKET. Anybody may ask. Of memory only what waits in queues and the
// size of buffers are told; no timer is.

// Message types and sizes (include/uapi/linux/sock_diag.h, inet_diag.h, unix_diag.h).
const (
	sockDiagByFamily = 20
	sockDestroy      = 21

	sizeofInetRequest = 56
	sizeofUnixRequest = 24

	diagMeminfo   = 1 // INET_DIAG_*; up to 8, 1 << (n-1) asks for n
	diagInfo      = 2
	diagCong      = 4
	diagTOS       = 5
	diagTClass    = 6
	diagSKMeminfo = 7
	diagShutdown  = 8
	diagProtocol  = 10
	diagV6Only    = 11
	diagMark      = 15
	diagClassID   = 17
	diagSockopt   = 22

	requestBytecode = 1 // INET_DIAG_REQ_BYTECODE
	requestProtocol = 3 // INET_DIAG_REQ_PROTOCOL

	unixName     = 0 // UNIX_DIAG_*; 1 << n asks for n
	unixVFS      = 1
	unixPeer     = 2
	unixPending  = 3
	unixQueues   = 4
	unixShutdown = 6
	unixUID      = 7
	showUID      = 1 << 6 // UDIAG_SHOW_UID

	noCookie = ^uint32(0) // INET_DIAG_NOCOOKIE
)

// diagnose answers what is asked; done says that it was a dump.
func (w *builder) diagnose(admin bool, typ, flags uint16, body []byte) (done bool, e linux.Errno) {
	switch {
	case typ != sockDiagByFamily && typ != sockDestroy, len(body) < 2, body[0] >= linux.AF_MAX:
		return false, linux.EINVAL
	case body[0] != linux.AF_INET && body[0] != linux.AF_INET6 && body[0] != linux.AF_UNIX &&
		body[0] != linux.AF_NETLINK && body[0] != linux.AF_PACKET:
		return false, linux.ENOENT
	case typ == sockDestroy:
		return false, w.destroy(admin, body)
	}
	all := flags&linux.NLM_F_DUMP != 0
	if all {
		w.flags = linux.NLM_F_MULTI
	}
	switch body[0] {
	case linux.AF_UNIX:
		return all, w.unixSockets(body, all)
	case linux.AF_NETLINK:
		return all, w.netlinkSockets(body, all)
	case linux.AF_PACKET:
		return all, w.packetSockets(body, all)
	}
	if len(body) < sizeofInetRequest {
		return false, linux.EINVAL
	}
	r, e := parseInetRequest(body)
	if e != 0 {
		return false, e
	}
	if !all {
		i, e := w.inetSocket(r, false)
		if e == 0 {
			w.inetMessage(i, r.ext, admin)
		}
		return false, e
	}
	if !slices.Contains([]int32{linux.IPPROTO_TCP, linux.IPPROTO_UDP, linux.IPPROTO_UDPLITE, linux.IPPROTO_RAW}, r.protocol) {
		w.outcome = linux.ENOENT
		return true, 0
	}
	w.net.Each(func(i *inet.Info) {
		if r.wants(i) && (r.code == nil || r.code.matches(i)) {
			w.inetMessage(i, r.ext, admin)
		}
	})
	return true, 0
}

// inetRequest is struct inet_diag_req_v2 with the attributes behind it.
type inetRequest struct {
	family   uint8
	protocol int32
	raw      uint8
	ext      uint8 // what is asked for beyond the message
	states   uint32
	sport    uint16
	dport    uint16
	id       []byte // struct inet_diag_sockid
	code     bytecode
}

func parseInetRequest(body []byte) (*inetRequest, linux.Errno) {
	r := &inetRequest{family: body[0], protocol: int32(body[1]), ext: body[2], raw: body[3], states: binary.LittleEndian.Uint32(body[4:]), id: body[8:sizeofInetRequest]}
	r.sport, r.dport = binary.BigEndian.Uint16(r.id), binary.BigEndian.Uint16(r.id[2:])
	for rest := body[sizeofInetRequest:]; len(rest) >= linux.SizeofRtAttr; {
		n := int(binary.LittleEndian.Uint16(rest))
		if n < linux.SizeofRtAttr || n > len(rest) {
			break
		}
		value := rest[linux.SizeofRtAttr:n]
		switch binary.LittleEndian.Uint16(rest[2:]) {
		case requestBytecode:
			r.code = bytecode(value)
			if !r.code.valid() {
				return nil, linux.EINVAL
			}
		case requestProtocol:
			if len(value) < 4 {
				return nil, linux.EINVAL
			}
			r.protocol = int32(binary.LittleEndian.Uint32(value))
		}
		rest = rest[min((n+3)&^3, len(rest)):]
	}
	return r, 0
}

// wants reports whether a dump lists the socket.
func (r *inetRequest) wants(i *inet.Info) bool {
	family := uint8(linux.AF_INET)
	if i.V6 {
		family = linux.AF_INET6
	}
	local, peer := portOf(i.Local.B[:]), portOf(i.Peer.B[:])
	switch {
	case r.states>>i.State&1 == 0 || family != r.family:
		return false
	case i.Type == linux.SOCK_RAW:
		return r.protocol == linux.IPPROTO_RAW && (r.sport == 0 || int32(r.sport) == i.Protocol)
	case i.Protocol != r.protocol || local == 0:
		return false
	case i.Protocol == linux.IPPROTO_TCP && i.State == linux.TCP_CLOSE: // it is only bound
		return false
	}
	return (r.sport == 0 || r.sport == local) && (r.dport == 0 || r.dport == peer || i.State == linux.TCP_LISTEN)
}

func portOf(sockaddr []byte) uint16 { return binary.BigEndian.Uint16(sockaddr[2:]) }

// addressOf is the address in a sockaddr_in or sockaddr_in6, in sixteen bytes.
func addressOf(sockaddr []byte, v6 bool) (a [16]byte) {
	if v6 {
		copy(a[:], sockaddr[8:24])
	} else {
		copy(a[:4], sockaddr[4:8])
	}
	return a
}

// inetSocket finds the one socket that is named.
func (w *builder) inetSocket(r *inetRequest, destroy bool) (*inet.Info, linux.Errno) {
	if r.protocol != linux.IPPROTO_TCP && r.protocol != linux.IPPROTO_UDP && r.protocol != linux.IPPROTO_UDPLITE {
		return nil, linux.ENOENT
	}
	own, far := r.id[:2], r.id[2:4]
	ownAddr, farAddr := [16]byte(r.id[4:20]), [16]byte(r.id[20:36])
	if r.protocol != linux.IPPROTO_TCP && !destroy { // the other way round, as on Linux
		own, far, ownAddr, farAddr = far, own, farAddr, ownAddr
	}
	var found *inet.Info
	w.net.Each(func(i *inet.Info) {
		if i.Protocol != r.protocol || i.Type == linux.SOCK_RAW || i.V6 != (r.family == linux.AF_INET6) || portOf(i.Local.B[:]) != binary.BigEndian.Uint16(own) {
			return
		}
		local, peer := addressOf(i.Local.B[:], i.V6), addressOf(i.Peer.B[:], i.V6)
		waits := portOf(i.Peer.B[:]) == 0 && (local == ownAddr || local == [16]byte{}) && i.State != linux.TCP_CLOSE == (i.Protocol == linux.IPPROTO_TCP)
		exact := portOf(i.Peer.B[:]) == binary.BigEndian.Uint16(far) && local == ownAddr && peer == farAddr
		if exact || waits && found == nil {
			x := *i
			found = &x
		}
	})
	if found == nil {
		return nil, linux.ENOENT
	}
	switch same := sameCookie(r.id[40:48], found.Ino); {
	case same:
	case r.protocol == linux.IPPROTO_TCP || destroy:
		return nil, linux.ENOENT
	default:
		return nil, linux.ESTALE
	}
	return found, 0
}

// sameCookie reports whether a request is about the socket with the number.
func sameCookie(b []byte, ino uint64) bool {
	low, high := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	return low == noCookie && high == noCookie || uint64(low)|uint64(high)<<32 == ino
}

// destroy ends what the one socket that is named does.
func (w *builder) destroy(admin bool, body []byte) linux.Errno {
	switch {
	case body[0] != linux.AF_INET && body[0] != linux.AF_INET6:
		return linux.EOPNOTSUPP
	case len(body) < sizeofInetRequest:
		return linux.EINVAL
	}
	r, e := parseInetRequest(body)
	if e != 0 {
		return e
	}
	i, e := w.inetSocket(r, true)
	switch {
	case e != 0:
		return e
	case !admin:
		return linux.EPERM
	}
	return i.Destroy()
}

// inetMessage is struct inet_diag_msg and what follows; admin may see marks.
func (w *builder) inetMessage(i *inet.Info, ext uint8, admin bool) {
	w.begin(sockDiagByFamily)
	family := byte(linux.AF_INET)
	if i.V6 {
		family = linux.AF_INET6
	}
	w.b = append(w.b, family, byte(i.State), 0, 0)
	if i.Type == linux.SOCK_RAW {
		w.b = append(w.b, byte(i.Protocol>>8), byte(i.Protocol), 0, 0)
	} else {
		w.b = append(w.b, i.Local.B[2], i.Local.B[3], i.Peer.B[2], i.Peer.B[3])
	}
	local, peer := addressOf(i.Local.B[:], i.V6), addressOf(i.Peer.B[:], i.V6)
	w.b = append(append(w.b, local[:]...), peer[:]...)
	w.u32(uint32(i.Device))
	w.u32(uint32(i.Ino)) // the cookie, as SO_COOKIE tells it
	w.u32(uint32(i.Ino >> 32))
	w.u32(0) // no timer is told
	w.u32(uint32(i.RxQueue))
	if i.State == linux.TCP_LISTEN {
		w.u32(uint32(i.Backlog))
	} else {
		w.u32(uint32(i.TxQueue))
	}
	w.u32(i.UID)
	w.u32(uint32(i.Ino))
	w.attr(diagShutdown, []byte{i.Shut})
	w.inetDetails(i, ext, admin)
	if i.Type == linux.SOCK_RAW {
		w.attr(diagProtocol, []byte{byte(i.Protocol)})
	}
	w.end()
}

// inetDetails are the attributes of struct inet_diag_msg that ext asks for, and those that
// come anyway.
func (w *builder) inetDetails(i *inet.Info, ext uint8, admin bool) {
	asked := func(n int) bool { return ext>>(n-1)&1 != 0 }
	tos, tclass := i.Class()
	if asked(diagTOS) {
		w.attr(diagTOS, []byte{tos})
	}
	if i.V6 && asked(diagTClass) {
		w.attr(diagTClass, []byte{tclass})
	}
	if local := addressOf(i.Local.B[:], i.V6); i.V6 && (i.State == linux.TCP_LISTEN || i.State == linux.TCP_CLOSE) {
		only := byte(0)
		if i.V6Only || local != [16]byte{} && [12]byte(local[:]) != [12]byte{10: 0xff, 11: 0xff} {
			only = 1
		}
		w.attr(diagV6Only, []byte{only})
	}
	mark, priority := i.Marks()
	if admin {
		w.attrU32(diagMark, mark)
	}
	if asked(diagTClass) {
		w.attrU32(diagClassID, priority)
	}
	flags := i.Flags()
	w.attr(diagSockopt, flags[:])
	receive, send := i.Buffers()
	rx, tx := uint32(i.RxQueue), uint32(i.TxQueue)
	if i.State == linux.TCP_LISTEN {
		rx, tx = 0, 0 // they count connections
	}
	if asked(diagMeminfo) {
		w.attr(diagMeminfo, words(rx, tx, 0, tx))
	}
	if asked(diagSKMeminfo) {
		w.attr(diagSKMeminfo, words(rx, receive, tx, send, 0, tx, 0, 0, 0))
	}
	if b := i.TCPInfo(); b != nil && asked(diagInfo) {
		w.attr(diagInfo, b)
	}
	if name := i.Congestion(); name != "" && asked(diagCong) {
		//maxlive:len 32 because the names are cubic and reno
		w.attr(diagCong, []byte(name+"\x00"))
	}
}

// unixSockets answers about all sockets of AF_UNIX, or the one that is named.
func (w *builder) unixSockets(body []byte, dump bool) linux.Errno {
	if len(body) < sizeofUnixRequest {
		return linux.EINVAL
	}
	states, ino, show := binary.LittleEndian.Uint32(body[4:]), binary.LittleEndian.Uint32(body[8:]), binary.LittleEndian.Uint32(body[12:])
	if !dump && ino == 0 {
		return linux.EINVAL
	}
	e := linux.Errno(0)
	if !dump {
		e = linux.ENOENT
	}
	unix.Diagnose(func(d *unix.Diag) {
		switch {
		case dump && states>>d.State&1 == 0, !dump && uint32(d.Ino) != ino:
		case !dump && !sameCookie(body[16:24], d.Ino):
			e = linux.ESTALE
		default:
			e = 0
			w.unixMessage(d, show)
		}
	})
	return e
}

// unixMessage is struct unix_diag_msg and what was asked for.
func (w *builder) unixMessage(d *unix.Diag, show uint32) {
	w.begin(sockDiagByFamily)
	w.b = append(w.b, linux.AF_UNIX, byte(d.Type), byte(d.State), 0)
	w.u32(uint32(d.Ino))
	w.u32(uint32(d.Ino))
	w.u32(uint32(d.Ino >> 32))
	if show&(1<<unixName) != 0 && d.Name != nil {
		w.attr(unixName, d.Name)
	}
	if show&(1<<unixVFS) != 0 && d.Inode != 0 {
		w.attr(unixVFS, pair(uint32(d.Inode), uint32(d.Dev)))
	}
	if show&(1<<unixPeer) != 0 && d.Peer != 0 {
		w.attrU32(unixPeer, uint32(d.Peer))
	}
	if show&(1<<unixPending) != 0 && d.State == linux.TCP_LISTEN {
		var b []byte
		for _, ino := range d.Pending[:min(len(d.Pending), maxPending)] {
			b = binary.LittleEndian.AppendUint32(b, uint32(ino))
		}
		w.attr(unixPending, b)
	}
	if show&(1<<unixQueues) != 0 {
		w.attr(unixQueues, pair(uint32(d.RxQueue), uint32(d.TxQueue)))
	}
	w.attr(unixShutdown, []byte{d.Shut})
	if show&showUID != 0 {
		w.attrU32(unixUID, d.UID)
	}
	w.end()
}

// maxPending is how many numbers one attribute has room for.
const maxPending = (1<<16 - 1 - linux.SizeofRtAttr) / 4

func pair(a, b uint32) []byte { return words(a, b) }

func words(v ...uint32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}
