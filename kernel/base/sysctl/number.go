package sysctl

import (
	"math"
	"strconv"

	"hardtack/abi/linux"
)

// kind is how numbers of a file are written.
type kind uint8

const (
	kindInt   kind = iota // proc_dointvec_minmax
	kindUint              // proc_douintvec_minmax: one number
	kindUlong             // proc_doulongvec_minmax
)

// longest is how much of a number is looked at, as Linux's proc_get_long does.
const longest = 21

func space(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' || c == 0xa0 }

func skipSpaces(b []byte) []byte {
	for len(b) > 0 && space(b[0]) {
		b = b[1:]
	}
	return b
}

// number takes a number off the beginning of b: decimal, hexadecimal with 0x, or octal
// with 0. What follows it must be a blank, a tab or a newline.
func number(b []byte) (v uint64, neg bool, rest []byte, ok bool) {
	t := b[:min(len(b), longest)]
	if len(b) > 1 && t[0] == '-' {
		neg, t = true, t[1:]
	}
	if len(t) == 0 || t[0] < '0' || t[0] > '9' {
		return 0, false, nil, false
	}
	base := 10
	switch {
	case len(t) > 2 && t[0] == '0' && t[1]|0x20 == 'x' && digit(t[2]) < 16:
		base, t = 16, t[2:]
	case t[0] == '0':
		base = 8
	}
	n := 0
	for n < len(t) && digit(t[n]) < base {
		n++
	}
	v, err := strconv.ParseUint(string(t[:n]), base, 64)
	if err != nil {
		return 0, false, nil, false
	}
	used := len(b[:min(len(b), longest)]) - len(t) + n
	if used == longest {
		return 0, false, nil, false
	}
	rest = b[used:]
	if len(rest) > 0 && rest[0] != ' ' && rest[0] != '\t' && rest[0] != '\n' {
		return 0, false, nil, false
	}
	return v, neg, rest, true
}

// digit returns the value of a digit, 99 for what is none.
func digit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return 99
}

// parse reads up to len(v) numbers into v and returns how many, and how many bytes of
// b they and the blanks behind them take. Numbers before a wrong one count.
func (k kind) parse(b []byte, v []int64, lo, hi int64) (n, used int, e linux.Errno) {
	size := len(b)
	b = b[:min(size, 4095)]
	size = len(b)
	for n < len(v) && e == 0 {
		if b = skipSpaces(b); len(b) == 0 {
			break
		}
		x, neg, rest, ok := number(b)
		if !ok {
			e = linux.EINVAL
			break
		}
		b = rest
		if k == kindUlong && neg { // Linux goes over it
			n++
			continue
		}
		if v[n], ok = k.fit(x, neg, lo, hi); !ok {
			e = linux.EINVAL
			break
		}
		n++
	}
	if e == 0 {
		b = skipSpaces(b)
	}
	if n == 0 && e == 0 {
		e = linux.EINVAL
	}
	return n, size - len(b), e
}

// fit checks the range of a number.
func (k kind) fit(x uint64, neg bool, lo, hi int64) (int64, bool) {
	switch k {
	case kindUint:
		if neg || x > math.MaxUint32 {
			return 0, false
		}
	case kindUlong: // the bounds are unsigned too
		return int64(x), x >= uint64(lo) && x <= uint64(hi)
	default:
		if x > 1<<31 || !neg && x == 1<<31 {
			return 0, false
		}
		if neg {
			return -int64(x), -int64(x) >= lo && -int64(x) <= hi
		}
	}
	return int64(x), int64(x) >= lo && int64(x) <= hi
}
