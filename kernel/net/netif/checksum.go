package netif

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// checksumsValid verifies a packet that a checksumming device passed on
// unverified: netstack trusts everything from such a device. Fragments and
// unknown protocols are let through; their reader checks what it can.
func checksumsValid(p *stack.PacketBuffer, proto tcpip.NetworkProtocolNumber) bool {
	if p.Data().Size() == 0 {
		return false // there would be no view of it
	}
	v := p.Data().AsRange().ToView()
	defer v.Release()
	b := v.AsSlice()
	var src, dst tcpip.Address
	var next tcpip.TransportProtocolNumber
	switch proto {
	case header.IPv4ProtocolNumber:
		ip := header.IPv4(b)
		if !ip.IsValid(len(b)) || !ip.IsChecksumValid() {
			return false
		}
		if ip.More() || ip.FragmentOffset() != 0 {
			return true
		}
		src, dst, next = ip.SourceAddress(), ip.DestinationAddress(), ip.TransportProtocol()
		b = b[ip.HeaderLength():ip.TotalLength()]
	case header.IPv6ProtocolNumber:
		ip := header.IPv6(b)
		if !ip.IsValid(len(b)) {
			return false
		}
		// With extension headers the next header is none of those below.
		src, dst, next = ip.SourceAddress(), ip.DestinationAddress(), tcpip.TransportProtocolNumber(ip.NextHeader())
		b = b[header.IPv6MinimumSize : header.IPv6MinimumSize+int(ip.PayloadLength())]
	default:
		return true
	}
	switch {
	case next == header.TCPProtocolNumber:
	case next == header.UDPProtocolNumber && len(b) >= header.UDPMinimumSize:
		if header.UDP(b).Checksum() == 0 {
			return proto == header.IPv4ProtocolNumber
		}
	default:
		return true
	}
	return checksum.Checksum(b, header.PseudoHeaderChecksum(next, src, dst, uint16(len(b)))) == 0xffff
}
