package inet

import (
	"encoding/binary"
	"io"
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/abi/linux"
	"hardtack/kernel/base/random"
	"hardtack/kernel/net/bpf"
)

// sieve applies SO_ATTACH_FILTER and ICMP_FILTER to a datagram socket's queue.
// netstack knows no such filters, so a message is judged when it has come to
// the front: whoever asks whether there is something to read, or reads, first
// drops what the filter refuses. The lock order is sieve.mu, then netstack's.
type sieve struct {
	mu   sync.Mutex
	data []byte // the message in front; guarded by mu
	view bpf.Packet
}

// filtered reports whether messages must be judged.
func (s *Datagram) filtered() bool {
	return s.Opt.Filter() != nil || s.icmpFilter.Load() != 0
}

// sift drops messages from the front of the queue up to the first that is
// wanted, and returns how many of its bytes are, or -1 without one; called with sieve.mu held.
func (s *Datagram) sift() int {
	p, deny := s.Opt.Filter(), s.icmpFilter.Load()
	for {
		w := &sieveWriter{s.sieve.data[:0]}
		r, err := s.ep.Load().Read(w, tcpip.ReadOptions{Peek: true, NeedRemoteAddr: true})
		s.sieve.data = w.b
		if err != nil {
			return -1
		}
		keep := s.judge(p, deny, w.b, r.RemoteAddr)
		if keep >= 0 {
			return keep
		}
		s.ep.Load().Read(io.Discard, tcpip.ReadOptions{})
		s.took(len(w.b))
	}
}

// ready drops what is not wanted, before poll or FIONREAD look, and returns how
// much of the first message there is to read.
func (s *Datagram) ready() int {
	if !s.filtered() {
		return maxUDP
	}
	s.sieve.mu.Lock()
	defer s.sieve.mu.Unlock()
	return max(s.sift(), 0)
}

type sieveWriter struct{ b []byte }

func (w *sieveWriter) Write(p []byte) (int, error) {
	w.b = append(w.b, p...)
	return len(p), nil
}

// judge returns how many bytes of a message to keep; -1 to drop it.
func (s *Datagram) judge(p *bpf.Program, deny uint32, data []byte, from tcpip.FullAddress) int {
	if deny != 0 && len(data) >= header.IPv4MinimumSize {
		if h := int(data[0]&0xf) * 4; len(data) > h && data[h] < 32 && deny>>data[h]&1 != 0 {
			return -1
		}
	}
	if p == nil {
		return len(data)
	}
	k := &s.sieve.view
	*k = bpf.Packet{Data: data, Network: data, Protocol: linux.ETH_P_IP, HaType: linux.ARPHRD_LOOPBACK, IfIndex: LoopbackNIC, Random: uint32(random.Uint64())}
	if s.v6 {
		k.Protocol = linux.ETH_P_IPV6
	}
	if !s.isUDP() {
		n := int(p.Run(k))
		if n == 0 {
			return -1
		}
		return min(n, len(data))
	}
	local, _ := s.ep.Load().GetLocalAddress()
	udp := make([]byte, header.UDPMinimumSize, header.UDPMinimumSize+len(data))
	binary.BigEndian.PutUint16(udp, from.Port)
	binary.BigEndian.PutUint16(udp[2:], local.Port)
	binary.BigEndian.PutUint16(udp[4:], uint16(len(data)+header.UDPMinimumSize))
	k.Data = append(udp, data...)
	k.Network = s.networkHeader(from, local, k.Data)
	n := int(p.Run(k))
	if n == 0 {
		return -1
	}
	return min(max(n-header.UDPMinimumSize, 0), len(data))
}

// networkHeader makes the IP header that a datagram came with, as far as it is known.
func (s *Datagram) networkHeader(from, to tcpip.FullAddress, payload []byte) []byte {
	src, dst := unmap(from.Addr), unmap(to.Addr)
	if src.Len() == 16 {
		h := make([]byte, header.IPv6MinimumSize, header.IPv6MinimumSize+len(payload))
		if dst.Len() != 16 {
			dst = src
		}
		header.IPv6(h).Encode(&header.IPv6Fields{PayloadLength: uint16(len(payload)), TransportProtocol: header.UDPProtocolNumber, HopLimit: linux.DefaultTTL, SrcAddr: src, DstAddr: dst})
		return append(h, payload...)
	}
	if src.Len() != 4 {
		return payload
	}
	if dst.Len() != 4 {
		dst = src
	}
	h := make([]byte, header.IPv4MinimumSize, header.IPv4MinimumSize+len(payload))
	header.IPv4(h).Encode(&header.IPv4Fields{TotalLength: uint16(len(h) + len(payload)), TTL: linux.DefaultTTL, Protocol: uint8(header.UDPProtocolNumber), SrcAddr: src, DstAddr: dst})
	return append(h, payload...)
}
