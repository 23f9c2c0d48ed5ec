// Package procnet is /proc/net and /proc/sys/net: tables of sockets, interfaces
// and routes as text, and the settings that programs look at. Importing it is
// enough.
package procnet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/procfs"
	"hardtack/kernel/sock"
	"hardtack/kernel/sock/inet"
	"hardtack/kernel/sock/unix"
)

// The files are those of the machine's network, once there is one.
func init() { register(func() *inet.Net { return inet.Default }) }

func register(network func() *inet.Net) {
	for path, text := range map[string]func(*inet.Net) []byte{
		"net/tcp":      func(n *inet.Net) []byte { return sockets(n, linux.IPPROTO_TCP, false) },
		"net/tcp6":     func(n *inet.Net) []byte { return sockets(n, linux.IPPROTO_TCP, true) },
		"net/udp":      func(n *inet.Net) []byte { return sockets(n, linux.IPPROTO_UDP, false) },
		"net/udp6":     func(n *inet.Net) []byte { return sockets(n, linux.IPPROTO_UDP, true) },
		"net/raw":      func(n *inet.Net) []byte { return sockets(n, -1, false) },
		"net/raw6":     func(n *inet.Net) []byte { return sockets(n, -1, true) },
		"net/unix":     unixSockets,
		"net/dev":      devices,
		"net/route":    routes,
		"net/if_inet6": addresses6,
		"net/sockstat": sockstat,
	} {
		procfs.Register(path, func() []byte {
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

// sockets is /proc/net/tcp and its kin; protocol -1 takes raw sockets.
func sockets(n *inet.Net, protocol int32, v6 bool) []byte {
	var b bytes.Buffer
	b.WriteString("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n")
	line := 0
	n.Each(func(i *inet.Info) {
		raw := i.Type == linux.SOCK_RAW
		if i.V6 != v6 || raw != (protocol == -1) || !raw && i.Protocol != protocol {
			return
		}
		// As Linux, a socket that is neither bound nor connected is in no table.
		if !raw && i.Local.B[2] == 0 && i.Local.B[3] == 0 {
			return
		}
		fmt.Fprintf(&b, "%4d: ", line)
		hexAddr(&b, &i.Local)
		b.WriteByte(' ')
		hexAddr(&b, &i.Peer)
		fmt.Fprintf(&b, " %02X %08X:%08X 00:00000000 00000000 %5d        0 %d 1 0000000000000000 100 0 0 10 0\n",
			i.State, i.TxQueue, i.RxQueue, i.UID, i.Ino)
		line++
	})
	return b.Bytes()
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
	b.WriteString("Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n")
	for _, r := range n.Routes() {
		dst, gw := r.Destination.ID(), r.Gateway
		i := n.InterfaceByIndex(int32(r.NIC))
		if dst.Len() != 4 || i == nil || i.Loopback {
			continue
		}
		flags, via := 1, uint32(0)
		if gw.Len() == 4 {
			flags, via = 3, binary.LittleEndian.Uint32(gw.AsSlice())
		}
		mask := r.Destination.Mask()
		fmt.Fprintf(&b, "%s\t%08X\t%08X\t%04X\t0\t0\t0\t%08X\t0\t0\t0\n", i.Name,
			binary.LittleEndian.Uint32(dst.AsSlice()), via, flags, binary.LittleEndian.Uint32(mask.AsSlice()))
	}
	return b.Bytes()
}

func addresses6(n *inet.Net) []byte {
	var b bytes.Buffer
	for _, i := range n.Interfaces() {
		for _, a := range n.Addresses(i.Index) {
			if a.Address.Len() == 16 {
				scope := 0
				if i.Loopback {
					scope = 0x10
				}
				fmt.Fprintf(&b, "%032x %02x %02x %02x 80 %8s\n", a.Address.AsSlice(), i.Index, a.PrefixLen, scope, i.Name)
			}
		}
	}
	return b.Bytes()
}

func sockstat(n *inet.Net) []byte {
	tcp, udp, raw, un := 0, 0, 0, 0
	n.Each(func(i *inet.Info) {
		switch {
		case i.Type == linux.SOCK_RAW:
			raw++
		case i.Protocol == linux.IPPROTO_TCP:
			tcp++
		default:
			udp++
		}
	})
	unix.Each(func(unix.Info) { un++ })
	return fmt.Appendf(nil, "sockets: used %d\nTCP: inuse %d orphan 0 tw 0 alloc %d mem %d\nUDP: inuse %d mem 0\nRAW: inuse %d\n",
		tcp+udp+raw+un, tcp, tcp, sock.RingBytes.Used()/4096, udp, raw)
}
