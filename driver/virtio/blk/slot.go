package blk

import "encoding/binary"

// putHeader writes a request's first part: type, reserved, sector.
func putHeader(b []byte, kind uint32, sector uint64) {
	binary.LittleEndian.PutUint64(b, uint64(kind))
	binary.LittleEndian.PutUint64(b[8:], sector)
}

// putRange writes the range of a discard or of zeroes.
func putRange(b []byte, sector uint64, sectors, flags uint32) {
	binary.LittleEndian.PutUint64(b, sector)
	binary.LittleEndian.PutUint64(b[8:], uint64(sectors)|uint64(flags)<<32)
}

// loadStatus reads the byte that the device has written; the used index, read
// before, orders the two.
func loadStatus(b []byte) uint8 { return b[0] }
