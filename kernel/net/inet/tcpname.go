package inet

import (
	"gvisor.dev/gvisor/pkg/tcpip"

	"hardtack/abi/linux"
	"hardtack/kernel/net/sock"
)

// LocalAddr is getsockname(2).
func (s *TCP) LocalAddr(a *sock.Addr) linux.Errno {
	if s.far.Load() != nil {
		putAddr(a, s.here(), s.v6)
		return 0
	}
	var fa tcpip.FullAddress
	if p := s.ep.Load(); p != nil {
		fa, _ = p.GetLocalAddress()
	}
	putAddr(a, fa, s.v6)
	return 0
}

// PeerAddr is getpeername(2).
func (s *TCP) PeerAddr(a *sock.Addr) linux.Errno {
	if x := s.far.Load(); x != nil {
		if s.over() {
			return linux.ENOTCONN
		}
		putAddr(a, x.here(), s.v6)
		return 0
	}
	p := s.ep.Load()
	if p == nil {
		return linux.ENOTCONN
	}
	fa, err := p.GetRemoteAddress()
	if err != nil {
		return errno(err)
	}
	putAddr(a, fa, s.v6)
	return 0
}
