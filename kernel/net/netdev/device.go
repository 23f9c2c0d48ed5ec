// Package netdev declares what a network driver supplies to kernel/net/netif, which
// connects it to the TCP/IP stack. It is made of plain types only.
package netdev

// Device is an Ethernet device. Frames begin with the 14-byte Ethernet header
// and carry no FCS.
type Device interface {
	// MAC is the station address; immutable.
	MAC() [6]byte
	// MTU is the largest payload of a frame without segmentation offload; immutable.
	MTU() int
	// Features says what the device does for the stack; immutable.
	Features() Features
	// Transmit sends frames and returns how many of them, from the first on,
	// it took. Their bytes are copied into the device's own buffers before it
	// returns. It may be called by several goroutines at once, rings the
	// doorbell once a call unless frames are held, and never sleeps: a full ring takes fewer frames.
	Transmit(pkts []Frame) int
	// Hold keeps the frames of Transmit back until as many calls of Flush: the
	// device then sees them all at once, for one doorbell. The time between
	// must be short. While the receiver runs, frames are held.
	Hold()
	Flush()
	// SetReceiver names who gets the received frames and starts reception; it
	// is called once. The device calls recv from its interrupt goroutine (one
	// at a time a queue) with as many frames as have come. Frames and bytes
	// are the device's again when recv returns.
	SetReceiver(recv func(batch []Frame))
}

// Carrier is a Device that knows whether there is a link.
type Carrier interface {
	LinkUp() bool
	// OnLink names a function that is called, from the device's interrupt goroutine,
	// after LinkUp has changed.
	OnLink(f func())
}

// Jumbo is a Device whose frames may be longer than its MTU says at first.
type Jumbo interface {
	// MaxMTU is the largest MTU that can be set; immutable.
	MaxMTU() int
}

// Promiscuous is a Device that drops frames for other stations unless it is told not to.
type Promiscuous interface {
	SetPromiscuous(on bool)
}

// Features is a set of offloads.
type Features uint32

// What a device may do.
const (
	// TxChecksum: Frame.NeedsChecksum works on transmit.
	TxChecksum Features = 1 << iota
	// TSO4 and TSO6: Frame.GSO works on transmit with TCP over IPv4 and IPv6.
	// Needs TxChecksum.
	TSO4
	TSO6
	// RxChecksum: received frames may carry ChecksumValid or NeedsChecksum.
	RxChecksum
	// LRO: received frames may be longer than the MTU (several TCP segments
	// merged by the device or never cut by the sender).
	LRO
	// NoARP: the device takes packets to stations without a MAC.
	NoARP
)

// GSO is a kind of segmentation.
type GSO uint8

// Kinds of segmentation; the values are virtio_net_hdr's gso_type.
const (
	GSONone  GSO = 0
	GSOTCPv4 GSO = 1
	GSOTCPv6 GSO = 4
)

// Frame is one Ethernet frame, sent or received, in one or more parts.
type Frame struct {
	// Parts hold the frame's bytes in order. On transmit the first part holds
	// at least all headers.
	Parts [][]byte
	// Hash is equal for the frames of one flow (to pick a transmit queue).
	Hash uint32

	// NeedsChecksum: the 16-bit checksum at ChecksumStart+ChecksumOffset
	// (counted from the frame's first byte, Ethernet header included) holds
	// the sum of the pseudo header only; the device completes it from
	// ChecksumStart to the end. On receive: the data was never on a wire, and
	// the checksum was not computed.
	NeedsChecksum  bool
	ChecksumStart  uint16
	ChecksumOffset uint16
	// ChecksumValid: the device has verified the transport checksum (receive).
	ChecksumValid bool

	// GSO asks the device to cut the frame into segments of SegmentSize bytes
	// of TCP payload behind HeaderLen bytes of headers (Ethernet included).
	GSO         GSO
	HeaderLen   uint16
	SegmentSize uint16
}

// Len returns how many bytes the frame has.
func (f *Frame) Len() int {
	n := 0
	for _, p := range f.Parts {
		n += len(p)
	}
	return n
}
