package amd64

import (
	"math/rand/v2"
	"testing"
)

// plainSum is RFC 1071's definition.
func plainSum(b []byte, initial uint16) uint16 {
	sum := uint32(initial)
	for i, c := range b {
		sum += uint32(c) << (8 * (1 - i&1))
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// Every length, at every alignment, with and without AVX2; bytes at random and at the limits.
func TestChecksum(t *testing.T) {
	had := avx2
	defer func() { avx2 = had }()
	long := make([]byte, 3*maxSum+37)
	rng := rand.NewChaCha8([32]byte{1})
	for _, fill := range []func(){
		func() { rng.Read(long) },
		func() { clear(long) },
		func() {
			for i := range long {
				long[i] = 0xff
			}
		},
		func() {
			for i := range long {
				long[i] = byte(i&1) * 0x80
			}
		},
	} {
		fill()
		for n := range 1600 {
			check(t, had, long[n%37:][:n], uint16(n*977))
		}
		for _, n := range []int{maxSum - 1, maxSum, maxSum + 1, 2 * maxSum, len(long) - 1} {
			check(t, had, long[1:][:n], 0xffff)
		}
	}
}

func check(t *testing.T, wide bool, b []byte, initial uint16) {
	t.Helper()
	want := plainSum(b, initial)
	for _, avx2 = range []bool{false, wide} {
		if got := Checksum(b, initial); got != want {
			t.Fatalf("%d bytes, AVX2 %v: %#x instead of %#x", len(b), avx2, got, want)
		}
	}
}

func BenchmarkChecksum(b *testing.B) {
	data := make([]byte, 1448)
	for b.Loop() {
		Checksum(data, 0)
	}
}
