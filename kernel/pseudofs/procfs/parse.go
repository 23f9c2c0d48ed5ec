package procfs

import (
	"strconv"

	"hardtack/abi/linux"
)

// parseUint is Linux's kstrtouint: digits, a plus sign at most before them, a newline
// at most behind. Base 0 knows 0x and a leading 0.
func parseUint(b []byte, base, bits int) (uint64, linux.Errno) {
	s := cstring(b)
	if n := len(s); n > 0 && s[n-1] == '\n' {
		s = s[:n-1]
	}
	if len(s) > 0 && s[0] == '+' {
		s = s[1:]
	}
	if base == 0 {
		s, base = radix(s)
	}
	n, err := strconv.ParseUint(s, base, bits)
	switch {
	case err == nil:
		return n, 0
	case err.(*strconv.NumError).Err == strconv.ErrRange:
		return 0, linux.ERANGE
	}
	return 0, linux.EINVAL
}

// parseInt is kstrtoint.
func parseInt(b []byte, base, bits int) (int64, linux.Errno) {
	neg := len(b) > 0 && b[0] == '-'
	if neg {
		b = b[1:]
	}
	if neg && len(b) > 0 && b[0] == '+' {
		return 0, linux.EINVAL
	}
	n, e := parseUint(b, base, 64)
	limit := uint64(1) << (bits - 1)
	switch {
	case e != 0:
		return 0, e
	case neg && n <= limit:
		return int64(-n), 0
	case !neg && n < limit:
		return int64(n), 0
	}
	return 0, linux.ERANGE
}

// radix takes the prefix of a hexadecimal or octal number off.
func radix(s string) (string, int) {
	switch {
	case len(s) > 2 && s[0] == '0' && s[1]|0x20 == 'x':
		return s[2:], 16
	case len(s) > 1 && s[0] == '0':
		return s[1:], 8
	}
	return s, 10
}

// cstring is b up to a zero byte.
func cstring(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
