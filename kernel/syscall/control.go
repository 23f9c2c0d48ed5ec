package syscall

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/sock"
	"hardtack/kernel/process/proc"
)

// maxControl bounds the ancillary data of one message that is received.
const maxControl = 20480

// cmsgAlign rounds up as CMSG_ALIGN does.
func cmsgAlign(n int) int { return (n + 7) &^ 7 }

// readControl decodes the ancillary data of a message to send. Files taken
// from descriptors are m's even when it fails.
func readControl(t *proc.Thread, s *sock.Base, addr uio.Addr, n uint64, m *sock.Msg) linux.Errno {
	if addr == 0 || n == 0 {
		return 0
	}
	if n > uint64(min(max(settings.OptmemMax.Get(), 0), 1<<20)) {
		return linux.ENOBUFS
	}
	b := make([]byte, n)
	if _, e := t.Mem.CopyIn(b, addr); e != 0 {
		return e
	}
	for len(b) >= linux.SizeofCmsghdr {
		size := binary.LittleEndian.Uint64(b)
		if size < linux.SizeofCmsghdr || size > uint64(len(b)) {
			return linux.EINVAL
		}
		level, typ := int32(binary.LittleEndian.Uint32(b[8:])), int32(binary.LittleEndian.Uint32(b[12:]))
		if e := readOneControl(t, s, level, typ, b[linux.SizeofCmsghdr:size], m); e != 0 {
			return e
		}
		b = b[min(cmsgAlign(int(size)), len(b)):]
	}
	return 0
}

func readOneControl(t *proc.Thread, s *sock.Base, level, typ int32, data []byte, m *sock.Msg) linux.Errno {
	inet := s.Domain == linux.AF_INET || s.Domain == linux.AF_INET6
	datagram := inet && s.Type != linux.SOCK_STREAM
	switch {
	case level == linux.SOL_SOCKET && inet:
		return readSocketControl(t, s, typ, data)
	case level == linux.SOL_SOCKET && typ == linux.SCM_RIGHTS:
		return readRights(t, data, m)
	case level == linux.SOL_SOCKET && typ == linux.SCM_CREDENTIALS:
		return readCredentials(t, data, m)
	case level == linux.SOL_SOCKET:
		return linux.EINVAL
	case datagram && level == linux.IPPROTO_UDP && s.Protocol == linux.IPPROTO_UDP && s.Type == linux.SOCK_DGRAM:
		if typ != linux.UDP_SEGMENT || len(data) != 2 {
			return linux.EINVAL
		}
		m.Segment = binary.LittleEndian.Uint16(data)
	case datagram && level == linux.IPPROTO_IP && s.Domain == linux.AF_INET:
		return readIPControl(typ, data, m)
	case datagram && level == linux.IPPROTO_IPV6 && s.Domain == linux.AF_INET6:
		return readIPv6Control(typ, data, m)
	}
	return 0 // as Linux, other protocols' data is nobody's business
}

// readSocketControl checks what any socket of the Internet families takes at SOL_SOCKET;
// nothing of it changes a packet of this machine.
func readSocketControl(t *proc.Thread, s *sock.Base, typ int32, data []byte) linux.Errno {
	const transmit = 1<<0 | 1<<1 | 1<<8 | 1<<9 // SOF_TIMESTAMPING_TX_*
	switch typ {
	case linux.SCM_RIGHTS, linux.SCM_CREDENTIALS:
		return 0
	case linux.SO_MARK:
		if !t.Cred().Has(creds.CapNetAdmin) && !t.Cred().Has(creds.CapNetRaw) {
			return linux.EPERM
		}
	case linux.SO_TIMESTAMPING, linux.SO_TIMESTAMPING_NEW:
		if v, e := sock.Int(data); e != 0 || v&^transmit != 0 {
			return linux.EINVAL
		}
	case linux.SO_TXTIME:
		if !s.Opt.Has(sock.Txtime) || len(data) != 8 {
			return linux.EINVAL
		}
		return 0
	default:
		return linux.EINVAL
	}
	if len(data) != 4 {
		return linux.EINVAL
	}
	return 0
}

// readIPControl takes what a socket of IPv4 is told about one datagram.
func readIPControl(typ int32, data []byte, m *sock.Msg) linux.Errno {
	v, e := sock.Int(data)
	switch typ {
	case linux.IP_PKTINFO:
		if len(data) != linux.SizeofInPktinfo {
			return linux.EINVAL
		}
		m.HasPktInfo = true
		m.PktInfo.Index = v
		copy(m.PktInfo.Local[:4], data[4:])
	case linux.IP_TTL:
		if e != 0 || len(data) != 4 || v < 1 || v > 255 {
			return linux.EINVAL
		}
		m.TTL = int(v)
	case linux.IP_TOS:
		if len(data) == 1 {
			v = int32(data[0])
		}
		if len(data) != 1 && len(data) != 4 || v < 0 || v > 255 {
			return linux.EINVAL
		}
		m.SendTOS = int16(v) + 1
	case linux.IP_RETOPTS:
		if len(data) > 40 {
			return linux.EINVAL
		}
	default:
		return linux.EINVAL
	}
	return 0
}

// readIPv6Control takes what a socket of IPv6 is told about one datagram.
func readIPv6Control(typ int32, data []byte, m *sock.Msg) linux.Errno {
	v, e := sock.Int(data)
	switch typ {
	case linux.IPV6_PKTINFO, linux.IPV6_2292PKTINFO:
		if len(data) < linux.SizeofIn6Pktinfo {
			return linux.EINVAL
		}
		m.HasPktInfo, m.PktInfo.V6 = true, true
		copy(m.PktInfo.Local[:], data)
		m.PktInfo.Index, _ = sock.Int(data[16:])
	case linux.IPV6_HOPLIMIT, linux.IPV6_2292HOPLIMIT:
		if e != 0 || len(data) != 4 || v < -1 || v > 255 {
			return linux.EINVAL
		}
		m.TTL = int(max(v, 0))
	case linux.IPV6_TCLASS:
		if len(data) != 4 || v < -1 || v > 255 {
			return linux.EINVAL
		}
		if v >= 0 {
			m.SendTOS = int16(v) + 1
		}
	case linux.IPV6_DONTFRAG:
		if len(data) != 4 || v < 0 || v > 1 {
			return linux.EINVAL
		}
	case linux.IPV6_FLOWINFO:
		if len(data) < 4 {
			return linux.EINVAL
		}
	case linux.IPV6_HOPOPTS, linux.IPV6_2292HOPOPTS, linux.IPV6_DSTOPTS, linux.IPV6_2292DSTOPTS, linux.IPV6_RTHDRDSTOPTS,
		linux.IPV6_RTHDR, linux.IPV6_2292RTHDR:
		return linux.EOPNOTSUPP // no packet has extension headers
	default:
		return linux.EINVAL
	}
	return 0
}

func readRights(t *proc.Thread, data []byte, m *sock.Msg) linux.Errno {
	if m.Rights == nil {
		m.Rights = make([]*vfs.File, 0, min(len(data)/4, linux.SCM_MAX_FD))
		m.MaxFiles = t.NoFile()
	}
	for ; len(data) >= 4; data = data[4:] {
		if len(m.Rights) == linux.SCM_MAX_FD {
			return linux.EINVAL
		}
		fd, _ := sock.Int(data)
		f := t.FDs.Get(fd)
		if f == nil {
			return linux.EBADF
		}
		//maxlive:len 253 because more are refused above
		m.Rights = append(m.Rights, f)
	}
	return 0
}

// readCredentials takes what a program says that it is, if it may say so.
func readCredentials(t *proc.Thread, data []byte, m *sock.Msg) linux.Errno {
	if len(data) != linux.SizeofUcred {
		return linux.EINVAL
	}
	pid, _ := sock.Int(data)
	uid, _ := sock.Int(data[4:])
	gid, _ := sock.Int(data[8:])
	u := linux.Ucred{PID: pid, UID: uint32(uid), GID: uint32(gid)}
	if uid == -1 || gid == -1 {
		return linux.EINVAL
	}
	c := t.Cred()
	if u.PID != t.PID && !c.Has(creds.CapSysAdmin) ||
		u.UID != c.UID && u.UID != c.EUID && u.UID != c.SUID && !c.Has(creds.CapSetuid) ||
		u.GID != c.GID && u.GID != c.EGID && u.GID != c.SGID && !c.Has(creds.CapSetgid) {
		return linux.EPERM
	}
	if u.PID != t.PID && proc.Lookup(u.PID) == nil && proc.ByTID(u.PID) == nil {
		return linux.ESRCH
	}
	if u.PID != t.PID && proc.Lookup(u.PID) == nil {
		return linux.ESRCH
	}
	m.HasCred, m.Cred = true, u
	return 0
}

// controlWriter puts ancillary data into a program's buffer.
type controlWriter struct {
	t    *proc.Thread
	addr uio.Addr
	room int
	used int
	cut  bool // something did not fit
}

// put appends one item; what does not fit is cut as Linux does. What cannot be written is
// left out: the message is there all the same.
func (w *controlWriter) put(level, typ int32, data []byte) linux.Errno {
	if w.room-w.used < linux.SizeofCmsghdr {
		w.cut = true
		return 0
	}
	size := linux.SizeofCmsghdr + len(data)
	if size > w.room-w.used {
		w.cut = true
		size = w.room - w.used
	}
	if _, e := w.t.Mem.CopyOut(w.addr+uio.Addr(w.used+linux.SizeofCmsghdr), data[:size-linux.SizeofCmsghdr]); e == 0 {
		w.head(level, typ, size)
	}
	return 0
}

// head writes the header of an item whose data is there, and goes on behind it.
func (w *controlWriter) head(level, typ int32, size int) {
	b := w.t.Scratch[:linux.SizeofCmsghdr]
	sock.PutUint64(b, uint64(size))
	sock.PutInt(b[8:], level)
	sock.PutInt(b[12:], typ)
	if _, e := w.t.Mem.CopyOut(w.addr+uio.Addr(w.used), b); e == 0 {
		w.used = min(w.used+cmsgAlign(size), w.room)
	}
}

// writeControl encodes what came with a message; files become descriptors, or
// are closed where there is no room. It returns how many bytes it wrote.
func writeControl(t *proc.Thread, s sock.Socket, addr uio.Addr, room uint64, m *sock.Msg) (int, linux.Errno) {
	defer dropRights(m)
	w := controlWriter{t: t, addr: addr, room: int(min(room, maxControl))}
	if addr == 0 {
		w.room = 0
	}
	if m.HasTimestamp {
		if e := w.putTime(s, m.Timestamp); e != 0 {
			return 0, e
		}
	}
	if m.HasStamp {
		if e := w.putStamp(s, m.Stamp); e != 0 {
			return 0, e
		}
	}
	if m.HasCred {
		var b [linux.SizeofUcred]byte
		sock.PutUcred(b[:], m.Cred)
		if e := w.put(linux.SOL_SOCKET, linux.SCM_CREDENTIALS, b[:]); e != 0 {
			return 0, e
		}
	}
	if len(m.Rights) > 0 {
		if e := w.putRights(m); e != 0 {
			return 0, e
		}
	}
	if m.Segment != 0 {
		var b [4]byte
		sock.PutInt(b[:], int32(m.Segment))
		if e := w.put(linux.IPPROTO_UDP, linux.UDP_GRO, b[:]); e != 0 {
			return 0, e
		}
	}
	if m.HasPktInfo {
		if e := w.putPktInfo(m); e != 0 {
			return 0, e
		}
	}
	if domain := s.SockBase().Domain; domain == linux.AF_INET || domain == linux.AF_INET6 {
		if e := w.putHops(m); e != 0 {
			return 0, e
		}
	}
	if e := w.putRare(m); e != 0 {
		return 0, e
	}
	if w.cut {
		m.OutFlags |= linux.MSG_CTRUNC
	}
	return w.used, 0
}

// putTime puts when a packet came, as SO_TIMESTAMP and its kin ask for it.
func (w *controlWriter) putTime(s sock.Socket, ns int64) linux.Errno {
	typ, div := int32(linux.SCM_TIMESTAMP), int64(1000)
	o := &s.SockBase().Opt
	switch nanos := o.Has(sock.TimestampNS); {
	case nanos && o.Has(sock.TimestampNew):
		typ, div = linux.SO_TIMESTAMPNS_NEW, 1
	case nanos:
		typ, div = linux.SCM_TIMESTAMPNS, 1
	case o.Has(sock.TimestampNew):
		typ = linux.SO_TIMESTAMP_NEW
	}
	var b [16]byte
	sock.PutUint64(b[:], uint64(ns/1e9))
	sock.PutUint64(b[8:], uint64(ns%1e9/div))
	return w.put(linux.SOL_SOCKET, typ, b[:])
}

// putPktInfo puts where a packet came in.
func (w *controlWriter) putPktInfo(m *sock.Msg) linux.Errno {
	var b [linux.SizeofIn6Pktinfo]byte
	if m.PktInfo.V6 {
		copy(b[:], m.PktInfo.Local[:])
		sock.PutInt(b[16:], m.PktInfo.Index)
		return w.put(linux.IPPROTO_IPV6, linux.IPV6_PKTINFO, b[:])
	}
	sock.PutInt(b[:], m.PktInfo.Index)
	copy(b[4:8], m.PktInfo.Local[:4])
	copy(b[8:12], m.PktInfo.Dest[:4])
	return w.put(linux.IPPROTO_IP, linux.IP_PKTINFO, b[:linux.SizeofInPktinfo])
}

// putHops puts a packet's hop limit and class of traffic.
func (w *controlWriter) putHops(m *sock.Msg) linux.Errno {
	var b [4]byte
	if m.TTL >= 0 {
		sock.PutInt(b[:], int32(m.TTL))
		level, typ := int32(linux.IPPROTO_IP), int32(linux.IP_TTL)
		if m.V6 {
			level, typ = linux.IPPROTO_IPV6, linux.IPV6_HOPLIMIT
		}
		if e := w.put(level, typ, b[:]); e != 0 {
			return e
		}
	}
	switch {
	case m.TOS < 0:
		return 0
	case m.V6:
		sock.PutInt(b[:], int32(m.TOS))
		return w.put(linux.IPPROTO_IPV6, linux.IPV6_TCLASS, b[:])
	}
	b[0] = byte(m.TOS)
	return w.put(linux.IPPROTO_IP, linux.IP_TOS, b[:1])
}

// putStamp puts what SO_TIMESTAMPING asked for: of its three times the first, software's.
func (w *controlWriter) putStamp(s sock.Socket, ns int64) linux.Errno {
	var b [48]byte
	sock.PutUint64(b[:], uint64(ns/1e9))
	sock.PutUint64(b[8:], uint64(ns%1e9))
	typ := int32(linux.SO_TIMESTAMPING)
	if s.SockBase().Opt.Has(sock.TimestampNew) {
		typ = linux.SO_TIMESTAMPING_NEW
	}
	return w.put(linux.SOL_SOCKET, typ, b[:])
}

// putRare puts what few messages carry.
func (w *controlWriter) putRare(m *sock.Msg) linux.Errno {
	if m.HasInq {
		var b [4]byte
		sock.PutInt(b[:], m.Inq)
		return w.put(linux.IPPROTO_TCP, linux.TCP_CM_INQ, b[:])
	}
	if m.HasOrigDst {
		level, typ := int32(linux.IPPROTO_IP), int32(linux.IP_ORIGDSTADDR)
		if m.OrigDst.Family() == linux.AF_INET6 {
			level, typ = linux.IPPROTO_IPV6, linux.IPV6_ORIGDSTADDR
		}
		if e := w.put(level, typ, m.OrigDst.Bytes()); e != 0 {
			return e
		}
	}
	if m.HasAux {
		return w.put(linux.SOL_PACKET, linux.PACKET_AUXDATA, m.Aux[:])
	}
	if !m.HasError {
		return 0
	}
	x := &m.Error
	var b [16 + linux.SizeofSockaddrIn6]byte
	sock.PutInt(b[:], int32(x.Errno))
	b[4], b[5], b[6] = x.Origin, x.Type, x.Code
	sock.PutInt(b[8:], int32(x.Info))
	sock.PutInt(b[12:], int32(x.Data))
	copy(b[16:], x.Offender.Bytes())
	if x.V6 {
		return w.put(linux.IPPROTO_IPV6, linux.IPV6_RECVERR, b[:])
	}
	return w.put(linux.IPPROTO_IP, linux.IP_RECVERR, b[:16+linux.SizeofSockaddrIn])
}

// putRights makes descriptors of as many files as there is room for.
func (w *controlWriter) putRights(m *sock.Msg) linux.Errno {
	t := w.t
	n := min(len(m.Rights), max(w.room-w.used-linux.SizeofCmsghdr, 0)/4)
	if n < len(m.Rights) {
		w.cut = true
	}
	size := linux.SizeofCmsghdr
	for _, f := range m.Rights[:n] {
		fd, e := t.FDs.Reserve(0, t.NoFile())
		if e == 0 {
			// The number first: a program that cannot be told of a descriptor gets none.
			if e = writeU32(t, w.addr+uio.Addr(w.used+size), uint32(fd)); e != 0 {
				t.FDs.Unreserve(fd)
			}
		}
		if e != 0 {
			w.cut = true
			break
		}
		size += 4
		f.Get()
		t.FDs.Install(fd, f, m.Flags&linux.MSG_CMSG_CLOEXEC != 0)
	}
	if size > linux.SizeofCmsghdr {
		w.head(linux.SOL_SOCKET, linux.SCM_RIGHTS, size)
	}
	return 0
}
