package stack

import (
	"encoding/binary"
	"sync"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// A plain packet is one of IPv4 without options that is sent whole to one station. Sending
// it through the layers costs some thousand instructions: a PacketBuffer with its views, and
// at each layer the same route, interface and neighbor. A Path knows them, so that transport
// protocols build the frame in one piece of memory. It is good until something changes that
// it depends on (RouteChanges); then the next packet goes through the layers.

// FrameWriter is a link endpoint that takes frames without a PacketBuffer.
type FrameWriter interface {
	// TakesFrames reports whether it does so now. It does not while somebody wants to
	// see what is sent.
	TakesFrames() bool
	// WriteFrame sends a frame of a flow and reports whether there was room. The frame
	// is the caller's again when it returns; kept stays with the frame's memory.
	WriteFrame(frame []byte, flow uint32, kept *any) bool
	MTU() uint32
}

// OutFrame is a frame to be sent.
type OutFrame struct {
	Bytes []byte
	Hash  uint32 // equal for the frames of one flow

	room []byte
	kept any // the link endpoint's
}

var outFrames = sync.Pool{New: func() any { return new(OutFrame) }}

// PathHeaders is the room for a frame's link and IP header.
const PathHeaders = header.EthernetMinimumSize + header.IPv4MinimumSize

// NewOutFrame returns a frame of n bytes, which are anything.
func NewOutFrame(n int) *OutFrame {
	f := outFrames.Get().(*OutFrame)
	if cap(f.room) < n {
		f.room = make([]byte, max(n, 1536))
	}
	f.Bytes = f.room[:n]
	return f
}

// Release gives the frame's memory back.
func (f *OutFrame) Release() { outFrames.Put(f) }

// A Path is the way of plain packets along a route. Immutable.
type Path struct {
	changes uint64
	nic     *nic
	network plainNetwork
	out     FrameWriter
	mtu     uint32            // of the route, with the IP header; 0 for the link's
	head    [PathHeaders]byte // without what differs between packets
	sum     uint32            // of the constant parts of the IP header
	pseudo  uint32            // of the addresses, for the transport layer's checksum
	Stats   *tcpip.Stats
}

// plainNetwork is the IP layer's part.
type plainNetwork interface {
	NextID() uint16
	CountSent()
}

// Path returns the way of plain packets along the route, or nil if there is none now.
func (r *Route) Path() *Path {
	if p := r.path.Load(); p.Valid() {
		return p
	}
	p := r.findPath()
	if p != nil {
		r.path.Store(p)
	}
	return p
}

// Valid reports whether packets may take the path.
func (p *Path) Valid() bool {
	return p != nil && p.changes == routeChanges.Load() && p.out.TakesFrames()
}

func (r *Route) findPath() *Path {
	changes := routeChanges.Load() // before anything is looked at
	if r.NetProto() != header.IPv4ProtocolNumber || r.Loop() != PacketOut || r.outgoingNIC.deliverLinkPackets ||
		!r.RequiresTXTransportChecksum() || r.outgoingNIC.GetExperimentIPOptionEnabled() ||
		header.IsV4MulticastAddress(r.RemoteAddress()) || r.IsOutboundBroadcast() || !r.isValidForOutgoing() {
		return nil
	}
	out, ok := r.outgoingNIC.NetworkLinkEndpoint.(FrameWriter)
	if !ok || !out.TakesFrames() {
		return nil
	}
	network, ok := r.outgoingNIC.getNetworkEndpoint(header.IPv4ProtocolNumber).(plainNetwork)
	if !ok {
		return nil
	}
	r.mu.RLock()
	to := r.remoteLinkAddress
	entry := r.neighborEntry
	r.mu.RUnlock()
	if len(to) == 0 && entry == nil && r.linkRes != nil {
		entry = r.linkRes.neigh.known(r.nextHop())
	}
	if len(to) == 0 && entry != nil {
		to, _ = entry.getRemoteLinkAddress()
	}
	from := r.LocalLinkAddress()
	if len(to) != header.EthernetAddressSize || len(from) != header.EthernetAddressSize {
		return nil
	}
	p := &Path{changes: changes, nic: r.outgoingNIC, network: network, out: out, Stats: &r.outgoingNIC.stack.stats}
	if r.mtu != 0 {
		p.mtu = r.mtu + header.IPv4MinimumSize
	}
	be := binary.BigEndian
	copy(p.head[:], to)
	copy(p.head[6:], from)
	p.head[12] = 0x08
	h := p.head[header.EthernetMinimumSize:]
	h[0] = 0x45
	src, dst := r.LocalAddress().As4(), r.RemoteAddress().As4()
	copy(h[12:], src[:])
	copy(h[16:], dst[:])
	for i := 12; i < header.IPv4MinimumSize; i += 2 {
		p.pseudo += uint32(be.Uint16(h[i:]))
	}
	p.sum = p.pseudo + 0x4500
	return p
}

// StatsOf returns the stack's counters; Stats copies the table of them.
func (s *Stack) StatsOf() *tcpip.Stats { return &s.stats }

// known returns the entry of an address if there is one.
func (n *neighborCache) known(addr tcpip.Address) *neighborEntry {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.mu.cache[addr]
}

// MTU is the largest packet with its IP header.
func (p *Path) MTU() int {
	mtu := p.out.MTU()
	if p.mtu != 0 {
		mtu = min(mtu, p.mtu)
	}
	return int(mtu)
}

// Pseudo is the sum of the pseudo header of a packet with n bytes behind its IP header.
func (p *Path) Pseudo(protocol tcpip.TransportProtocolNumber, n int) uint16 {
	return fold(p.pseudo + uint32(protocol) + uint32(n))
}

func fold(sum uint32) uint16 {
	sum = sum>>16 + sum&0xffff
	return uint16(sum>>16 + sum)
}

// Send sends a frame, of which everything behind the IP header is there. It reports whether
// there was room.
func (p *Path) Send(f *OutFrame, protocol tcpip.TransportProtocolNumber, tos, ttl uint8, df bool) bool {
	b := f.Bytes
	*(*[PathHeaders]byte)(b) = p.head
	h := b[header.EthernetMinimumSize:PathHeaders]
	size := uint32(len(b) - header.EthernetMinimumSize)
	var id, flags uint32
	if df {
		flags = 0x4000
	} else {
		id = uint32(p.network.NextID())
	}
	be := binary.BigEndian
	h[1] = tos
	be.PutUint16(h[2:], uint16(size))
	be.PutUint32(h[4:], id<<16|flags)
	h[8], h[9] = ttl, uint8(protocol)
	be.PutUint16(h[10:], ^fold(p.sum+uint32(tos)+size+id+flags+uint32(ttl)<<8+uint32(protocol)))
	if !p.out.WriteFrame(b, f.Hash, &f.kept) {
		p.nic.stats.txPacketsDroppedNoBufferSpace.Increment()
		return false
	}
	p.nic.stats.tx.packets.Increment()
	p.nic.stats.tx.bytes.IncrementBy(uint64(len(b)))
	p.network.CountSent()
	return true
}

// DataReader reads a packet's data without consuming it.
type DataReader struct {
	view *buffer.View
	at   int
}

// ReadData returns a reader of the packet's data.
func (pk *PacketBuffer) ReadData() DataReader {
	v := pk.buf.AsViewList()
	return DataReader{v.Front(), pk.dataOffset()}
}

// Read fills b, as far as there is data, and returns how many bytes that were.
func (r *DataReader) Read(b []byte) (n int) {
	for n < len(b) && r.view != nil {
		v := r.view.AsSlice()
		if r.at >= len(v) {
			r.at -= len(v)
			r.view = r.view.Next()
			continue
		}
		m := copy(b[n:], v[r.at:])
		n += m
		r.at += m
	}
	return n
}
