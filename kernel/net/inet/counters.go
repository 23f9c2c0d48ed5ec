package inet

import (
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"hardtack/abi/linux"
)

// counters are what netstack does not count: connections within the machine, which it
// does not see, and datagrams of UDP over IPv6, which it counts together with those of IPv4.
type counters struct {
	opens  atomic.Uint64 // connections
	resets atomic.Uint64 // resets sent
	lost   atomic.Uint64 // ends of connections that a reset ended
	udp6   [2]atomic.Uint64
}

// Indexes of counters.udp6.
const (
	countIn = iota
	countOut
)

// UDPCounts are the counters of UDP over one network protocol.
type UDPCounts struct{ In, NoPorts, InErrors, Out, RcvbufErrors, SndbufErrors, ChecksumErrors uint64 }

// UDPCounts returns what was counted of UDP. What is not told apart is with IPv4.
func (n *Net) UDPCounts(v6 bool) (u UDPCounts) {
	in6, out6 := n.counts.udp6[countIn].Load(), n.counts.udp6[countOut].Load()
	if v6 {
		return UDPCounts{In: in6, Out: out6}
	}
	s := n.Stack.Stats().UDP
	full := s.ReceiveBufferErrors.Value()
	bad := s.ChecksumErrors.Value()
	return UDPCounts{
		In: s.PacketsReceived.Value() - min(in6+full, s.PacketsReceived.Value()), NoPorts: s.UnknownPortErrors.Value(),
		InErrors: s.MalformedPacketsReceived.Value() + bad + full, Out: s.PacketsSent.Value() - min(out6, s.PacketsSent.Value()),
		RcvbufErrors: full, SndbufErrors: s.PacketSendErrors.Value(), ChecksumErrors: bad,
	}
}

// countUDP6 counts a datagram of a socket of IPv6 to or from an address.
func (s *Datagram) countUDP6(way int, a tcpip.Address) {
	if s.isUDP() && a.Len() == 16 && !mapped(a) {
		s.net.counts.udp6[way].Add(1)
	}
}

// countSent6 is countUDP6 of a datagram that was sent, to the peer if to is nil.
func (s *Datagram) countSent6(to *tcpip.FullAddress) {
	if to == nil {
		fa, _ := s.ep.Load().GetRemoteAddress()
		to = &fa
	}
	s.countUDP6(countOut, to.Addr)
}

// TCPCounts are the counters of TCP.
type TCPCounts struct {
	ActiveOpens, PassiveOpens, AttemptFails, EstabResets, CurrEstab uint64
	InSegs, OutSegs, RetransSegs, InErrs, OutRsts, InCsumErrors     uint64
	ListenOverflows                                                 uint64
}

// TCPCounts returns what was counted of TCP. Connections within the machine send no
// segments.
func (n *Net) TCPCounts() TCPCounts {
	stats := n.Stack.Stats()
	s, c := &stats.TCP, &n.counts
	t := TCPCounts{
		ActiveOpens:     s.ActiveConnectionOpenings.Value() + c.opens.Load(),
		PassiveOpens:    s.PassiveConnectionOpenings.Value() + c.opens.Load(),
		AttemptFails:    s.FailedConnectionAttempts.Value(),
		EstabResets:     s.EstablishedResets.Value() + c.lost.Load(),
		InSegs:          s.ValidSegmentsReceived.Value() + s.InvalidSegmentsReceived.Value(),
		OutSegs:         s.SegmentsSent.Value(),
		RetransSegs:     s.Retransmits.Value(),
		InErrs:          s.InvalidSegmentsReceived.Value(),
		OutRsts:         s.ResetsSent.Value() + c.resets.Load(),
		InCsumErrors:    s.ChecksumErrors.Value(),
		ListenOverflows: s.ListenOverflowSynDrop.Value() + s.ListenOverflowAckDrop.Value(),
	}
	for _, x := range n.all.list() {
		if x.Type == linux.SOCK_STREAM {
			if st := x.self.linuxState(); st == linux.TCP_ESTABLISHED || st == linux.TCP_CLOSE_WAIT {
				t.CurrEstab++
			}
		}
	}
	return t
}

// countReset counts a reset that s sends to x, and the ends whose connection it ends.
func (n *Net) countReset(s, x *TCP) {
	n.counts.resets.Add(1)
	for _, end := range [...]*TCP{s, x} {
		if end.shut.Load()&shutWr == 0 {
			n.counts.lost.Add(1)
		}
	}
}

// IPCounts are the counters of IPv4 or IPv6 over all interfaces.
type IPCounts struct {
	InReceives, InHdrErrors, InAddrErrors, ForwDatagrams, InDiscards, InDelivers uint64
	OutRequests, OutDiscards, OutNoRoutes                                        uint64
	InOctets, OutOctets                                                          uint64
}

func (c *IPCounts) add(s *tcpip.IPStats) {
	c.InReceives += s.PacketsReceived.Value()
	c.InHdrErrors += s.MalformedPacketsReceived.Value() + s.MalformedFragmentsReceived.Value()
	c.InAddrErrors += s.InvalidDestinationAddressesReceived.Value() + s.InvalidSourceAddressesReceived.Value()
	c.InDiscards += s.DisabledPacketsReceived.Value() + s.IPTablesInputDropped.Value()
	c.InDelivers += s.PacketsDelivered.Value()
	c.OutRequests += s.PacketsSent.Value()
	c.OutDiscards += s.OutgoingPacketErrors.Value()
	c.OutNoRoutes += s.Forwarding.Unrouteable.Value()
}

// IPCounts returns what was counted of IPv4, or of IPv6.
func (n *Net) IPCounts(v6 bool) (c IPCounts) { return n.IPCountsOf(0, v6) }

// IPCountsOf is IPCounts of an interface, of all with 0.
func (n *Net) IPCountsOf(index int32, v6 bool) (c IPCounts) {
	for nic, info := range n.Stack.NICInfo() {
		if index != 0 && nic != tcpip.NICID(index) {
			continue
		}
		if s, ok := networkStats(&info, v6).(interface{ IPStats() *tcpip.IPStats }); ok {
			c.add(s.IPStats())
		}
		if !v6 { // the link's bytes are counted together
			c.InOctets += info.Stats.Rx.Bytes.Value()
			c.OutOctets += info.Stats.Tx.Bytes.Value()
		}
	}
	return c
}

func networkStats(info *stack.NICInfo, v6 bool) stack.NetworkEndpointStats {
	if v6 {
		return info.NetworkStats[ipv6.ProtocolNumber]
	}
	return info.NetworkStats[ipv4.ProtocolNumber]
}

// ICMPCounts are counters of ICMP: of all messages, those that were wrong, those held back
// by rate, and those of each type by name.
type ICMPCounts struct {
	In, InErrors, Out, OutErrors, RateLimited uint64
	InType, OutType                           map[string]uint64
}

// ICMPCounts returns what was counted of ICMP for IPv4 or IPv6.
func (n *Net) ICMPCounts(v6 bool) ICMPCounts { return n.ICMPCountsOf(0, v6) }

// ICMPCountsOf is ICMPCounts of an interface, of all with 0.
func (n *Net) ICMPCountsOf(index int32, v6 bool) ICMPCounts {
	c := ICMPCounts{InType: map[string]uint64{}, OutType: map[string]uint64{}}
	for nic, info := range n.Stack.NICInfo() {
		if index != 0 && nic != tcpip.NICID(index) {
			continue
		}
		switch s := networkStats(&info, v6).(type) {
		case *ipv4.Stats:
			r, t := &s.ICMP.PacketsReceived, &s.ICMP.PacketsSent
			c.In += addTypes(c.InType, types4(&r.ICMPv4PacketStats)) + r.Invalid.Value()
			c.Out += addTypes(c.OutType, types4(&t.ICMPv4PacketStats))
			c.InErrors += r.Invalid.Value()
			c.OutErrors += t.Dropped.Value()
			c.RateLimited += t.RateLimited.Value()
		case *ipv6.Stats:
			r, t := &s.ICMP.PacketsReceived, &s.ICMP.PacketsSent
			c.In += addTypes(c.InType, types6(&r.ICMPv6PacketStats)) + r.Invalid.Value()
			c.Out += addTypes(c.OutType, types6(&t.ICMPv6PacketStats))
			c.InErrors += r.Invalid.Value()
			c.OutErrors += t.Dropped.Value()
			c.RateLimited += t.RateLimited.Value()
		}
	}
	return c
}

func addTypes(to map[string]uint64, from map[string]*tcpip.StatCounter) (sum uint64) {
	for name, v := range from {
		to[name] += v.Value()
		sum += v.Value()
	}
	return sum
}

func types4(s *tcpip.ICMPv4PacketStats) map[string]*tcpip.StatCounter {
	return map[string]*tcpip.StatCounter{
		"DestUnreachs": s.DstUnreachable, "TimeExcds": s.TimeExceeded, "ParmProbs": s.ParamProblem, "SrcQuenchs": s.SrcQuench,
		"Redirects": s.Redirect, "Echos": s.EchoRequest, "EchoReps": s.EchoReply, "Timestamps": s.Timestamp,
		"TimestampReps": s.TimestampReply,
	}
}

func types6(s *tcpip.ICMPv6PacketStats) map[string]*tcpip.StatCounter {
	return map[string]*tcpip.StatCounter{
		"DestUnreachs": s.DstUnreachable, "PktTooBigs": s.PacketTooBig, "TimeExcds": s.TimeExceeded, "ParmProblems": s.ParamProblem,
		"Echos": s.EchoRequest, "EchoReplies": s.EchoReply, "GroupMembQueries": s.MulticastListenerQuery,
		"GroupMembResponses": s.MulticastListenerReport, "GroupMembReductions": s.MulticastListenerDone,
		"RouterSolicits": s.RouterSolicit, "RouterAdvertisements": s.RouterAdvert, "NeighborSolicits": s.NeighborSolicit,
		"NeighborAdvertisements": s.NeighborAdvert, "Redirects": s.RedirectMsg, "MLDv2Reports": s.MulticastListenerReportV2,
	}
}
