package ext4

import "math/bits"

// The hashes that order large directories. The disk says whether names are signed or
// unsigned bytes, which differed between the processors that Linux first ran on.
const (
	hashLegacy = iota
	hashHalfMD4
	hashTEA
	hashUnsigned // is added to one of them
)

// hashEnd is never a name's hash: it stands for the end of a directory.
const hashEnd = 0x7fffffff << 1

// hashName returns a name's hash, an even number, and the minor hash; false for
// an unknown version.
func hashName[T string | []byte](s *super, version uint8, name T) (major, minor uint32, ok bool) {
	var room [maxName]byte
	return s.hash(version, room[:copy(room[:], name)])
}

func (s *super) hash(version uint8, name []byte) (major, minor uint32, ok bool) {
	if version <= hashTEA && s.hashUnsigned {
		version += hashUnsigned
	}
	signed := version < hashUnsigned
	buf := [4]uint32{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}
	if s.hashSeed != [4]uint32{} {
		buf = s.hashSeed
	}
	switch version % hashUnsigned {
	case hashLegacy:
		major = legacyHash(name, signed)
	case hashHalfMD4:
		var in [8]uint32
		for p := name; len(p) > 0; p = p[min(len(p), 32):] {
			packName(in[:], p, signed)
			halfMD4(&buf, &in)
		}
		major, minor = buf[1], buf[2]
	case hashTEA:
		var in [4]uint32
		for p := name; len(p) > 0; p = p[min(len(p), 16):] {
			packName(in[:], p, signed)
			tea(&buf, &in)
		}
		major, minor = buf[0], buf[1]
	}
	if major &^= 1; major == hashEnd {
		major = hashEnd - 2
	}
	return major, minor, version < 2*hashUnsigned
}

func char(c byte, signed bool) uint32 {
	if signed {
		return uint32(int32(int8(c)))
	}
	return uint32(c)
}

func legacyHash(name []byte, signed bool) uint32 {
	h0, h1 := uint32(0x12a3fe2d), uint32(0x37abe8f9)
	for _, c := range name {
		h := h1 + (h0 ^ char(c, signed)*7152373)
		if h&0x80000000 != 0 {
			h -= 0x7fffffff
		}
		h0, h1 = h, h0
	}
	return h0 << 1
}

// packName packs the beginning of a name into words, padded with its length.
func packName(out []uint32, name []byte, signed bool) {
	pad := uint32(len(name)) | uint32(len(name))<<8
	pad |= pad << 16
	name = name[:min(len(name), 4*len(out))]
	at := 0
	for ; len(name) >= 4 && at < len(out); at++ {
		v := be.Uint32(name)
		if signed && v&0x80808080 != 0 {
			v = 0
			for _, c := range name[:4] {
				v = char(c, true) + v<<8
			}
		}
		out[at] = v
		name = name[4:]
	}
	for v := pad; at < len(out); at++ {
		for _, c := range name { // three at most
			v = char(c, signed) + v<<8
		}
		out[at] = v
		name, v = nil, pad
	}
}

// halfMD4 is the reduced MD4 of Linux's directories: three rounds of eight steps, each
// round with the words in another order.
func halfMD4(buf *[4]uint32, in *[8]uint32) {
	const k2, k3 = 0x5a827999, 0x6ed9eba1
	a, b, c, d := buf[0], buf[1], buf[2], buf[3]
	for i := 0; i < 8; i += 4 {
		a = bits.RotateLeft32(a+(d^b&(c^d))+in[i], 3)
		d = bits.RotateLeft32(d+(c^a&(b^c))+in[i+1], 7)
		c = bits.RotateLeft32(c+(b^d&(a^b))+in[i+2], 11)
		b = bits.RotateLeft32(b+(a^c&(d^a))+in[i+3], 19)
	}
	for i := 1; i >= 0; i-- { // 1 3 5 7, 0 2 4 6
		a = bits.RotateLeft32(a+(b&c+(b^c)&d)+in[i]+k2, 3)
		d = bits.RotateLeft32(d+(a&b+(a^b)&c)+in[i+2]+k2, 5)
		c = bits.RotateLeft32(c+(d&a+(d^a)&b)+in[i+4]+k2, 9)
		b = bits.RotateLeft32(b+(c&d+(c^d)&a)+in[i+6]+k2, 13)
	}
	for i := 3; i > 0; i -= 2 { // 3 7 2 6, 1 5 0 4
		a = bits.RotateLeft32(a+(b^c^d)+in[i]+k3, 3)
		d = bits.RotateLeft32(d+(a^b^c)+in[i+4]+k3, 9)
		c = bits.RotateLeft32(c+(d^a^b)+in[i-1]+k3, 11)
		b = bits.RotateLeft32(b+(c^d^a)+in[i+3]+k3, 15)
	}
	buf[0] += a
	buf[1] += b
	buf[2] += c
	buf[3] += d
}

func tea(buf *[4]uint32, in *[4]uint32) {
	b0, b1, sum := buf[0], buf[1], uint32(0)
	for range 16 {
		sum += 0x9e3779b9
		b0 += (b1<<4 + in[0]) ^ (b1 + sum) ^ (b1>>5 + in[1])
		b1 += (b0<<4 + in[2]) ^ (b0 + sum) ^ (b0>>5 + in[3])
	}
	buf[0] += b0
	buf[1] += b1
}
