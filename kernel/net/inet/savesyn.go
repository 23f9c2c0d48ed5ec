package inet

import (
	"bytes"
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/abi/linux"
	"hardtack/kernel/net/sock"
)

// setSaveSyn is TCP_SAVE_SYN: the connections of a listener keep the headers of their SYN,
// with 2 from the link header on.
func (s *TCP) setSaveSyn(v int32) linux.Errno {
	s.opt.saveSyn = uint8(v)
	s.regate()
	return 0
}

// savedSyn is TCP_SAVED_SYN: it tells the headers once. With EINVAL it returns how long they are.
func (s *TCP) savedSyn(val []byte) (int, linux.Errno) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.ep.Load()
	if p == nil {
		return 0, 0
	}
	x, ok := p.Endpoint.(gated)
	if !ok {
		return 0, 0
	}
	b, link := x.First(true)
	switch {
	case s.opt.saveSyn != 2:
		b = b[link:]
	case link == 0 && len(b) > 0: // lo's is all zeros
		lo := make([]byte, LinkHeaderLen, LinkHeaderLen+len(b))
		proto := uint16(linux.ETH_P_IP)
		if header.IPVersion(b) == header.IPv6Version {
			proto = linux.ETH_P_IPV6
		}
		binary.BigEndian.PutUint16(lo[12:], proto)
		b = append(lo, b...)
	}
	if len(val) < len(b) {
		return len(b), linux.EINVAL
	}
	_, _ = x.First(false)
	return copy(val, b), 0
}

// refused is the answer to options that only a connection in TCP_REPAIR has.
func refused(e linux.Errno) func(*TCP, int32) linux.Errno {
	return func(*TCP, int32) linux.Errno { return e }
}

// fastopenKeyLen is the length of a key of TCP_FASTOPEN_KEY.
const fastopenKeyLen = 16

// setFastopenKey keeps one key or two: no cookie is ever made of them, since clients get
// the ordinary handshake. Called with mu held.
func (s *TCP) setFastopenKey(val []byte) linux.Errno {
	if len(val) != fastopenKeyLen && len(val) != 2*fastopenKeyLen {
		return linux.EINVAL
	}
	key := bytes.Clone(val)
	s.opt.fastopenKey = &key
	return 0
}

// getRareTCP is getTCP of options that few programs know.
func (s *TCP) getRareTCP(name int32, val []byte) (int, linux.Errno) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch name {
	case linux.TCP_SAVE_SYN:
		return sock.PutInt(val, int32(s.opt.saveSyn)), 0
	case linux.TCP_TX_DELAY:
		return sock.PutInt(val, s.opt.txDelay), 0
	case linux.TCP_FASTOPEN_KEY:
		if s.opt.fastopenKey == nil {
			return 0, 0
		}
		return copy(val, *s.opt.fastopenKey), 0
	}
	return 0, linux.EINVAL // TCP_REPAIR_WINDOW
}
