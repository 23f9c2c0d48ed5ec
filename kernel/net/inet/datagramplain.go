package inet

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/net/sock"
)

// plainTaker is an endpoint of netstack as the overlay has it (udp_receive.go): its queue
// has datagrams as their bytes.
type plainTaker interface {
	TakePlain() (data []byte, from [4]byte, port uint16, token any)
	FreePlain(token any)
}

// recvPlain is Recv where nothing special is asked for and a plain datagram is there. done is
// false otherwise.
func (s *Datagram) recvPlain(p *netPoint, m *sock.Msg) (n int, e linux.Errno, done bool) {
	if p.plain == nil || m.Flags&^linux.MSG_DONTWAIT != 0 || s.v6 || s.peekOff.Load() >= 0 ||
		s.Opt.Has(sock.Timestamp) || s.Opt.Timestamping() != 0 {
		return 0, 0, false
	}
	data, from, port, token := p.plain.TakePlain()
	if token == nil {
		return 0, 0, false
	}
	s.took(len(data))
	s.stamp.Store(clocks.Realtime())
	if room := m.V.Len(); room < len(data) {
		m.OutFlags |= linux.MSG_TRUNC
		data = data[:room]
	}
	if len(data) > 0 {
		n, e = m.V.CopyOut(data)
	}
	p.plain.FreePlain(token)
	if e != 0 && n == 0 {
		return 0, e, true
	}
	m.TTL, m.TOS, m.Segment = -1, -1, 0
	if m.WantFrom {
		b := [linux.SizeofSockaddrIn]byte{0: linux.AF_INET, 2: byte(port >> 8), 3: byte(port), 4: from[0], 5: from[1], 6: from[2], 7: from[3]}
		m.From.Set(b[:])
	}
	return n, 0, true
}
