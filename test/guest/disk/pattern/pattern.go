// Package pattern says what program disk writes: for the program and for the
// host that compares.
package pattern

import "encoding/binary"

// Size is a block's.
const Size = 4096

// Block is what block n holds: numbers that occur in no other block.
func Block(n int) []byte {
	b := make([]byte, Size)
	x := uint64(n)<<32 | 0x9e3779b9
	for i := 0; i < Size; i += 8 {
		// SplitMix64.
		x += 0x9e3779b97f4a7c15
		z := x
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		binary.LittleEndian.PutUint64(b[i:], z^z>>31)
	}
	return b
}
