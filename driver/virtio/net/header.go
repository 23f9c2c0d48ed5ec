package net

import (
	"encoding/binary"

	"hardtack/kernel/net/netdev"
)

// The header before each frame, struct virtio_net_hdr (section 5.1.6).
//
//	0 flags  1 gso_type  2 hdr_len  4 gso_size  6 csum_start  8 csum_offset  10 num_buffers
const headerSize = 12

const (
	headerNeedsChecksum = 1
	headerDataValid     = 2
	gsoECN              = 0x80
)

var le = binary.LittleEndian

// putHeader describes a frame to the device.
func putHeader(b []byte, f *netdev.Frame) {
	_ = b[headerSize-1]
	le.PutUint64(b, 0)
	le.PutUint32(b[8:], 0)
	if f.NeedsChecksum {
		b[0] = headerNeedsChecksum
		le.PutUint16(b[6:], f.ChecksumStart)
		le.PutUint16(b[8:], f.ChecksumOffset)
	}
	if f.GSO != netdev.GSONone {
		b[1] = byte(f.GSO)
		le.PutUint16(b[2:], f.HeaderLen)
		le.PutUint16(b[4:], f.SegmentSize)
	}
}

// readHeader fills a frame's description from the device's and returns how many
// buffers the frame has.
func readHeader(b []byte, f *netdev.Frame) int {
	_ = b[headerSize-1]
	f.NeedsChecksum = b[0]&headerNeedsChecksum != 0
	f.ChecksumValid = b[0]&headerDataValid != 0
	f.ChecksumStart = le.Uint16(b[6:])
	f.ChecksumOffset = le.Uint16(b[8:])
	f.GSO = netdev.GSO(b[1] &^ gsoECN)
	if f.GSO != netdev.GSOTCPv4 && f.GSO != netdev.GSOTCPv6 {
		f.GSO = netdev.GSONone
	}
	f.HeaderLen = le.Uint16(b[2:])
	f.SegmentSize = le.Uint16(b[4:])
	return int(le.Uint16(b[10:]))
}
