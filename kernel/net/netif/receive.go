package netif

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"hardtack/kernel/base/hook"
	"hardtack/kernel/net/netdev"
)

// Short reports that the kernel's heap has used up much of its reserve, and sees to it that
// memory is made free before. Meanwhile frames are dropped: what comes in needs no process to run, and
// would use up the rest before the killer has found who does not read. The other end of a
// connection sends again.
var Short = hook.Default(func() bool { return false })

// receive takes frames from the device, on the device's goroutine.
func (l *Link) receive(batch []netdev.Frame) {
	d := l.up.Load()
	if d == nil || l.down.Load() {
		return
	}
	if Short.Call() {
		l.RxDropped.Add(uint64(len(batch)))
		return
	}
	t, _ := (*d).(stack.TransportDispatcher)
	for len(batch) > 0 {
		n := 0
		if t != nil {
			n = l.receiveFast(t, batch)
		}
		if n == 0 {
			l.receiveOne(*d, &batch[0])
			n = 1
		}
		batch = batch[n:]
	}
}

func (l *Link) receiveOne(d stack.NetworkDispatcher, f *netdev.Frame) {
	n := f.Len()
	if n < header.EthernetMinimumSize {
		return
	}
	var b buffer.Buffer
	if len(f.Parts) == 1 {
		b = buffer.MakeWithData(f.Parts[0])
	} else {
		v := buffer.NewViewSize(n)
		at := v.AsSlice()
		for _, p := range f.Parts {
			at = at[copy(at, p):]
		}
		b = buffer.MakeWithView(v)
	}
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: b})
	defer p.DecRef()
	eth, ok := p.LinkHeader().Consume(header.EthernetMinimumSize)
	if !ok {
		return
	}
	switch dst := [6]byte(eth); {
	case dst == l.host:
		p.PktType = tcpip.PacketHost
	case dst == [6]byte{255, 255, 255, 255, 255, 255}:
		p.PktType = tcpip.PacketBroadcast
	case dst[0]&1 != 0:
		p.PktType = tcpip.PacketMulticast
	default:
		p.PktType = tcpip.PacketOtherHost
	}
	if l.net.Tapped() {
		l.net.TapIn(l.index, joined(f), p.PktType, f.ChecksumValid)
	}
	if p.PktType == tcpip.PacketOtherHost {
		return // for another station
	}
	proto := tcpip.NetworkProtocolNumber(eth[12])<<8 | tcpip.NetworkProtocolNumber(eth[13])
	if fn := l.dhcp.Load(); fn != nil && proto == header.IPv4ProtocolNumber {
		if udp := dhcpReply(p); udp != nil {
			(*fn)(udp)
			return
		}
	}
	if l.features&netdev.RxChecksum != 0 && !f.ChecksumValid && !f.NeedsChecksum && !checksumsValid(p, proto) {
		return
	}
	if !l.net.Refuses(l.index, proto, p) {
		l.net.Waits(p.Size())
		d.DeliverNetworkPacket(proto, p)
	}
}

// AddressesChanged finds out which address is the fast path's, and whether the interface
// is up.
func (l *Link) AddressesChanged() {
	i := l.net.InterfaceByIndex(l.index)
	l.down.Store(i != nil && !i.Up())
	if !l.down.Load() {
		for _, a := range l.net.Addresses(l.index) {
			if a.Address.Len() == 4 {
				l.setOwn(a)
				return
			}
		}
	}
	l.own4.Store(0)
}

// setOwn tells the fast path the interface's address; 0 turns it off.
func (l *Link) setOwn(a tcpip.AddressWithPrefix) {
	if a.Address.Len() != 4 {
		return
	}
	ip := a.Address.As4()
	own := binary.BigEndian.Uint32(ip[:])
	broadcast := own | uint32(uint64(1)<<(32-a.PrefixLen)-1)
	l.own4.Store(uint64(broadcast)<<32 | uint64(own))
}
