// Package netif makes network interfaces of devices: the link endpoint that
// joins a netdev.Device to the TCP/IP stack (Link), and how it gets its
// addresses (Settings, DHCP).
//
// Lock order: netstack's locks, then the device's.
package netif

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/netdev"
)

// Link is netstack's link endpoint on a device. Sending happens in the sender's
// goroutine, receiving in the device's: no queue and no goroutine is between.
type Link struct {
	dev      netdev.Device                    // immutable
	net      *inet.Net                        // immutable
	features netdev.Features                  // immutable
	mac      tcpip.LinkAddress                // changed by Renew only
	mtu      atomic.Uint32                    // as programs have set it
	down     atomic.Bool                      // programs have set the interface down
	index    int32                            // immutable after Add
	host     [header.EthernetAddressSize]byte // mac's bytes

	up   atomic.Pointer[stack.NetworkDispatcher]
	dhcp atomic.Pointer[func(udp []byte)] // who gets replies of DHCP servers

	// own4 is the interface's IPv4 address, and above it the subnet's
	// broadcast address; 0 without one.
	own4               atomic.Uint64
	rxPackets, rxBytes *tcpip.StatCounter // the NIC's; immutable after Add
	plainTo            plainDeliverer     // nil without; immutable after Add

	// TxDropped counts frames for which the device had no room.
	TxDropped atomic.Uint64
	// RxDropped counts frames that came while the kernel was short of memory.
	RxDropped atomic.Uint64
}

// Add makes an interface of a device; it has no address yet.
func Add(n *inet.Net, d netdev.Device, name string) (*Link, error) {
	mac := d.MAC()
	l := &Link{
		dev: d, net: n, features: d.Features(), host: mac,
		mac: tcpip.LinkAddress(mac[:]), index: n.NextIndex(),
	}
	l.mtu.Store(uint32(d.MTU()))
	i := &inet.Interface{Index: l.index, Name: name, MAC: mac, MTU: d.MTU(), NoARP: l.features&netdev.NoARP != 0}
	if err := n.AddInterface(i, l); err != nil {
		return nil, stackError{err}
	}
	info, ok := n.Stack.SingleNICInfo(tcpip.NICID(l.index))
	if !ok {
		return nil, stackError{&tcpip.ErrUnknownNICID{}}
	}
	l.rxPackets, l.rxBytes = info.Stats.Rx.Packets, info.Stats.Rx.Bytes
	if c, ok := d.(netdev.Carrier); ok {
		n.SetCarrier(i, c.LinkUp())
		c.OnLink(func() { n.SetCarrier(i, c.LinkUp()) })
	}
	l.plainTo, _ = any(n.Stack).(plainDeliverer)
	d.SetReceiver(l.receive)
	n.Configure(i)
	return l, nil
}

// stackError is an error of netstack as Go's error.
type stackError struct{ err tcpip.Error }

func (e stackError) Error() string { return e.err.String() }

// MTU is the largest IP packet.
func (l *Link) MTU() uint32 { return l.mtu.Load() }

// SetMTU does nothing: see ChangeMTU.
func (l *Link) SetMTU(uint32) {}

// MaxMTU is the largest MTU of a device.
func MaxMTU(d netdev.Device) int {
	if j, ok := d.(netdev.Jumbo); ok {
		return max(j.MaxMTU(), d.MTU())
	}
	return d.MTU()
}

// SetPromiscuous has the device pass on frames for other stations, which only packet sockets see.
func (l *Link) SetPromiscuous(on bool) {
	if p, ok := l.dev.(netdev.Promiscuous); ok {
		p.SetPromiscuous(on)
	}
}

// ChangeMTU takes what the device can do, and IPv4 can do with.
func (l *Link) ChangeMTU(mtu int) bool {
	if mtu < header.IPv4MinimumMTU || mtu > MaxMTU(l.dev) {
		return false
	}
	l.mtu.Store(uint32(mtu))
	return true
}

// MaxHeaderLength is the room that frames need in front of a packet.
func (l *Link) MaxHeaderLength() uint16 { return header.EthernetMinimumSize }

// Renew gives the interface another address, while no program runs: a frame that is being
// sent may still have the old one.
func (l *Link) Renew(mac [header.EthernetAddressSize]byte) {
	l.mac, l.host = tcpip.LinkAddress(mac[:]), mac
	for _, i := range l.net.Interfaces() {
		if i.Index == l.index {
			i.MAC = mac
		}
	}
	l.greet()
}

// greet asks for the routers' addresses, which tells them and everybody else this interface's.
// It saves the first connections from waiting for such questions and answers.
func (l *Link) greet() {
	if l.features&netdev.NoARP != 0 {
		return
	}
	nic := tcpip.NICID(l.index)
	known, _ := l.net.Stack.Neighbors(nic, header.IPv4ProtocolNumber)
	for _, r := range l.net.Stack.GetRouteTable() {
		given := slices.ContainsFunc(known, func(e stack.NeighborEntry) bool { return e.Addr == r.Gateway && e.State == stack.Static })
		if r.NIC != nic || r.Gateway.Len() != header.IPv4AddressSize || given {
			continue
		}
		// One who does not answer is asked again when it is needed.
		_ = l.net.Stack.RemoveNeighbor(nic, header.IPv4ProtocolNumber, r.Gateway)
		_ = l.net.Stack.GetLinkAddress(nic, r.Gateway, tcpip.Address{}, header.IPv4ProtocolNumber, func(stack.LinkResolutionResult) {})
	}
}

// LinkAddress is the MAC.
func (l *Link) LinkAddress() tcpip.LinkAddress { return l.mac }

// SetLinkAddress does nothing: a device's address is fixed.
func (l *Link) SetLinkAddress(tcpip.LinkAddress) {}

// Capabilities tells netstack what it need not do. (Transmit checksums go with
// GSO; see SupportedGSO.)
func (l *Link) Capabilities() stack.LinkEndpointCapabilities {
	var c stack.LinkEndpointCapabilities
	if l.features&netdev.NoARP == 0 {
		c = stack.CapabilityResolutionRequired
	}
	if l.features&netdev.RxChecksum != 0 {
		c |= stack.CapabilityRXChecksumOffload
	}
	return c
}

// hardware reports whether the device segments and checksums.
func (l *Link) hardware() bool {
	const need = netdev.TxChecksum | netdev.TSO4 | netdev.TSO6
	return l.features&need == need
}

// SupportedGSO says who cuts large TCP packets: the device, or netstack at the
// last moment.
func (l *Link) SupportedGSO() stack.SupportedGSO {
	if l.hardware() {
		return stack.HostGSOSupported
	}
	return stack.GVisorGSOSupported
}

// GSOMaxSize is the largest TCP packet before it is cut.
func (l *Link) GSOMaxSize() uint32 { return 65535 }

// Attach connects the endpoint to the stack.
func (l *Link) Attach(d stack.NetworkDispatcher) {
	if d == nil {
		l.up.Store(nil)
		return
	}
	l.up.Store(&d)
}

// IsAttached reports whether there is a stack.
func (l *Link) IsAttached() bool { return l.up.Load() != nil }

// Wait waits for the endpoint's goroutines: it has none.
func (l *Link) Wait() {}

// ARPHardwareType is Ethernet's.
func (l *Link) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareEther }

// Close does nothing: devices stay.
func (l *Link) Close() {}

// SetOnCloseAction does nothing.
func (l *Link) SetOnCloseAction(func()) {}

// AddHeader puts the Ethernet header in front of a packet.
func (l *Link) AddHeader(p *stack.PacketBuffer) {
	h := p.LinkHeader().Push(header.EthernetMinimumSize)
	copy(h, p.EgressRoute.RemoteLinkAddress)
	copy(h[6:], p.EgressRoute.LocalLinkAddress)
	h[12], h[13] = byte(p.NetworkProtocolNumber>>8), byte(p.NetworkProtocolNumber)
}

// ParseHeader takes the Ethernet header off.
func (l *Link) ParseHeader(p *stack.PacketBuffer) bool {
	_, ok := p.LinkHeader().Consume(header.EthernetMinimumSize)
	return ok
}

// Hold keeps what is sent back until Flush.
func (l *Link) Hold() { l.dev.Hold() }

// Flush ends a Hold.
func (l *Link) Flush() { l.dev.Flush() }

// sending holds what send needs, so that it allocates nothing.
type sending struct {
	frames []netdev.Frame
	parts  [][]byte
}

var sendings = sync.Pool{New: func() any {
	return &sending{frames: make([]netdev.Frame, 0, 1), parts: make([][]byte, 0, 64)}
}}

// WritePackets sends packets.
func (l *Link) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	for i, p := range pkts.AsSlice() {
		if err := l.WritePacket(p); err != nil {
			return i, err
		}
	}
	return pkts.Len(), nil
}

// WritePacket sends one packet: netstack's queueing discipline.
func (l *Link) WritePacket(p *stack.PacketBuffer) tcpip.Error {
	if l.send(p) {
		return nil
	}
	return &tcpip.ErrNoBufferSpace{}
}

// send hands one packet to the device.
func (l *Link) send(p *stack.PacketBuffer) bool {
	s := sendings.Get().(*sending)
	s.add(p)
	if l.net.Tapped() {
		if l.down.Load() {
			return true // lost, as on a link without a carrier
		}
		l.net.TapOut(l.index, joined(&s.frames[0]), s.frames[0].NeedsChecksum)
	}
	n := l.transmit(s.frames)
	clear(s.frames)
	clear(s.parts)
	s.frames, s.parts = s.frames[:0], s.parts[:0]
	sendings.Put(s)
	return n == 1
}

// SendFrame sends a frame that was made by a program (AF_PACKET).
func (l *Link) SendFrame(frame []byte) bool {
	return l.transmit([]netdev.Frame{{Parts: [][]byte{frame}}}) == 1
}

// joined returns a frame in one piece.
func joined(f *netdev.Frame) []byte { return slices.Concat(f.Parts...) }

// add makes a Frame of a packet.
func (s *sending) add(p *stack.PacketBuffer) {
	first := len(s.parts)
	views, skip := p.AsViewList()
	for v := views.Front(); v != nil; v = v.Next() {
		b := v.AsSlice()
		if skip >= len(b) {
			skip -= len(b)
			continue
		}
		s.parts = append(s.parts, b[skip:])
		skip = 0
	}
	f := netdev.Frame{Parts: s.parts[first:len(s.parts):len(s.parts)], Hash: p.Hash}
	if o := &p.GSOOptions; o.Type == stack.GSOTCPv4 || o.Type == stack.GSOTCPv6 {
		f.NeedsChecksum = o.NeedsCsum
		f.ChecksumStart = header.EthernetMinimumSize + o.L3HdrLen
		f.ChecksumOffset = o.CsumOffset
		if p.Data().Size() > int(o.MSS) {
			f.GSO = netdev.GSOTCPv4
			if o.Type == stack.GSOTCPv6 {
				f.GSO = netdev.GSOTCPv6
			}
			f.HeaderLen = uint16(p.HeaderSize())
			f.SegmentSize = o.MSS
		}
	}
	s.frames = append(s.frames, f)
}

// transmit hands frames to the device; a full ring gets a few chances to drain.
func (l *Link) transmit(f []netdev.Frame) int {
	n := l.dev.Transmit(f)
	for tries := 0; n < len(f) && tries < 64; tries++ {
		runtime.Gosched()
		n += l.dev.Transmit(f[n:])
	}
	l.TxDropped.Add(uint64(len(f) - n))
	return n
}
