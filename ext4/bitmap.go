package ext4

import "math/bits"

// Bits of a bitmap, whose length is a multiple of 8 bytes.

func bit(b []byte, i uint32) bool { return b[i>>3]>>(i&7)&1 != 0 }
func setBit(b []byte, i uint32)   { b[i>>3] |= 1 << (i & 7) }
func clearBit(b []byte, i uint32) { b[i>>3] &^= 1 << (i & 7) }

// nextZero returns the first clear bit in from … to-1, or to if there is none.
func nextZero(b []byte, from, to uint32) uint32 {
	for from < to {
		at := from &^ 63
		if w := ^le.Uint64(b[at>>3:]) >> (from & 63); w != 0 {
			return min(from+uint32(bits.TrailingZeros64(w)), to)
		}
		from = at + 64
	}
	return to
}

// nextSet returns the first set bit in from … to-1, or to if there is none.
func nextSet(b []byte, from, to uint32) uint32 {
	for from < to {
		at := from &^ 63
		if w := le.Uint64(b[at>>3:]) >> (from & 63); w != 0 {
			return min(from+uint32(bits.TrailingZeros64(w)), to)
		}
		from = at + 64
	}
	return to
}

// word returns the part of the bits from … from+n-1 that is in from's word: the word's
// place in the bitmap, a mask, and the number of bits.
func word(from, n uint32) (at uint32, mask uint64, count uint32) {
	count = min(64-from&63, n)
	return from &^ 63 >> 3, ^uint64(0) >> (64 - count) << (from & 63), count
}

func setBits(b []byte, from, n uint32) {
	for n > 0 {
		at, mask, c := word(from, n)
		le.PutUint64(b[at:], le.Uint64(b[at:])|mask)
		from, n = from+c, n-c
	}
}

func clearBits(b []byte, from, n uint32) {
	for n > 0 {
		at, mask, c := word(from, n)
		le.PutUint64(b[at:], le.Uint64(b[at:])&^mask)
		from, n = from+c, n-c
	}
}
