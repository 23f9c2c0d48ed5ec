package procnet

import (
	"bytes"
	"fmt"
	"strings"

	"hardtack/kernel/base/settings"
	"hardtack/kernel/net/inet"
)

// The counters of the network protocols, in Linux's order. Those that nothing here counts
// are zero.
const (
	ipNames = "InReceives InHdrErrors InAddrErrors ForwDatagrams InUnknownProtos InDiscards InDelivers OutRequests " +
		"OutDiscards OutNoRoutes ReasmTimeout ReasmReqds ReasmOKs ReasmFails FragOKs FragFails FragCreates"
	icmpNames = "DestUnreachs TimeExcds ParmProbs SrcQuenchs Redirects Echos EchoReps Timestamps TimestampReps " +
		"AddrMasks AddrMaskReps"
	tcpNames = "ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs RetransSegs InErrs OutRsts InCsumErrors"
	udpNames = "InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors"
	ip6Names = "InReceives InHdrErrors InTooBigErrors InNoRoutes InAddrErrors InUnknownProtos InTruncatedPkts InDiscards InDelivers " +
		"OutForwDatagrams OutRequests OutDiscards OutNoRoutes ReasmTimeout ReasmReqds ReasmOKs ReasmFails FragOKs FragFails " +
		"FragCreates InMcastPkts OutMcastPkts InOctets OutOctets InMcastOctets OutMcastOctets InBcastOctets OutBcastOctets " +
		"InNoECTPkts InECT1Pkts InECT0Pkts InCEPkts"
	icmp6In = "DestUnreachs PktTooBigs TimeExcds ParmProblems Echos EchoReplies GroupMembQueries GroupMembResponses " +
		"GroupMembReductions RouterSolicits RouterAdvertisements NeighborSolicits NeighborAdvertisements Redirects MLDv2Reports"
	ipExtNames = "InNoRoutes InTruncatedPkts InMcastPkts OutMcastPkts InBcastPkts OutBcastPkts InOctets OutOctets InMcastOctets " +
		"OutMcastOctets InBcastOctets OutBcastOctets InCsumErrors InNoECTPkts InECT1Pkts InECT0Pkts InCEPkts ReasmOverlaps"
	tcpExtNames = "SyncookiesSent SyncookiesRecv SyncookiesFailed EmbryonicRsts PruneCalled RcvPruned OfoPruned OutOfWindowIcmps " +
		"LockDroppedIcmps ArpFilter TW TWRecycled TWKilled PAWSActive PAWSEstab DelayedACKs DelayedACKLocked DelayedACKLost " +
		"ListenOverflows ListenDrops TCPHPHits TCPPureAcks TCPHPAcks TCPRenoRecovery TCPSackRecovery TCPSACKReneging TCPSACKReorder " +
		"TCPRenoReorder TCPTSReorder TCPFullUndo TCPPartialUndo TCPDSACKUndo TCPLossUndo TCPLostRetransmit TCPRenoFailures " +
		"TCPSackFailures TCPLossFailures TCPFastRetrans TCPSlowStartRetrans TCPTimeouts TCPLossProbes TCPLossProbeRecovery " +
		"TCPRenoRecoveryFail TCPSackRecoveryFail TCPRcvCollapsed TCPBacklogCoalesce TCPDSACKOldSent TCPDSACKOfoSent TCPDSACKRecv " +
		"TCPDSACKOfoRecv TCPAbortOnData TCPAbortOnClose TCPAbortOnMemory TCPAbortOnTimeout TCPAbortOnLinger TCPAbortFailed " +
		"TCPMemoryPressures TCPMemoryPressuresChrono TCPSACKDiscard TCPDSACKIgnoredOld TCPDSACKIgnoredNoUndo TCPSpuriousRTOs " +
		"TCPMD5NotFound TCPMD5Unexpected TCPMD5Failure TCPSackShifted TCPSackMerged TCPSackShiftFallback TCPBacklogDrop " +
		"PFMemallocDrop TCPMinTTLDrop TCPDeferAcceptDrop IPReversePathFilter TCPTimeWaitOverflow TCPReqQFullDoCookies " +
		"TCPReqQFullDrop TCPRetransFail TCPRcvCoalesce TCPOFOQueue TCPOFODrop TCPOFOMerge TCPChallengeACK TCPSYNChallenge " +
		"TCPFastOpenActive TCPFastOpenActiveFail TCPFastOpenPassive TCPFastOpenPassiveFail TCPFastOpenListenOverflow " +
		"TCPFastOpenCookieReqd TCPFastOpenBlackhole TCPSpuriousRtxHostQueues BusyPollRxPackets TCPAutoCorking TCPFromZeroWindowAdv " +
		"TCPToZeroWindowAdv TCPWantZeroWindowAdv TCPSynRetrans TCPOrigDataSent TCPHystartTrainDetect TCPHystartTrainCwnd " +
		"TCPHystartDelayDetect TCPHystartDelayCwnd TCPACKSkippedSynRecv TCPACKSkippedPAWS TCPACKSkippedSeq TCPACKSkippedFinWait2 " +
		"TCPACKSkippedTimeWait TCPACKSkippedChallenge TCPWinProbe TCPKeepAlive TCPMTUPFail TCPMTUPSuccess TCPDelivered " +
		"TCPDeliveredCE TCPAckCompressed TCPZeroWindowDrop TCPRcvQDrop TCPWqueueTooBig TCPFastOpenPassiveAltKey TcpTimeoutRehash " +
		"TcpDuplicateDataRehash TCPDSACKRecvSegs TCPDSACKIgnoredDubious TCPMigrateReqSuccess TCPMigrateReqFailure"
)

// values are counters by name.
type values map[string]uint64

func ipValues(c inet.IPCounts) values {
	return values{
		"InReceives": c.InReceives, "InHdrErrors": c.InHdrErrors, "InAddrErrors": c.InAddrErrors, "ForwDatagrams": c.ForwDatagrams,
		"InDiscards": c.InDiscards, "InDelivers": c.InDelivers, "OutRequests": c.OutRequests, "OutDiscards": c.OutDiscards,
		"OutNoRoutes": c.OutNoRoutes, "InOctets": c.InOctets, "OutOctets": c.OutOctets, "OutForwDatagrams": c.ForwDatagrams,
		"InNoECTPkts": c.InReceives,
	}
}

func udpValues(c inet.UDPCounts) values {
	return values{
		"InDatagrams": c.In, "NoPorts": c.NoPorts, "InErrors": c.InErrors, "OutDatagrams": c.Out,
		"RcvbufErrors": c.RcvbufErrors, "SndbufErrors": c.SndbufErrors, "InCsumErrors": c.ChecksumErrors,
	}
}

func tcpValues(c inet.TCPCounts) values {
	return values{
		"ActiveOpens": c.ActiveOpens, "PassiveOpens": c.PassiveOpens, "AttemptFails": c.AttemptFails, "EstabResets": c.EstabResets,
		"CurrEstab": c.CurrEstab, "InSegs": c.InSegs, "OutSegs": c.OutSegs, "RetransSegs": c.RetransSegs, "InErrs": c.InErrs,
		"OutRsts": c.OutRsts, "InCsumErrors": c.InCsumErrors, "ListenOverflows": c.ListenOverflows, "ListenDrops": c.ListenOverflows,
	}
}

// pair writes a line of names and one of their values, each behind a title and further
// fields that come first.
func pair(b *bytes.Buffer, title, firstNames, firstValues, names string, v values) {
	fmt.Fprintf(b, "%s:%s %s\n%s:%s", title, firstNames, names, title, firstValues)
	for name := range strings.FieldsSeq(names) {
		fmt.Fprintf(b, " %d", v[name])
	}
	b.WriteByte('\n')
}

// prefixed puts a prefix before each name.
func prefixed(prefix, names string) string {
	return prefix + strings.ReplaceAll(names, " ", " "+prefix)
}

func snmp(n *inet.Net) []byte {
	var b bytes.Buffer
	forwarding := 2
	if n.Forwarding(-1, false) {
		forwarding = 1
	}
	pair(&b, "Ip", " Forwarding DefaultTTL", fmt.Sprintf(" %d %d", forwarding, settings.DefaultTTL.Get()), ipNames, ipValues(n.IPCounts(false)))
	icmp(&b, n.ICMPCounts(false))
	// The way and limits of retransmission, in ms; no bound on connections.
	pair(&b, "Tcp", " RtoAlgorithm RtoMin RtoMax MaxConn", " 1 200 120000 -1", tcpNames, tcpValues(n.TCPCounts()))
	pair(&b, "Udp", "", "", udpNames, udpValues(n.UDPCounts(false)))
	pair(&b, "UdpLite", "", "", udpNames, values{})
	return b.Bytes()
}

// icmp writes the lines Icmp and, of the types that occurred, IcmpMsg.
func icmp(b *bytes.Buffer, c inet.ICMPCounts) {
	fmt.Fprintf(b, "Icmp: InMsgs InErrors InCsumErrors %s OutMsgs OutErrors OutRateLimitGlobal OutRateLimitHost %s\nIcmp: %d %d 0",
		prefixed("In", icmpNames), prefixed("Out", icmpNames), c.In, c.InErrors)
	for name := range strings.FieldsSeq(icmpNames) {
		fmt.Fprintf(b, " %d", c.InType[name])
	}
	fmt.Fprintf(b, " %d %d 0 %d", c.Out, c.OutErrors, c.RateLimited)
	for name := range strings.FieldsSeq(icmpNames) {
		fmt.Fprintf(b, " %d", c.OutType[name])
	}
	names, counts := "", ""
	for i, from := range []map[string]uint64{c.InType, c.OutType} {
		for _, t := range icmpTypes {
			if v := from[t.name]; v != 0 {
				names += fmt.Sprintf(" %sType%d", [...]string{"In", "Out"}[i], t.number)
				counts += fmt.Sprintf(" %d", v)
			}
		}
	}
	b.WriteByte('\n')
	if names != "" {
		fmt.Fprintf(b, "IcmpMsg:%s\nIcmpMsg:%s\n", names, counts)
	}
}

// icmpTypes are the types that are counted, by number.
var icmpTypes = [...]struct {
	number int
	name   string
}{
	{0, "EchoReps"}, {3, "DestUnreachs"}, {4, "SrcQuenchs"}, {5, "Redirects"}, {8, "Echos"}, {11, "TimeExcds"},
	{12, "ParmProbs"}, {13, "Timestamps"}, {14, "TimestampReps"},
}

func netstat(n *inet.Net) []byte {
	var b bytes.Buffer
	pair(&b, "TcpExt", "", "", tcpExtNames, tcpValues(n.TCPCounts()))
	pair(&b, "IpExt", "", "", ipExtNames, ipValues(n.IPCounts(false)))
	return b.Bytes()
}

func snmp6(n *inet.Net) []byte {
	var b bytes.Buffer
	snmp6Of(&b, n, 0)
	list6(&b, "Udp6", udpNames, udpValues(n.UDPCounts(true)))
	list6(&b, "UdpLite6", strings.Replace(udpNames, "IgnoredMulti ", "", 1), values{})
	return b.Bytes()
}

func list6(b *bytes.Buffer, prefix, names string, v values) {
	for name := range strings.FieldsSeq(names) {
		fmt.Fprintf(b, "%-32s\t%d\n", prefix+name, v[name])
	}
}

// snmp6Of writes what an interface has counted, or all with 0.
func snmp6Of(b *bytes.Buffer, n *inet.Net, index int32) {
	list := func(prefix, names string, v values) { list6(b, prefix, names, v) }
	list("Ip6", ip6Names, ipValues(n.IPCountsOf(index, true)))
	c := n.ICMPCountsOf(index, true)
	list("Icmp6", "InMsgs InErrors OutMsgs OutErrors InCsumErrors OutRateLimitHost", values{
		"InMsgs": c.In, "InErrors": c.InErrors, "OutMsgs": c.Out, "OutErrors": c.OutErrors, "OutRateLimitHost": c.RateLimited})
	list("Icmp6In", icmp6In, c.InType)
	list("Icmp6Out", icmp6In, c.OutType)
}

// deviceSnmp6 is /proc/net/dev_snmp6/NAME.
func deviceSnmp6(n *inet.Net, index int32) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%-32s\t%d\n", "ifIndex", index)
	snmp6Of(&b, n, index)
	return b.Bytes()
}
