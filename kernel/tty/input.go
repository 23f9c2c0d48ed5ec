package tty

import (
	"hardtack/abi/linux"
)

// bufSize is the longest line, with its end.
const bufSize = 4096

// backlogSize is what the driver may bring before anything is read.
const backlogSize = 8192

// input is the buffer that programs read from: a ring in which positions only
// grow; tail ≤ canon ≤ head ≤ tail + bufSize. In canonical mode the bytes up to
// canon are finished lines, of which each ends in a marked byte; a marked NUL
// is an end of file and not read. What follows canon is the line being edited.
type input struct {
	buf               [bufSize]byte
	mark              [bufSize / 64]uint64
	head, canon, tail uint64

	backlog []byte // received and not yet looked at
	literal bool   // the next character is taken as it is (VLNEXT)
	erasing bool   // an ECHOPRT erasure is being shown
}

func (in *input) at(pos uint64) byte { return in.buf[pos%bufSize] }

func (in *input) marked(pos uint64) bool {
	i := pos % bufSize
	return in.mark[i/64]>>(i%64)&1 != 0
}

func (in *input) setMark(pos uint64) { i := pos % bufSize; in.mark[i/64] |= 1 << (i % 64) }

func (in *input) clearMark(pos uint64) { i := pos % bufSize; in.mark[i/64] &^= 1 << (i % 64) }

// put appends a byte; a full ring loses it.
func (in *input) put(c byte) {
	if in.head-in.tail < bufSize {
		in.buf[in.head%bufSize] = c
		in.head++
	}
}

// reset empties the buffer; a VLNEXT before it still counts, as on Linux.
func (in *input) reset() {
	in.head, in.canon, in.tail = 0, 0, 0
	in.mark = [bufSize / 64]uint64{}
	in.erasing = false
}

// available reports whether a read finds something; with poll, VMIN counts.
func (t *TTY) available(poll bool) bool {
	if t.canonical() {
		return t.in.canon != t.in.tail
	}
	n := uint64(1)
	if vmin := t.term.Cc[linux.VMIN]; poll && t.term.Cc[linux.VTIME] == 0 && vmin != 0 {
		n = uint64(vmin)
	}
	return t.in.head-t.in.tail >= n
}

func (t *TTY) canonical() bool { return t.lflag(linux.ICANON) && !t.lflag(linux.EXTPROC) }

// pump moves the backlog through the line discipline as far as there is room.
// A line without end is let through without limit, so that it can be edited;
// what exceeds the buffer replaces its last character.
func (t *TTY) pump() {
	in := &t.in
	b := in.backlog
	for len(b) > 0 {
		room := bufSize - int(in.head-in.tail)
		if t.iflag(linux.PARMRK) {
			room = (room + 2) / 3
		}
		if room--; room <= 0 {
			if !t.lflag(linux.ICANON) || in.canon != in.tail {
				break
			}
			if room < 0 {
				in.head--
			}
		}
		t.receive(b[0])
		b = b[1:]
	}
	if len(b) < len(in.backlog) {
		in.backlog = in.backlog[:copy(in.backlog, b)]
		t.releaseEcho()
		if !t.lflag(linux.ICANON) && in.head != in.tail {
			t.after.events |= readable
		}
		t.after.kick = true // echoes, and room for the master to write
	}
}

// receive takes one character from the driver.
func (t *TTY) receive(c byte) {
	literal := t.in.literal
	t.in.literal = false
	if t.iflag(linux.ISTRIP) {
		c &= 0x7f
	}
	if t.iflag(linux.IUCLC) && t.lflag(linux.IEXTEN) && isUpper(c) {
		c += 'a' - 'A'
	}
	switch {
	case literal:
		t.ordinary(c)
	case t.lflag(linux.EXTPROC):
		t.in.put(c)
	case t.special(c):
	default:
		t.ordinary(c)
	}
}

// ordinary echoes a character and puts it into the buffer.
func (t *TTY) ordinary(c byte) {
	if t.out.stopped && t.iflag(linux.IXON) && t.iflag(linux.IXANY) {
		t.start()
	}
	t.echoInput(c, false)
	t.store(c)
}

func (t *TTY) store(c byte) {
	if c == 0xff && t.iflag(linux.PARMRK) {
		t.in.put(c)
	}
	t.in.put(c)
}

// echoInput shows a character that goes into the buffer.
func (t *TTY) echoInput(c byte, rawNewline bool) {
	if !t.lflag(linux.ECHO) {
		return
	}
	t.finishErasing()
	if rawNewline && c == '\n' {
		t.echoRaw('\n')
		return
	}
	if t.in.canon == t.in.head {
		t.out.canonColumn = t.out.column
	}
	t.echo(c)
}

// is reports whether c is the control character i, which NUL never is.
func (t *TTY) is(c byte, i int) bool { return c != 0 && c == t.term.Cc[i] }

// special handles a character that means something in the present mode; false
// leaves it to ordinary.
func (t *TTY) special(c byte) bool {
	if t.iflag(linux.IXON) {
		switch {
		case t.is(c, linux.VSTART):
			t.start()
			t.releaseEcho()
			return true
		case t.is(c, linux.VSTOP):
			t.stop()
			return true
		}
	}
	if t.lflag(linux.ISIG) {
		switch {
		case t.is(c, linux.VINTR):
			t.signal(linux.SIGINT, c)
			return true
		case t.is(c, linux.VQUIT):
			t.signal(linux.SIGQUIT, c)
			return true
		case t.is(c, linux.VSUSP):
			t.signal(linux.SIGTSTP, c)
			return true
		}
	}
	switch {
	case c == '\r' && t.iflag(linux.IGNCR):
		return true
	case c == '\r' && t.iflag(linux.ICRNL):
		c = '\n'
	case c == '\n' && t.iflag(linux.INLCR):
		c = '\r'
	case !t.lflag(linux.ICANON):
		return false
	}
	if t.out.stopped && t.iflag(linux.IXON) && t.iflag(linux.IXANY) {
		t.start()
	}
	if t.lflag(linux.ICANON) && t.edit(c) {
		return true
	}
	t.echoInput(c, true)
	t.store(c)
	return true
}

// signal is what VINTR, VQUIT and VSUSP do.
func (t *TTY) signal(sig linux.Signal, c byte) {
	t.after.signals |= sig.Set()
	if !t.lflag(linux.NOFLSH) {
		t.out.dropEcho()
		t.clearOutput()
		t.in.reset() // but not the backlog: pump is walking through it
		t.after.events |= writable
		t.driver.packet(t, linux.TIOCPKT_FLUSHREAD|linux.TIOCPKT_FLUSHWRITE)
	}
	if t.iflag(linux.IXON) {
		t.start()
	}
	if t.lflag(linux.ECHO) {
		t.echo(c)
	}
}

// edit is canonical mode's own characters; false leaves c to be stored.
func (t *TTY) edit(c byte) bool {
	in := &t.in
	extended := t.lflag(linux.IEXTEN)
	switch {
	case t.is(c, linux.VERASE), t.is(c, linux.VKILL), extended && t.is(c, linux.VWERASE):
		t.erase(c)
		return true
	case extended && t.is(c, linux.VLNEXT):
		in.literal = true
		if t.lflag(linux.ECHO) {
			t.finishErasing()
			if t.lflag(linux.ECHOCTL) {
				t.echoRaw('^')
				t.echoRaw('\b')
			}
		}
		return true
	case extended && t.lflag(linux.ECHO) && t.is(c, linux.VREPRINT):
		t.finishErasing()
		t.echo(c)
		t.echoRaw('\n')
		for i := in.canon; i != in.head; i++ {
			t.echo(in.at(i))
		}
		return true
	case c == '\n':
		if t.lflag(linux.ECHO | linux.ECHONL) {
			t.echoRaw('\n')
		}
	case t.is(c, linux.VEOF):
		c = 0
	case t.is(c, linux.VEOL), extended && t.is(c, linux.VEOL2):
		if t.lflag(linux.ECHO) {
			if in.canon == in.head {
				t.out.canonColumn = t.out.column
			}
			t.echo(c)
		}
		if c == 0xff && t.iflag(linux.PARMRK) {
			in.put(c)
		}
	default:
		return false
	}
	in.setMark(in.head)
	in.put(c)
	in.canon = in.head
	t.after.events |= readable
	return true
}

// continues reports a byte that continues a UTF-8 character.
func (t *TTY) continues(c byte) bool { return t.iflag(linux.IUTF8) && c&0xc0 == 0x80 }

// erase takes a character, a word or the whole line being edited back.
func (t *TTY) erase(c byte) {
	in := &t.in
	if in.head == in.canon {
		return
	}
	echo := t.lflag(linux.ECHO)
	word, line := false, false
	switch {
	case t.is(c, linux.VERASE):
	case t.is(c, linux.VWERASE) && t.lflag(linux.IEXTEN):
		word = true
	case !echo:
		in.head = in.canon
		return
	case !t.lflag(linux.ECHOK) || !t.lflag(linux.ECHOKE) || !t.lflag(linux.ECHOE):
		in.head = in.canon
		t.finishErasing()
		t.echo(t.term.Cc[linux.VKILL])
		if t.lflag(linux.ECHOK) {
			t.echoRaw('\n')
		}
		return
	default:
		line = true
	}
	seen := false // letters of the word
	for in.head != in.canon {
		head := in.head - 1
		for t.continues(in.at(head)) && head != in.canon {
			head--
		}
		c := in.at(head)
		if t.continues(c) {
			break // never part of a character
		}
		if word {
			if isAlnum(c) || c == '_' {
				seen = true
			} else if seen {
				break
			}
		}
		n := in.head - head
		in.head = head
		if echo {
			t.showErasure(c, head, n, !word && !line)
		}
		if !word && !line {
			break
		}
	}
	if in.head == in.canon && echo {
		t.finishErasing()
	}
}

// showErasure echoes the erasure of the character of n bytes at pos, which
// begins with c.
func (t *TTY) showErasure(c byte, pos, n uint64, single bool) {
	switch {
	case t.lflag(linux.ECHOPRT):
		if !t.in.erasing {
			t.echoRaw('\\')
			t.in.erasing = true
		}
		t.echo(c)
		for i := uint64(1); i < n; i++ {
			t.echoRaw(t.in.at(pos + i))
			t.out.back()
		}
	case single && !t.lflag(linux.ECHOE):
		t.echo(t.term.Cc[linux.VERASE])
	case c == '\t':
		t.eraseTab()
	default:
		if isControl(c) && t.lflag(linux.ECHOCTL) {
			t.rubOut()
		}
		if !isControl(c) || t.lflag(linux.ECHOCTL) {
			t.rubOut()
		}
	}
}

func (t *TTY) rubOut() {
	t.echoRaw('\b')
	t.echoRaw(' ')
	t.echoRaw('\b')
}

// eraseTab goes back over a tab: to where the text before it ends, counted from
// the tab before or from the start of the line's input.
func (t *TTY) eraseTab() {
	in := &t.in
	columns, afterTab := 0, false
	for i := in.head; i != in.canon; {
		i--
		c := in.at(i)
		if c == '\t' {
			afterTab = true
			break
		}
		if isControl(c) {
			if t.lflag(linux.ECHOCTL) {
				columns += 2
			}
		} else if !t.continues(c) {
			columns++
		}
	}
	if columns &= 7; !afterTab {
		columns += t.out.canonColumn
	}
	for n := 8 - columns&7; n > 0; n-- {
		t.echoByte('\b')
		t.out.back()
	}
}

func (t *TTY) finishErasing() {
	if t.in.erasing {
		t.echoRaw('/')
		t.in.erasing = false
	}
}

// isControl and its sisters are the kernel's ctype: Latin-1.
func isControl(c byte) bool { return c < 0x20 || c == 0x7f }

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
		c >= 0xc0 && c != 0xd7 && c != 0xf7
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' || c >= 0xc0 && c <= 0xde && c != 0xd7 }

func isLower(c byte) bool { return c >= 'a' && c <= 'z' || c >= 0xdf && c != 0xf7 }
