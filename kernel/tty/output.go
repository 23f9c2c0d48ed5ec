package tty

import "hardtack/abi/linux"

const (
	// outputSize is what programs may write ahead of the driver.
	outputSize = 8192
	// echoSize is how much echo waits for room or for VSTART; more is lost.
	echoSize  = 4096
	echoBatch = 256
)

// output is what goes to the driver.
type output struct {
	buf  []byte // buf[off:] is not taken yet
	off  int
	echo []byte // echoes that must wait

	column, canonColumn     int  // where the cursor is, and was when the line began
	shownColumn, shownCanon int  // the same without the echoes that wait
	stopped                 bool // by VSTOP or TCOOFF
	byProgram               bool // by TCOOFF: VSTART does not help
}

func (o *output) len() int { return len(o.buf) - o.off }

func (o *output) clear() { o.buf, o.off = o.buf[:0], 0 }

// take moves up to len(p) bytes to the driver.
func (o *output) take(p []byte) int {
	n := copy(p, o.buf[o.off:])
	if o.off += n; o.off == len(o.buf) {
		o.buf, o.off = o.buf[:0], 0
	} else if o.off >= outputSize {
		o.buf = o.buf[:copy(o.buf, o.buf[o.off:])]
		o.off = 0
	}
	return n
}

func (o *output) back() {
	if o.column > 0 {
		o.column--
	}
}

// room is how much a program may write now.
func (t *TTY) room() int {
	if t.out.stopped {
		return 0
	}
	return max(outputSize-t.out.len(), 0)
}

// output takes what programs write; it returns how much there was room for.
func (t *TTY) output(p []byte) int {
	t.releaseEcho()
	room, o := t.room(), &t.out
	if !t.oflag(linux.OPOST) {
		n := min(len(p), room)
		o.buf = append(o.buf, p[:n]...)
		t.after.kick = t.after.kick || n > 0
		return n
	}
	for i := 0; i < len(p); {
		if n, columns := t.plain(p[i:min(len(p), i+room)]); n > 0 {
			o.buf = append(o.buf, p[i:i+n]...)
			o.column += columns
			i, room = i+n, room-n
			t.after.kick = true
			continue
		}
		before := len(o.buf)
		if !t.cook(p[i], room, &o.buf) {
			return i
		}
		i, room = i+1, room-(len(o.buf)-before)
		t.after.kick = true
	}
	return len(p)
}

// plain returns how many bytes at the front go out as they are, and how many
// columns they take.
func (t *TTY) plain(p []byte) (n, columns int) {
	if t.oflag(linux.OLCUC) {
		return 0, 0
	}
	utf8 := t.iflag(linux.IUTF8)
	for i, c := range p {
		switch {
		case c >= 0x20 && c != 0x7f:
			if !utf8 || c&0xc0 != 0x80 {
				columns++
			}
		case c == '\n' || c == '\r' || c == '\t' || c == '\b':
			return i, columns
		}
	}
	return len(p), columns
}

// cook appends what a character becomes; false if it exceeds the room.
func (t *TTY) cook(c byte, room int, to *[]byte) bool {
	o := &t.out
	if room < 1 {
		return false
	}
	switch c {
	case '\n':
		if t.oflag(linux.ONLRET) {
			o.column = 0
		}
		if t.oflag(linux.ONLCR) {
			if room < 2 {
				return false
			}
			o.column, o.canonColumn = 0, 0
			*to = append(*to, '\r', '\n')
			return true
		}
		o.canonColumn = o.column
	case '\r':
		if t.oflag(linux.ONOCR) && o.column == 0 {
			return true
		}
		if t.oflag(linux.OCRNL) {
			c = '\n'
			if t.oflag(linux.ONLRET) {
				o.column, o.canonColumn = 0, 0
			}
		} else {
			o.column, o.canonColumn = 0, 0
		}
	case '\t':
		n := 8 - o.column&7
		if t.term.Oflag&linux.TABDLY == linux.XTABS {
			if room < n {
				return false
			}
			o.column += n
			*to = append(*to, "        "[:n]...)
			return true
		}
		o.column += n
	case '\b':
		o.back()
	default:
		if !isControl(c) {
			if t.oflag(linux.OLCUC) && isLower(c) {
				c -= 'a' - 'A'
			}
			if !t.continues(c) {
				o.column++
			}
		}
	}
	*to = append(*to, c)
	return true
}

// echoTarget is where echoes go: they wait until what came in at once was
// looked at whole, or 256 bytes are together; nil when too much waits.
func (t *TTY) echoTarget() *[]byte {
	o := &t.out
	if len(o.echo) >= echoBatch {
		t.releaseEcho()
	}
	if len(o.echo) == 0 {
		o.shownColumn, o.shownCanon = o.column, o.canonColumn
	}
	if len(o.echo) >= echoSize {
		return nil
	}
	return &o.echo
}

// dropEcho forgets echoes that wait, and where they would have left the cursor.
func (o *output) dropEcho() {
	if len(o.echo) > 0 {
		o.echo = o.echo[:0]
		o.column, o.canonColumn = o.shownColumn, o.shownCanon
	}
}

// releaseEcho lets waiting echoes go when there is room for all.
func (t *TTY) releaseEcho() {
	if o := &t.out; len(o.echo) > 0 && t.room() >= len(o.echo) {
		o.buf = append(o.buf, o.echo...)
		o.echo = o.echo[:0]
		t.after.kick = true
	}
}

// echoByte echoes a byte as it is.
func (t *TTY) echoByte(c byte) {
	if to := t.echoTarget(); to != nil {
		*to = append(*to, c)
	}
}

// echoRaw echoes a character as if a program had written it.
func (t *TTY) echoRaw(c byte) {
	to := t.echoTarget()
	if to == nil {
		return
	}
	switch {
	case c == 0xff: // N_TTY's own mark in its echo buffer: never processed
		*to = append(*to, c)
		t.out.column++
	case t.oflag(linux.OPOST):
		t.cook(c, echoSize, to)
	default:
		*to = append(*to, c)
	}
}

// echo echoes an input character: control characters as ^X with ECHOCTL.
func (t *TTY) echo(c byte) {
	if t.lflag(linux.ECHOCTL) && isControl(c) && c != '\t' {
		t.echoByte('^')
		t.echoByte(c ^ 0x40)
		t.out.column += 2
		return
	}
	t.echoRaw(c)
}
