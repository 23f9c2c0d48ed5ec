package netif

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"hardtack/kernel/base/random"
	"hardtack/kernel/net/netdev"
)

// A client of RFC 2131. Its messages are whole frames, built here and taken out
// of the received ones before netstack sees them, since an interface without an
// address has no sockets.

// Message types (option 53) and other options that the client uses.
const (
	dhcpDiscover = 1
	dhcpOffer    = 2
	dhcpRequest  = 3
	dhcpAck      = 5
	dhcpNak      = 6

	optMask        = 1
	optRouter      = 3
	optDNS         = 6
	optHostname    = 12
	optDomain      = 15
	optRequestedIP = 50
	optLeaseTime   = 51
	optType        = 53
	optServer      = 54
	optParameters  = 55
	optRenewal     = 58
	optEnd         = 255

	bootpSize  = 236 // before the cookie
	dhcpCookie = 0x63825363
	dhcpClient = 68
	dhcpServer = 67
)

// Lease is what a server granted.
type Lease struct {
	Settings
	server netip.Addr
	// Renew is how long until the client asks again, and Valid how long the
	// address may be used.
	Renew, Valid time.Duration
}

// ErrNoServer says that nobody answered in time.
var ErrNoServer = errors.New("no DHCP server answers")

// DHCP asks for an address, applies it, and keeps it renewed. It tries for at
// most the given time.
func (l *Link) DHCP(timeout time.Duration) (Lease, error) {
	lease, err := l.acquire(netip.Addr{}, timeout)
	if err != nil {
		return lease, err
	}
	if err := l.Apply(lease.Settings); err != nil {
		return lease, err
	}
	go l.keep(lease)
	return lease, nil
}

// keep renews a lease for ever. A server that forgets the address loses the
// machine its address.
func (l *Link) keep(lease Lease) {
	expires := time.Now().Add(lease.Valid)
	wait := lease.Renew
	for {
		time.Sleep(wait)
		next, err := l.acquire(lease.Address.Addr(), 10*time.Second)
		switch {
		case err == nil:
			if next.Address != lease.Address || next.Router != lease.Router {
				l.Apply(next.Settings)
			}
			lease, wait, expires = next, next.Renew, time.Now().Add(next.Valid)
		case time.Now().After(expires):
			l.own4.Store(0)
			l.net.Stack.RemoveAddress(tcpip.NICID(l.index), address(lease.Address.Addr()))
			wait = 10 * time.Second
		default:
			wait = max(time.Until(expires)/2, time.Second)
		}
	}
}

// acquire goes from DISCOVER (or, with an address to keep, REQUEST) to ACK.
func (l *Link) acquire(keep netip.Addr, timeout time.Duration) (Lease, error) {
	replies := make(chan []byte, 8)
	fn := func(m []byte) {
		select {
		case replies <- m:
		default:
		}
	}
	l.dhcp.Store(&fn)
	defer l.dhcp.Store(nil)
	var id [4]byte
	random.Read(id[:])
	xid := binary.BigEndian.Uint32(id[:])
	deadline := time.Now().Add(timeout)
	message, want := byte(dhcpDiscover), byte(dhcpOffer)
	asked, server := keep, netip.Addr{}
	if keep.IsValid() {
		message, want = dhcpRequest, dhcpAck
	}
	patience := 250 * time.Millisecond
	for time.Now().Before(deadline) {
		l.sendDHCP(xid, message, asked, server)
		resend := time.NewTimer(min(patience, time.Until(deadline)))
		patience *= 2
	listen:
		for {
			select {
			case <-resend.C:
				break listen
			case b := <-replies:
				typ, lease, ok := parseDHCP(b, xid)
				switch {
				case !ok:
				case typ == want && typ == dhcpOffer:
					message, want = dhcpRequest, dhcpAck
					asked, server = lease.Address.Addr(), lease.server
					patience = 250 * time.Millisecond
					resend.Stop()
					break listen
				case typ == want:
					resend.Stop()
					return lease, nil
				case typ == dhcpNak && want == dhcpAck:
					message, want = dhcpDiscover, dhcpOffer
					asked, server = netip.Addr{}, netip.Addr{}
					resend.Stop()
					break listen
				}
			}
		}
	}
	return Lease{}, ErrNoServer
}

// sendDHCP broadcasts a message.
func (l *Link) sendDHCP(xid uint32, typ byte, asked, server netip.Addr) {
	opts := []byte{optType, 1, typ, optParameters, 6, optMask, optRouter, optDNS, optDomain, optLeaseTime, optRenewal}
	if asked.IsValid() {
		a := asked.As4()
		opts = append(append(opts, optRequestedIP, 4), a[:]...)
	}
	if server.IsValid() {
		a := server.As4()
		opts = append(append(opts, optServer, 4), a[:]...)
	}
	opts = append(opts, optEnd)
	const headers = header.EthernetMinimumSize + header.IPv4MinimumSize + header.UDPMinimumSize
	b := make([]byte, headers+bootpSize+4+max(len(opts), 64))
	for i := range 6 {
		b[i] = 0xff
	}
	copy(b[6:], l.host[:])
	b[12] = 0x08
	ip := header.IPv4(b[header.EthernetMinimumSize:])
	ip.Encode(&header.IPv4Fields{
		TotalLength: uint16(len(ip)), TTL: 64, Protocol: uint8(header.UDPProtocolNumber),
		SrcAddr: header.IPv4Any, DstAddr: header.IPv4Broadcast,
	})
	ip.SetChecksum(^ip.CalculateChecksum())
	udp := header.UDP(ip[header.IPv4MinimumSize:])
	udp.Encode(&header.UDPFields{SrcPort: dhcpClient, DstPort: dhcpServer, Length: uint16(len(udp))})
	m := udp[header.UDPMinimumSize:]
	m[0], m[1], m[2] = 1, 1, 6 // request, Ethernet
	binary.BigEndian.PutUint32(m[4:], xid)
	m[10] = 0x80 // please broadcast the answer
	copy(m[28:], l.host[:])
	binary.BigEndian.PutUint32(m[bootpSize:], dhcpCookie)
	copy(m[bootpSize+4:], opts)
	x := header.PseudoHeaderChecksum(header.UDPProtocolNumber, header.IPv4Any, header.IPv4Broadcast, uint16(len(udp)))
	udp.SetChecksum(^udp.CalculateChecksum(checksum.Checksum(m, x)))
	l.transmit([]netdev.Frame{{Parts: [][]byte{b}}})
}

// dhcpReply returns the DHCP message in a received packet, or nil.
func dhcpReply(p *stack.PacketBuffer) []byte {
	const least = header.IPv4MinimumSize + header.UDPMinimumSize + bootpSize + 4
	if p.Data().Size() < least {
		return nil
	}
	v := p.Data().AsRange().ToView()
	defer v.Release()
	b := v.AsSlice()
	ip := header.IPv4(b)
	if !ip.IsValid(len(b)) || ip.TransportProtocol() != header.UDPProtocolNumber || ip.FragmentOffset() != 0 {
		return nil
	}
	udp := header.UDP(b[ip.HeaderLength():])
	if len(udp) < header.UDPMinimumSize+bootpSize+4 || udp.DestinationPort() != dhcpClient || udp.SourcePort() != dhcpServer {
		return nil
	}
	return append([]byte(nil), udp[header.UDPMinimumSize:]...)
}

// parseDHCP decodes an answer to the request xid.
func parseDHCP(m []byte, xid uint32) (typ byte, lease Lease, ok bool) {
	if len(m) < bootpSize+4 || m[0] != 2 || binary.BigEndian.Uint32(m[4:]) != xid ||
		binary.BigEndian.Uint32(m[bootpSize:]) != dhcpCookie {
		return 0, lease, false
	}
	ip := netip.AddrFrom4([4]byte(m[16:20]))
	bits := 24
	lease.Valid = time.Hour
	for o := m[bootpSize+4:]; len(o) > 1 && o[0] != optEnd; {
		if o[0] == 0 {
			o = o[1:]
			continue
		}
		n := int(o[1])
		if len(o) < 2+n {
			return 0, lease, false
		}
		v := o[2 : 2+n]
		switch {
		case o[0] == optType && n == 1:
			typ = v[0]
		case o[0] == optMask && n == 4:
			bits = 0
			for m := binary.BigEndian.Uint32(v); m&(1<<31) != 0; m <<= 1 {
				bits++
			}
		case o[0] == optRouter && n >= 4:
			lease.Router = netip.AddrFrom4([4]byte(v))
		case o[0] == optServer && n == 4:
			lease.server = netip.AddrFrom4([4]byte(v))
		case o[0] == optDNS:
			for ; len(v) >= 4; v = v[4:] {
				lease.DNS = append(lease.DNS, netip.AddrFrom4([4]byte(v)))
			}
		case o[0] == optDomain:
			lease.Domain = string(v)
		case o[0] == optHostname:
			lease.Hostname = string(v)
		case o[0] == optLeaseTime && n == 4:
			lease.Valid = time.Duration(binary.BigEndian.Uint32(v)) * time.Second
		case o[0] == optRenewal && n == 4:
			lease.Renew = time.Duration(binary.BigEndian.Uint32(v)) * time.Second
		}
		o = o[2+n:]
	}
	if lease.Renew <= 0 || lease.Renew > lease.Valid {
		lease.Renew = lease.Valid / 2
	}
	lease.Renew = max(lease.Renew, time.Second)
	lease.Address = netip.PrefixFrom(ip, bits)
	return typ, lease, typ == dhcpNak || ip.Is4() && ip != netip.IPv4Unspecified()
}
