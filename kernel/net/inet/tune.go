package inet

import (
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"

	"hardtack/abi/linux"
	"hardtack/kernel/base/settings"
)

// What /proc/sys/net changes of a running stack.

// SetTCP changes an option of all TCP connections to come.
func (n *Net) SetTCP(o tcpip.SettableTransportProtocolOption) linux.Errno {
	return errno(n.Stack.SetTransportProtocolOption(tcp.ProtocolNumber, o))
}

// SetInvalidLimit bounds how often a connection answers segments that it does not take.
func (n *Net) SetInvalidLimit(each time.Duration) linux.Errno {
	return errno(n.Stack.SetOption(stack.TCPInvalidRateLimitOption(each)))
}

// GetTCP reads one.
func (n *Net) GetTCP(o tcpip.GettableTransportProtocolOption) {
	if err := n.Stack.TransportProtocolOption(tcp.ProtocolNumber, o); err != nil {
		panic("inet: " + err.String())
	}
}

// SetDefaultTTL is net.ipv4.ip_default_ttl.
func (n *Net) SetDefaultTTL(v int64) linux.Errno {
	ttl := tcpip.DefaultTTLOption(v)
	if err := n.Stack.SetNetworkProtocolOption(ipv4.ProtocolNumber, &ttl); err != nil {
		return errno(err)
	}
	settings.DefaultTTL.Set(v)
	return 0
}

// TuneBuffers tells netstack the sizes of new sockets' buffers (net.core.*mem_*).
func (n *Net) TuneBuffers() {
	n.Stack.SetOption(tcpip.SendBufferSizeOption{Min: 2048, Default: int(settings.WmemDefault.Get()), Max: 2 * bufferMax})
	n.Stack.SetOption(tcpip.ReceiveBufferSizeOption{Min: 2048, Default: int(settings.RmemDefault.Get()), Max: 2 * bufferMax})
}

// bufferMax is the most that a socket's buffer may be; the options of the socket are
// checked against net.core.*mem_max before.
const bufferMax = 1 << 30

// Forwarding reports whether an interface passes packets on; index 0 is the default of
// new interfaces.
func (n *Net) Forwarding(index int32, v6 bool) bool {
	f := n.forward4
	if v6 {
		f = n.forward6
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	return f[index]
}

// SetForwarding changes that; index -1 is all interfaces and the default.
func (n *Net) SetForwarding(index int32, v6, on bool) linux.Errno {
	proto, f := ipv4.ProtocolNumber, n.forward4
	if v6 {
		proto, f = ipv6.ProtocolNumber, n.forward6
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case index < 0:
		if err := n.Stack.SetForwardingDefaultAndAllNICs(proto, on); err != nil {
			return errno(err)
		}
		f[0], f[-1] = on, on
		for _, i := range n.ifaces {
			f[i.Index] = on
		}
		return 0
	case index > 0:
		if _, err := n.Stack.SetNICForwarding(tcpip.NICID(index), proto, on); err != nil {
			return errno(err)
		}
	}
	f[index] = on
	return 0
}

// IPv6Disabled reports net.ipv6.conf.NAME.disable_ipv6; index 0 is the default of new
// interfaces.
func (n *Net) IPv6Disabled(index int32) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	_, off := n.without6[index]
	return off
}

// DisableIPv6 takes the IPv6 addresses of an interface away, or gives them back; index
// -1 is all interfaces and the default.
func (n *Net) DisableIPv6(index int32, off bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if index <= 0 {
		n.disable6(index, off)
	}
	for _, i := range n.ifaces {
		if index < 0 || i.Index == index {
			n.disable6(i.Index, off)
		}
	}
	if index < 0 {
		n.disable6(0, off)
	}
}

// disable6 is DisableIPv6 of one; called with mu held.
func (n *Net) disable6(index int32, off bool) {
	gone, was := n.without6[index]
	switch {
	case off == was:
	case off:
		if info, ok := n.Stack.SingleNICInfo(tcpip.NICID(index)); ok {
			for _, a := range info.ProtocolAddresses {
				if a.Protocol == header.IPv6ProtocolNumber {
					if n.addressNotes[addressKey{index, a.AddressWithPrefix.Address}].Proto != linux.IFAPROT_KERNEL_RA {
						gone = append(gone, a)
					}
					n.Stack.RemoveAddress(tcpip.NICID(index), a.AddressWithPrefix.Address)
				}
			}
		}
		n.without6[index] = gone
	default:
		delete(n.without6, index)
		for _, a := range gone {
			n.addProtocolAddress(index, a)
		}
	}
	if off != was && index > 0 {
		n.applyNDP(index)
		n.rediscover(index)
	}
}
