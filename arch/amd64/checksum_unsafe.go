package amd64

import (
	"math/bits"
	"unsafe"
)

// sumWords sums 16-bit words in the processor's order, with carries at the top added at the
// bottom; an odd byte is the low half of a word. wide: AVX2 is there, and n at least 32 and at
// most maxSum.
//
//go:noescape
func sumWords(p *byte, n int, wide bool) uint64

// maxSum is how many bytes can be summed in signed lanes of 32 bits.
const maxSum = 64 << 10

var avx2 = hasAVX2()

func hasAVX2() bool {
	if top, _, _, _ := CPUID(0, 0); top < 7 {
		return false
	}
	_, ebx, _, _ := CPUID(7, 0)
	return ebx>>5&1 != 0
}

// Checksum adds bytes to a checksum of the Internet (RFC 1071), as words of which the first
// byte is the high one. initial is the sum of an even number of bytes.
func Checksum(b []byte, initial uint16) uint16 {
	sum := uint64(bits.ReverseBytes16(initial))
	for len(b) > maxSum {
		sum += fold(sumWords(unsafe.SliceData(b), maxSum, avx2))
		b = b[maxSum:]
	}
	var carry uint64
	sum, carry = bits.Add64(sum, sumWords(unsafe.SliceData(b), len(b), avx2 && len(b) >= 64), 0)
	return bits.ReverseBytes16(uint16(fold(sum + carry)))
}

// fold makes a sum of words one word, which is 0 only if all words were.
func fold(sum uint64) uint64 {
	sum = sum>>32 + sum&0xffff_ffff
	sum = sum>>32 + sum&0xffff_ffff
	sum = sum>>16 + sum&0xffff
	return sum>>16 + sum&0xffff
}
