package trace

import "unicode/utf8"

// room is the length of a line; what is longer is cut. ending is kept free for the result.
const (
	room   = 1024
	ending = 160
)

// line is the text of one call, on the stack of the thread's goroutine.
type line struct {
	b [room]byte
	n int
}

func (l *line) byte(c byte) {
	if l.n < room {
		l.b[l.n] = c
		l.n++
	}
}

func (l *line) text(s string) { l.n += copy(l.b[l.n:], s) }

// full reports whether no more arguments fit.
func (l *line) full() bool { return l.n > room-ending }

// number writes v in a base up to 16 with at least so many digits.
func (l *line) number(v uint64, base uint64, digits int) {
	var d [22]byte
	i := len(d)
	for v != 0 || len(d)-i < digits {
		i--
		d[i] = "0123456789abcdef"[v%base]
		v /= base
	}
	l.n += copy(l.b[l.n:], d[i:])
}

func (l *line) unsigned(v uint64) { l.number(v, 10, 1) }

func (l *line) signed(v int64) {
	if v < 0 {
		l.byte('-')
		v = -v
	}
	l.unsigned(uint64(v))
}

func (l *line) hex(v uint64) {
	if v == 0 {
		l.byte('0')
		return
	}
	l.text("0x")
	l.number(v, 16, 1)
}

// octal writes a mode as strace does: at least three digits, the first a zero.
func (l *line) octal(v uint64) {
	l.byte('0')
	l.number(v, 8, 2)
}

// pointer writes an address.
func (l *line) pointer(v uint64) {
	if v == 0 {
		l.text("NULL")
		return
	}
	l.hex(v)
}

// fraction writes a number of units as seconds.
func (l *line) fraction(v uint64, unit uint64, digits int) {
	l.unsigned(v / unit)
	l.byte('.')
	l.number(v%unit, 10, digits)
}

// quoted writes bytes as a string of C; cut says that there are more.
func (l *line) quoted(b []byte, cut bool) {
	l.byte('"')
	for i, c := range b {
		next := byte(0)
		if i+1 < len(b) {
			next = b[i+1]
		}
		l.char(c, next)
	}
	l.byte('"')
	if cut {
		l.text("...")
	}
}

// char writes one byte of a string; next is the one behind it.
func (l *line) char(c, next byte) {
	switch {
	case c == '"' || c == '\\':
		l.byte('\\')
		l.byte(c)
	case c == '\n':
		l.text(`\n`)
	case c == '\t':
		l.text(`\t`)
	case c == '\r':
		l.text(`\r`)
	case c == '\f':
		l.text(`\f`)
	case c == '\v':
		l.text(`\v`)
	case c >= ' ' && c < utf8.RuneSelf-1:
		l.byte(c)
	default:
		l.byte('\\')
		digits := 1
		if next >= '0' && next <= '9' {
			digits = 3 // or the next character would belong to the number
		}
		l.number(uint64(c), 8, digits)
	}
}

// flags writes the names of bits, and what has none in hexadecimal.
func (l *line) flags(v uint64, names []name) {
	first := true
	or := func() {
		if !first {
			l.byte('|')
		}
		first = false
	}
	for _, n := range names {
		if n.value == 0 && v == 0 || n.value != 0 && v&n.value == n.value {
			or()
			l.text(n.text)
			if v &^= n.value; n.value == 0 {
				return
			}
		}
	}
	if v != 0 || first {
		or()
		l.hex(v)
	}
}

// choice writes the name of a value.
func (l *line) choice(v uint64, names []name) {
	for _, n := range names {
		if n.value == v {
			l.text(n.text)
			return
		}
	}
	l.hex(v)
}
