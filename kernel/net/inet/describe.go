package inet

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/wait"
)

// What NETLINK_SOCK_DIAG tells of a socket if it is asked.

// TCPInfo is struct tcp_info; nil for sockets that are not TCP's.
func (i *Info) TCPInfo() []byte {
	t, ok := i.s.self.(*TCP)
	if !ok {
		return nil
	}
	var b [linux.SizeofTCPInfo]byte
	return b[:t.info(b[:])]
}

// Congestion is the name of the congestion control; "" for sockets that are not TCP's.
func (i *Info) Congestion() string {
	t, ok := i.s.self.(*TCP)
	if !ok {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.opt.congestion
}

// Class returns IP_TOS and IPV6_TCLASS.
func (i *Info) Class() (tos, tclass byte) {
	i.s.mu.Lock()
	defer i.s.mu.Unlock()
	return byte(i.s.ip.tos), byte(i.s.ip.tclass)
}

// Marks returns SO_MARK and SO_PRIORITY.
func (i *Info) Marks() (mark, priority uint32) {
	return uint32(i.s.Opt.Mark.Load()), uint32(i.s.Opt.Priority.Load())
}

// Buffers returns SO_RCVBUF and SO_SNDBUF.
func (i *Info) Buffers() (receive, send uint32) {
	if i.Type == linux.SOCK_STREAM {
		return uint32(i.s.streamBuffer(linux.SO_RCVBUF)), uint32(i.s.streamBuffer(linux.SO_SNDBUF))
	}
	return uint32(i.s.Opt.RcvBuf.Load()), uint32(i.s.Opt.SndBuf.Load())
}

// Flags are the options in struct inet_diag_sockopt.
func (i *Info) Flags() (b [2]byte) {
	s := i.s
	s.mu.Lock()
	defer s.mu.Unlock()
	_, tcp := s.self.(*TCP)
	all := int32(1)
	if k := keptIndex(linux.IPPROTO_IP, linux.IP_MULTICAST_ALL); k >= 0 {
		all = s.getKept(k)
	}
	for bit, on := range []bool{s.ip.recvErr, tcp, s.ip.freebind, s.ip.hdrIncl, s.ip.mcastLoop, s.ip.transparent, all != 0} {
		if on {
			b[0] |= 1 << bit
		}
	}
	if s.ip.bindNoPort {
		b[1] = 1
	}
	return b
}

// Destroy ends the connection or the listening of a socket (SOCK_DESTROY): whoever uses
// it is told ECONNABORTED.
func (i *Info) Destroy() linux.Errno {
	switch s := i.s.self.(type) {
	case *TCP:
		if s.linuxState() == linux.TCP_CLOSE {
			return linux.ENOENT
		}
		if e := s.disconnect(); e != 0 {
			return e
		}
		s.shut.Or(idleRd | idleWr)
	case *Datagram:
		if s.Type == linux.SOCK_RAW {
			return linux.EOPNOTSUPP
		}
		if err := s.ep.Load().Disconnect(); err != nil {
			return errno(err)
		}
	}
	i.s.NoteError(linux.ECONNABORTED)
	i.s.Q.Notify(evIn | evOut | wait.Err)
	return 0
}
