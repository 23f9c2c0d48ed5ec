// Package procnet is /proc/net and /proc/sys/net: tables of sockets, interfaces
// and routes as text, and the settings that programs look at.
package procnet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/sock"
	"hardtack/kernel/net/unix"
	"hardtack/kernel/pseudofs/procfs"
)

// Init adds the files. They are those of the machine's network, once there is one.
func Init() {
	register(func() *inet.Net { return inet.Default })
	addSettings()
}

func register(network func() *inet.Net) {
	for path, text := range map[string]func(*inet.Net) []byte{
		"net/tcp":        func(n *inet.Net) []byte { return sockets(n, &tcp4) },
		"net/tcp6":       func(n *inet.Net) []byte { return sockets(n, &tcp6) },
		"net/udp":        func(n *inet.Net) []byte { return sockets(n, &udp4) },
		"net/udp6":       func(n *inet.Net) []byte { return sockets(n, &udp6) },
		"net/udplite":    func(n *inet.Net) []byte { return sockets(n, &udplite4) },
		"net/udplite6":   func(n *inet.Net) []byte { return sockets(n, &udplite6) },
		"net/icmp":       func(n *inet.Net) []byte { return sockets(n, &icmp4) },
		"net/icmp6":      func(n *inet.Net) []byte { return sockets(n, &icmp6) },
		"net/raw":        func(n *inet.Net) []byte { return sockets(n, &raw4) },
		"net/raw6":       func(n *inet.Net) []byte { return sockets(n, &raw6) },
		"net/unix":       unixSockets,
		"net/netlink":    netlinkSockets,
		"net/packet":     packetSockets,
		"net/protocols":  protocols,
		"net/dev":        devices,
		"net/arp":        neighbors,
		"net/route":      routes,
		"net/ipv6_route": routes6,
		"net/if_inet6":   addresses6,
		"net/sockstat":   sockstat,
		"net/sockstat6":  sockstat6,
		"net/snmp":       snmp,
		"net/snmp6":      snmp6,
		"net/netstat":    netstat,
		"net/igmp":       igmp,
		"net/igmp6":      igmp6,
		"net/mcfilter":   mcfilter,
		"net/mcfilter6":  mcfilter6,
		"net/psched":     psched,
		"net/ptype":      packetTypes,

		"net/fib_trie":      fibTrie,
		"net/fib_triestat":  fibTrieStat,
		"net/dev_mcast":     hardwareGroups,
		"net/softnet_stat":  softnet,
		"net/xfrm_stat":     xfrm,
		"net/anycast6":      nothing(""), // groups of routers, of which this machine is none
		"net/ip6_flowlabel": nothing(titleLabels),
		"net/ip_mr_cache":   nothing(titleMcCache),
		"net/ip_mr_vif":     nothing(titleMcIf),
		"net/ip6_mr_cache":  nothing(titleMcCache6),
		"net/ip6_mr_vif":    nothing(titleMcIf6),
		"net/rt_cache":      nothing(titleCache),
	} {
		register := procfs.RegisterTable
		switch path {
		case "net/sockstat", "net/sockstat6", "net/snmp", "net/snmp6", "net/netstat", "net/psched":
			register = procfs.Register // no tables: they open to write, which fails
		}
		register(path, func() []byte {
			if n := network(); n != nil {
				return text(n)
			}
			return nil
		})
	}
}

// hexAddr writes an address as the kernel's tables do: 32-bit words in the
// machine's byte order.
func hexAddr(b *bytes.Buffer, a *sock.Addr) {
	ip := a.B[4:8]
	if a.Family() == linux.AF_INET6 {
		ip = a.B[8:24]
	}
	for ; len(ip) > 0; ip = ip[4:] {
		fmt.Fprintf(b, "%08X", binary.LittleEndian.Uint32(ip))
	}
	fmt.Fprintf(b, ":%04X", binary.BigEndian.Uint16(a.B[2:]))
}

func unixSockets(*inet.Net) []byte {
	var b bytes.Buffer
	b.WriteString("Num       RefCount Protocol Flags    Type St Inode Path\n")
	unix.Each(func(i unix.Info) {
		flags, state := 0, 1
		if i.Listening {
			flags = 0x10000
		}
		if i.Conn {
			state = 3
		}
		fmt.Fprintf(&b, "0000000000000000: 00000002 00000000 %08X %04X %02X %5d", flags, i.Type, state, i.Ino)
		if i.Name != "" {
			b.WriteByte(' ')
			b.WriteString(strings.ReplaceAll(i.Name, "\x00", "@"))
		}
		b.WriteByte('\n')
	})
	return b.Bytes()
}

func devices(n *inet.Net) []byte {
	var b bytes.Buffer
	b.WriteString("Inter-|   Receive                                                |  Transmit\n" +
		" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n")
	for _, i := range n.Interfaces() {
		rb, rp, tb, tp := n.Statistics(i.Index)
		fmt.Fprintf(&b, "%6s: %7d %7d    0    0    0     0          0         0 %8d %7d    0    0    0     0       0          0\n",
			i.Name, rb, rp, tb, tp)
	}
	return b.Bytes()
}

func routes(n *inet.Net) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%-127s\n", "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT")
	for _, r := range n.SortedRoutes() {
		dst, gw := r.Destination.ID(), r.Gateway
		i := n.InterfaceByIndex(int32(r.NIC))
		x := n.NoteOf(&r)
		if dst.Len() != 4 || i == nil && r.NIC > 0 || i != nil && i.Loopback && x.Proto == linux.RTPROT_KERNEL {
			continue
		}
		flags, via, name := 1, uint32(0), "*"
		if i != nil {
			name = i.Name
		}
		if typ := inet.TypeOf(&r); typ == linux.RTN_UNREACHABLE || typ == linux.RTN_PROHIBIT {
			flags |= 0x200 // RTF_REJECT
		}
		if r.Destination.Prefix() == 32 {
			flags |= 4
		}
		if gw.Len() == 4 {
			flags, via = flags|2, binary.LittleEndian.Uint32(gw.AsSlice())
		}
		mask := r.Destination.Mask()
		line := fmt.Sprintf("%s\t%08X\t%08X\t%04X\t0\t0\t%d\t%08X\t0\t0\t0", name,
			binary.LittleEndian.Uint32(dst.AsSlice()), via, flags, x.Metric, binary.LittleEndian.Uint32(mask.AsSlice()))
		fmt.Fprintf(&b, "%-127s\n", line)
	}
	return b.Bytes()
}

func addresses6(n *inet.Net) []byte {
	var b bytes.Buffer
	for _, i := range n.Interfaces() {
		for _, a := range n.Addresses(i.Index) {
			if a.Address.Len() == 16 {
				scope := map[uint8]int{linux.RT_SCOPE_HOST: 0x10, linux.RT_SCOPE_LINK: 0x20, linux.RT_SCOPE_SITE: 0x40}[n.Scope(i, a.Address)]
				fmt.Fprintf(&b, "%032x %02x %02x %02x %02x %8s\n", a.Address.AsSlice(), i.Index, a.PrefixLen, scope, uint8(n.AddressFlags(i, a)), i.Name)
			}
		}
	}
	return b.Bytes()
}
