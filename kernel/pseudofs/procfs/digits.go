package procfs

import "strconv"

// Texts with a line for each mapping or page are long, and are written without fmt.

// appendHex writes v in hexadecimal, with zeros in front up to the width.
func appendHex(b []byte, v uint64, width int) []byte {
	n := 1
	for w := v >> 4; w != 0; w >>= 4 {
		n++
	}
	for ; n < width; n++ {
		b = append(b, '0')
	}
	return strconv.AppendUint(b, v, 16)
}
