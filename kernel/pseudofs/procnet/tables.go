package procnet

import (
	"bytes"
	"fmt"
	"strings"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/abi/linux"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/netlink"
	"hardtack/kernel/net/packet"
	"hardtack/kernel/net/sock"
	"hardtack/kernel/net/unix"
	"hardtack/kernel/process/proc"
)

// table is one of the files that list sockets: /proc/net/tcp and its kin.
type table struct {
	typ, protocol int32 // protocol is -1 for any
	v6            bool
	header        string
	index         int // width of the first column
	pad           int // lines are filled up to this; 0 for none
	queue         bool
}

const (
	header4 = "sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
	header6 = "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
	drops   = " ref pointer drops"
)

var (
	tcp4     = table{linux.SOCK_STREAM, linux.IPPROTO_TCP, false, "  " + header4, 4, 149, true}
	tcp6     = table{linux.SOCK_STREAM, linux.IPPROTO_TCP, true, header6, 4, 0, true}
	udp4     = table{linux.SOCK_DGRAM, linux.IPPROTO_UDP, false, "   " + header4 + drops, 5, 127, false}
	udp6     = table{linux.SOCK_DGRAM, linux.IPPROTO_UDP, true, header6 + drops, 5, 0, false}
	udplite4 = table{linux.SOCK_DGRAM, linux.IPPROTO_UDPLITE, false, "   " + header4 + drops, 5, 127, false}
	udplite6 = table{linux.SOCK_DGRAM, linux.IPPROTO_UDPLITE, true, header6 + drops, 5, 0, false}
	icmp4    = table{linux.SOCK_DGRAM, linux.IPPROTO_ICMP, false, "  " + header4 + drops, 5, 127, false}
	icmp6    = table{linux.SOCK_DGRAM, linux.IPPROTO_ICMPV6, true, header6 + drops, 5, 0, false}
	raw4     = table{linux.SOCK_RAW, -1, false, "  " + header4 + drops, 4, 0, false}
	raw6     = table{linux.SOCK_RAW, -1, true, header6 + drops, 5, 0, false}
)

// sockets is /proc/net/tcp and its kin.
func sockets(n *inet.Net, t *table) []byte {
	var b bytes.Buffer
	at := 0
	end := func() {
		if n := t.pad - (b.Len() - at); n > 0 {
			b.WriteString(strings.Repeat(" ", n))
		}
		b.WriteByte('\n')
		at = b.Len()
	}
	b.WriteString(t.header)
	end()
	line := 0
	n.Each(func(i *inet.Info) {
		raw := i.Type == linux.SOCK_RAW
		if i.V6 != t.v6 || i.Type != t.typ || t.protocol != -1 && i.Protocol != t.protocol {
			return
		}
		if raw {
			i.Local.B[2], i.Local.B[3] = byte(i.Protocol>>8), byte(i.Protocol)
		}
		// As Linux, a socket that is neither bound nor connected is in no table.
		if i.Local.B[2] == 0 && i.Local.B[3] == 0 {
			return
		}
		fmt.Fprintf(&b, "%*d: ", t.index, line)
		hexAddr(&b, &i.Local)
		b.WriteByte(' ')
		hexAddr(&b, &i.Peer)
		fmt.Fprintf(&b, " %02X %08X:%08X 00:00000000 00000000 %5d        0 %d ", i.State, i.TxQueue, i.RxQueue, i.UID, i.Ino)
		switch {
		case !t.queue:
			fmt.Fprintf(&b, "2 %s 0", address)
		case i.State == linux.TCP_LISTEN:
			fmt.Fprintf(&b, "1 %s 100 0 0 10 0", address)
		default:
			fmt.Fprintf(&b, "1 %s 20 4 30 10 -1", address)
		}
		end()
		line++
	})
	return b.Bytes()
}

// address stands for a socket's address in the kernel, which nobody is told.
const address = "0000000000000000"

func netlinkSockets(*inet.Net) []byte {
	var b bytes.Buffer
	b.WriteString("sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode\n")
	netlink.Each(func(i netlink.Info) {
		fmt.Fprintf(&b, "%s %-3d %-10d %08x %-8d %-8d %-5d %-8d %-8d %-8d\n", address, i.Protocol, i.Port, i.Groups, i.Queued, 0, 0, 2, 0, i.Ino)
	})
	return b.Bytes()
}

// packetSockets is /proc/net/packet.
func packetSockets(*inet.Net) []byte {
	var b bytes.Buffer
	b.WriteString("sk               RefCnt Type Proto  Iface R Rmem   User   Inode\n")
	packet.Each(func(i packet.Info) {
		running := 0
		if i.Running {
			running = 1
		}
		fmt.Fprintf(&b, "%s %-6d %-4d %04x   %-5d %1d %-6d %-6d %-6d\n", address, 3, i.Type, i.Protocol, i.Index, running, i.Queued, i.UID, i.Ino)
	})
	return b.Bytes()
}

// inUse counts sockets.
type inUse struct {
	tcp, udp, udplite, raw, ping [2]int // of IPv4, of IPv6
	tcpAll, unix, netlink        int
}

func count(n *inet.Net) (u inUse) {
	n.Each(func(i *inet.Info) {
		k := 0
		if i.V6 {
			k = 1
		}
		bound := i.Local.B[2] != 0 || i.Local.B[3] != 0
		switch {
		case i.Type == linux.SOCK_RAW:
			u.raw[k]++
		case i.Protocol == linux.IPPROTO_TCP:
			if u.tcpAll++; bound && i.State != linux.TCP_CLOSE {
				u.tcp[k]++
			}
		case i.Protocol == linux.IPPROTO_UDP && bound:
			u.udp[k]++
		case i.Protocol == linux.IPPROTO_UDPLITE && bound:
			u.udplite[k]++
		case i.Protocol == linux.IPPROTO_ICMP || i.Protocol == linux.IPPROTO_ICMPV6:
			u.ping[k]++
		}
	})
	unix.Each(func(unix.Info) { u.unix++ })
	netlink.Each(func(netlink.Info) { u.netlink++ })
	return u
}

func sockstat(n *inet.Net) []byte {
	u, all := count(n), 0
	n.Each(func(*inet.Info) { all++ })
	return fmt.Appendf(nil, "sockets: used %d\nTCP: inuse %d orphan 0 tw %d alloc %d mem %d\nUDP: inuse %d mem 0\nUDPLITE: inuse %d\n"+
		"RAW: inuse %d\nFRAG: inuse 0 memory 0\n",
		all+u.unix+u.netlink, u.tcp[0], n.TimeWaits(), u.tcpAll, sock.RingBytes.Used()/4096, u.udp[0], u.udplite[0], u.raw[0])
}

func sockstat6(n *inet.Net) []byte {
	u := count(n)
	return fmt.Appendf(nil, "TCP6: inuse %d\nUDP6: inuse %d\nUDPLITE6: inuse %d\nRAW6: inuse %d\nFRAG6: inuse 0 memory 0\n",
		u.tcp[1], u.udp[1], u.udplite[1], u.raw[1])
}

// protocols is /proc/net/protocols. The last columns say which methods Linux's protocols have.
func protocols(n *inet.Net) []byte {
	const (
		ofTCP  = "y  y  y  y  y  y  y  y  y  y  y  y  y  n  y  y  y  y  y"
		ofUDP  = "y  y  y  n  y  y  y  n  y  y  y  y  y  n  n  y  y  y  n"
		ofRaw  = "y  y  y  n  y  y  y  n  y  y  y  y  n  y  y  y  y  n  n"
		ofPing = "y  y  y  n  n  y  n  n  y  y  y  y  n  y  y  y  y  y  n"
		none   = "n  n  n  n  n  n  n  n  n  n  n  n  n  n  n  n  n  n  n"
	)
	u := count(n)
	pages := int(sock.RingBytes.Used() / 4096)
	stream, datagram, local, link := inet.SizeOfTCP, inet.SizeOfDatagram, unix.SizeOfSock, netlink.SizeOfSock
	var b bytes.Buffer
	b.WriteString("protocol  size sockets  memory press maxhdr  slab module     cl co di ac io in de sh ss gs se re sp bi br ha uh gp em\n")
	for _, p := range []struct {
		name                 string
		size, sockets, pages int
		press                string
		methods              string
	}{
		{"PINGv6", datagram, u.ping[1], -1, "NI", ofPing}, {"RAWv6", datagram, u.raw[1], -1, "NI", ofRaw},
		{"UDPLITEv6", datagram, u.udplite[1], 0, "NI", ofUDP}, {"UDPv6", datagram, u.udp[1], 0, "NI", ofUDP},
		{"TCPv6", stream, u.tcp[1], pages, "no", ofTCP}, {"UNIX", local, u.unix, -1, "NI", "y" + none[1:]},
		{"UDP-Lite", datagram, u.udplite[0], 0, "NI", ofUDP}, {"PING", datagram, u.ping[0], -1, "NI", ofPing},
		{"RAW", datagram, u.raw[0], -1, "NI", ofRaw}, {"UDP", datagram, u.udp[0], 0, "NI", ofUDP},
		{"TCP", stream, u.tcp[0], pages, "no", ofTCP}, {"NETLINK", link, u.netlink, -1, "NI", none},
	} {
		fmt.Fprintf(&b, "%-9s %4d %6d  %6d   %-3s %6d   %-3s  %-10s  %s\n", p.name, p.size, p.sockets, p.pages, p.press, 0, "yes", "kernel", p.methods)
	}
	return b.Bytes()
}

// neighbors is /proc/net/arp.
func neighbors(n *inet.Net) []byte {
	var b bytes.Buffer
	b.WriteString("IP address       HW type     Flags       HW address            Mask     Device\n")
	for _, i := range n.Interfaces() {
		for _, x := range n.Neighbors(i) {
			flags := 2
			if x.Permanent {
				flags = 6
			}
			fmt.Fprintf(&b, "%-16s 0x%-10x0x%-10x%-17s     *        %s\n", x.Addr, i.HardwareType(), flags, x.LinkAddr, i.Name)
		}
	}
	return b.Bytes()
}

// routes6 is /proc/net/ipv6_route: the table main, then the table local.
func routes6(n *inet.Net) []byte {
	var b bytes.Buffer
	for _, local := range []bool{false, true} {
		for _, r := range netlink.Routes6(n, local) {
			name := ""
			if i := n.InterfaceByIndex(r.Index); i != nil {
				name = i.Name
			}
			fmt.Fprintf(&b, "%032x %02x %032x 00 %032x %08x %08x %08x %08x %8s\n", r.Dst, r.Prefix, 0, r.Via,
				r.Metric, 1, 0, r.Flags, name)
		}
	}
	return b.Bytes()
}

// nothing makes a file that has only a title: of what it lists the kernel has none.
func nothing(title string) func(*inet.Net) []byte {
	return func(*inet.Net) []byte { return []byte(title) }
}

// Titles of such files. There are no routes of multicast, no labels of flows, and no cache
// of routes.
const (
	titleMcCache  = "Group    Origin   Iif     Pkts    Bytes    Wrong Oifs\n"
	titleMcIf     = "Interface      BytesIn  PktsIn  BytesOut PktsOut Flags Local    Remote\n"
	titleMcCache6 = "Group                            Origin                           Iif      Pkts  Bytes     Wrong  Oifs\n"
	titleMcIf6    = "Interface      BytesIn  PktsIn  BytesOut PktsOut Flags\n"
	titleLabels   = "Label S Owner  Users  Linger Expires  Dst                              Opt\n"
)

var titleCache = fmt.Sprintf("%-127s\n", "Iface\tDestination\tGateway \tFlags\t\tRefCnt\tUse\tMetric\tSource\t\tMTU\tWindow\tIRTT\tTOS\tHHRef\tHHUptod\tSpecDst")

// hardwareGroups is dev_mcast: the groups of hardware addresses that interfaces receive.
func hardwareGroups(n *inet.Net) []byte {
	var b bytes.Buffer
	for _, i := range n.Interfaces() {
		if i.Loopback {
			continue
		}
		count := map[tcpip.LinkAddress]int{}
		var order []tcpip.LinkAddress
		for _, six := range []bool{true, false} {
			groups := n.Groups(i, six)
			for k := len(groups) - 1; k >= 0; k-- { // the oldest first
				a := groups[k].Addr
				var mac tcpip.LinkAddress
				if six {
					mac = header.EthernetAddressFromMulticastIPv6Address(a)
				} else {
					mac = header.EthernetAddressFromMulticastIPv4Address(a)
				}
				if count[mac]++; count[mac] == 1 {
					order = append(order, mac)
				}
			}
		}
		for _, mac := range order {
			fmt.Fprintf(&b, "%-4d %-15s %-5d %-5d %x\n", i.Index, i.Name, count[mac], 0, string(mac))
		}
	}
	return b.Bytes()
}

// softnet is softnet_stat. The kernel does not count by CPU, so that the first has all.
func softnet(n *inet.Net) []byte {
	var b bytes.Buffer
	packets := uint64(0)
	for _, i := range n.Interfaces() {
		_, received, _, _ := n.Statistics(i.Index)
		packets += received
	}
	cpus, _ := proc.CPUs.Call()
	for cpu := range cpus {
		if !proc.Online(cpu) {
			continue
		}
		fmt.Fprintf(&b, "%08x %08x %08x %08x %08x %08x %08x %08x %08x %08x %08x %08x %08x\n", uint32(packets), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, cpu)
		packets = 0
	}
	return b.Bytes()
}

// xfrmNames are the errors of IPsec, of which there is none.
const xfrmNames = "InError InBufferError InHdrError InNoStates InStateProtoError InStateModeError InStateSeqError InStateExpired " +
	"InStateMismatch InStateInvalid InTmplMismatch InNoPols InPolBlock InPolError OutError OutBundleGenError OutBundleCheckError " +
	"OutNoStates OutStateProtoError OutStateModeError OutStateSeqError OutStateExpired OutPolBlock OutPolDead OutPolError " +
	"FwdHdrError OutStateInvalid AcquireError"

func xfrm(*inet.Net) []byte {
	var b bytes.Buffer
	for name := range strings.FieldsSeq(xfrmNames) {
		fmt.Fprintf(&b, "%-24s\t%d\n", "Xfrm"+name, 0)
	}
	return b.Bytes()
}

// psched is how the packet scheduler's clock ticks: ns of a microsecond, ns of a tick,
// microseconds of a second, and the timers' ticks of a second.
func psched(*inet.Net) []byte { return []byte("000003e8 00000040 000f4240 3b9aca00\n") }

// packetTypes is who takes packets in.
func packetTypes(n *inet.Net) []byte {
	var b bytes.Buffer
	b.WriteString("Type Device      Function\n")
	packet.Each(func(s packet.Info) {
		if !s.Running {
			return
		}
		typ, name := "ALL ", ""
		if s.Protocol != linux.ETH_P_ALL {
			typ = fmt.Sprintf("%04x", s.Protocol)
		}
		if i := n.InterfaceByIndex(s.Index); i != nil {
			name = i.Name
		}
		fmt.Fprintf(&b, "%s %-8s %s\n", typ, name, "packet_rcv")
	})
	b.WriteString("0800          ip_rcv\n0806          arp_rcv\n86dd          ipv6_rcv\n")
	return b.Bytes()
}
