package nucleus

import (
	"math/bits"

	"hardtack/arch/amd64"
)

// HasRandom reports whether the processor has a generator of random numbers.
func HasRandom() bool {
	seed, numbers := randomInstructions()
	return seed || numbers
}

// randomInstructions says whether there are RDSEED and RDRAND.
func randomInstructions() (seed, numbers bool) {
	_, _, ecx, _ := amd64.CPUID(1, 0)
	_, ebx, _, _ := amd64.CPUID(7, 0)
	return ebx>>18&1 != 0, ecx>>30&1 != 0
}

// Entropy fills b with bytes that are hard to guess, as far as the processor has them:
// RDSEED or RDRAND, and the jitter of the clock, which is all where it has neither.
func Entropy(b []byte) {
	seed, numbers := randomInstructions()
	for i := range b {
		if i%8 == 0 {
			v, ok := uint64(0), false
			if seed {
				v, ok = amd64.RDSEED()
			}
			if !ok && numbers {
				v, ok = amd64.RDRAND()
			}
			entropy ^= v
			stirClock(ok)
		}
		b[i] = byte(entropy >> (8 * (i % 8)))
	}
}

// entropy is the last value that Entropy took bytes of.
var entropy uint64

// jitterRounds is how often the clock is read for eight bytes of nothing else.
const jitterRounds = 256

// stirClock mixes the clock in: once beside a better source, else over and over, for
// what a processor takes for a few instructions is not always the same.
func stirClock(better bool) {
	rounds := jitterRounds
	if better {
		rounds = 1
	}
	for range rounds {
		entropy = bits.RotateLeft64((entropy^amd64.TSC())*0x9e3779b97f4a7c15, 23)
	}
}
