package tcp

import (
	"encoding/binary"
	"math/bits"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// The first sequence number and the offset of the timestamps of a connection are hashes of
// its addresses with a secret (RFC 6528, RFC 7323). SHA-256 took 7,000 instructions for the
// two. SipHash, which Linux uses, is made for short inputs with a secret.

// secretHash is SipHash-2-4 of two addresses and two ports.
func secretHash(secret [16]byte, a, b tcpip.Address, ports uint32) uint64 {
	var in [48]byte
	n := copy(in[:], a.AsSlice())
	n += copy(in[n:], b.AsSlice())
	binary.LittleEndian.PutUint32(in[n:], ports)
	return sipHash(secret, in[:n+4])
}

func sipHash(secret [16]byte, in []byte) uint64 {
	le := binary.LittleEndian
	k0, k1 := le.Uint64(secret[:]), le.Uint64(secret[8:])
	v0, v1, v2, v3 := k0^0x736f6d6570736575, k1^0x646f72616e646f6d, k0^0x6c7967656e657261, k1^0x7465646279746573
	round := func() {
		v0 += v1
		v1 = bits.RotateLeft64(v1, 13) ^ v0
		v0 = bits.RotateLeft64(v0, 32)
		v2 += v3
		v3 = bits.RotateLeft64(v3, 16) ^ v2
		v0 += v3
		v3 = bits.RotateLeft64(v3, 21) ^ v0
		v2 += v1
		v1 = bits.RotateLeft64(v1, 17) ^ v2
		v2 = bits.RotateLeft64(v2, 32)
	}
	last := uint64(len(in)) << 56
	for ; len(in) >= 8; in = in[8:] {
		m := le.Uint64(in)
		v3 ^= m
		round()
		round()
		v0 ^= m
	}
	for i, b := range in {
		last |= uint64(b) << (8 * i)
	}
	v3 ^= last
	round()
	round()
	v0 ^= last
	v2 ^= 0xff
	for range 4 {
		round()
	}
	return v0 ^ v1 ^ v2 ^ v3
}
