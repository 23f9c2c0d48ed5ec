package tty

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

// Ioctl is the user side's ioctl(2).
func (x *file) Ioctl(c *caller.Ctx, f *vfs.File, cmd uint32, arg uint64) (uint64, linux.Errno) {
	if x.dead() {
		if cmd == linux.TIOCSPGRP {
			return 0, linux.ENOTTY
		}
		return 0, linux.EIO
	}
	t := x.t
	switch cmd {
	case linux.TIOCNOTTY:
		return 0, t.giveUp(c)
	case linux.TIOCSTI:
		return 0, t.typeFor(c, arg)
	case linux.TIOCGPTPEER:
		return 0, linux.EIO // asked of a master
	case linux.TIOCVHANGUP:
		if !c.Cred().Has(creds.CapSysAdmin) {
			return 0, linux.EPERM
		}
		t.Hangup()
		return 0, 0
	case linux.FIONREAD:
		t.mu.Lock()
		n := t.unread()
		t.mu.Unlock()
		return 0, writeU32(c, arg, n)
	case linux.TIOCOUTQ:
		t.mu.Lock()
		n := 0
		if !t.pty {
			n = t.out.len()
		}
		t.mu.Unlock()
		return 0, writeU32(c, arg, uint32(n))
	}
	return t.ioctl(c, f, cmd, arg, false)
}

// typeFor is TIOCSTI: a character that counts as typed. Only the session's own terminal
// takes it from everybody.
func (t *TTY) typeFor(c *caller.Ctx, arg uint64) linux.Errno {
	if Controlling(c) != t && !c.Cred().Has(creds.CapSysAdmin) {
		return linux.EPERM
	}
	b := c.Scratch[:1]
	if _, e := c.Mem.CopyIn(b, uio.Addr(arg)); e != 0 {
		return e
	}
	t.Receive(b)
	return 0
}

// unread is FIONREAD: in canonical mode the bytes of finished lines, without
// ends of file.
func (t *TTY) unread() uint32 {
	in := &t.in
	if !t.canonical() {
		return uint32(in.head - in.tail)
	}
	n := uint32(0)
	for i := in.tail; i != in.canon; i++ {
		if !in.marked(i) || in.at(i) != 0 {
			n++
		}
	}
	return n
}

// ioctl is what both sides of a terminal answer; through a master it is asked
// about its slave.
func (t *TTY) ioctl(c *caller.Ctx, f *vfs.File, cmd uint32, arg uint64, master bool) (uint64, linux.Errno) {
	switch cmd {
	case linux.TCGETS, linux.TCGETS2, linux.TCGETA:
		return 0, t.getTermios(c, cmd, arg)
	case linux.TCSETS, linux.TCSETSW, linux.TCSETSF, linux.TCSETS2, linux.TCSETSW2, linux.TCSETSF2,
		linux.TCSETA, linux.TCSETAW, linux.TCSETAF:
		return 0, t.setTermios(c, cmd, arg)
	case linux.TIOCGLCKTRMIOS, linux.TIOCSLCKTRMIOS:
		return 0, t.lockRequest(c, cmd, arg)
	case linux.TIOCSCTTY:
		return 0, t.steal(c, f, arg == 1)
	case linux.TIOCGWINSZ, linux.TIOCSWINSZ:
		return 0, t.sizeRequest(c, cmd, arg)
	case linux.TIOCGPGRP, linux.TIOCGSID, linux.TIOCSPGRP:
		return 0, t.groupRequest(c, cmd, arg, master)
	case linux.TCFLSH, linux.TCXONC, linux.TCSBRK, linux.TCSBRKP:
		return 0, t.queueRequest(c, cmd, arg)
	case linux.TIOCSBRK, linux.TIOCCBRK:
		return 0, 0
	case linux.TIOCEXCL, linux.TIOCNXCL, linux.TIOCGEXCL:
		return 0, t.exclusiveRequest(c, cmd, arg)
	case linux.TIOCGETD:
		return 0, writeU32(c, arg, 0) // N_TTY
	case linux.TIOCSETD:
		n, e := readU32(c, arg)
		if e == 0 && n != 0 {
			e = linux.EINVAL
		}
		return 0, e
	case linux.TIOCGDEV:
		return 0, writeU32(c, arg, t.minor&0xff|t.major<<8|t.minor&^0xff<<12)
	case linux.TIOCSSOFTCAR, linux.TIOCGSOFTCAR:
		return 0, t.carrierRequest(c, cmd, arg)
	}
	return 0, linux.ENOTTY
}

// sizeRequest is TIOCGWINSZ and TIOCSWINSZ.
func (t *TTY) sizeRequest(c *caller.Ctx, cmd uint32, arg uint64) linux.Errno {
	b := c.Scratch[:linux.SizeofWinsize]
	if cmd == linux.TIOCGWINSZ {
		t.mu.Lock()
		w := t.size
		t.mu.Unlock()
		for i, v := range []uint16{w.Row, w.Col, w.Xpixel, w.Ypixel} {
			binary.LittleEndian.PutUint16(b[2*i:], v)
		}
		_, e := c.Mem.CopyOut(uio.Addr(arg), b)
		return e
	}
	if _, e := c.Mem.CopyIn(b, uio.Addr(arg)); e != 0 {
		return e
	}
	u := func(i int) uint16 { return binary.LittleEndian.Uint16(b[2*i:]) }
	t.SetSize(linux.Winsize{Row: u(0), Col: u(1), Xpixel: u(2), Ypixel: u(3)})
	return 0
}

// groupRequest is TIOCGPGRP, TIOCGSID and TIOCSPGRP.
func (t *TTY) groupRequest(c *caller.Ctx, cmd uint32, arg uint64, master bool) linux.Errno {
	if cmd == linux.TIOCSPGRP {
		id, e := readU32(c, arg)
		if e != 0 {
			return e
		}
		return t.setForeground(c, int32(id))
	}
	session, id, e := t.foregroundOf(c, master)
	if e != 0 {
		return e
	}
	if cmd == linux.TIOCGSID {
		if id = session; id == 0 {
			return linux.ENOTTY
		}
	}
	return writeU32(c, arg, uint32(id))
}

// queueRequest is TCFLSH, TCXONC and TCSBRK: what is done to bytes under way.
func (t *TTY) queueRequest(c *caller.Ctx, cmd uint32, arg uint64) linux.Errno {
	if e := t.mayChange(c, linux.SIGTTOU); e != 0 {
		return e
	}
	switch cmd {
	case linux.TCFLSH:
		if arg > linux.TCIOFLUSH {
			return linux.EINVAL
		}
		t.mu.Lock()
		t.flush(arg != linux.TCOFLUSH, arg != linux.TCIFLUSH)
		t.unlock()
		return 0
	case linux.TCXONC:
		return t.flow(arg)
	}
	return t.drain(c) // breaks go nowhere
}

// exclusiveRequest is TIOCEXCL, TIOCNXCL and TIOCGEXCL.
func (t *TTY) exclusiveRequest(c *caller.Ctx, cmd uint32, arg uint64) linux.Errno {
	t.mu.Lock()
	if cmd != linux.TIOCGEXCL {
		t.exclusive = cmd == linux.TIOCEXCL
	}
	on := t.exclusive
	t.mu.Unlock()
	if cmd != linux.TIOCGEXCL {
		return 0
	}
	return writeU32(c, arg, bit(on))
}

// carrierRequest is TIOCSSOFTCAR and TIOCGSOFTCAR.
func (t *TTY) carrierRequest(c *caller.Ctx, cmd uint32, arg uint64) linux.Errno {
	if cmd == linux.TIOCGSOFTCAR {
		t.mu.Lock()
		on := t.term.Cflag&linux.CLOCAL != 0
		t.mu.Unlock()
		return writeU32(c, arg, bit(on))
	}
	on, e := readU32(c, arg)
	if e != 0 {
		return e
	}
	t.mu.Lock()
	if t.term.Cflag &^= linux.CLOCAL; on != 0 {
		t.term.Cflag |= linux.CLOCAL
	}
	t.mu.Unlock()
	return 0
}

func bit(on bool) uint32 {
	if on {
		return 1
	}
	return 0
}

func writeU32(c *caller.Ctx, arg uint64, v uint32) linux.Errno {
	b := c.Scratch[:4]
	binary.LittleEndian.PutUint32(b, v)
	_, e := c.Mem.CopyOut(uio.Addr(arg), b)
	return e
}

func readU32(c *caller.Ctx, arg uint64) (uint32, linux.Errno) {
	b := c.Scratch[:4]
	_, e := c.Mem.CopyIn(b, uio.Addr(arg))
	return binary.LittleEndian.Uint32(b), e
}

// flow is TCXONC.
func (t *TTY) flow(what uint64) linux.Errno {
	t.mu.Lock()
	defer t.unlock()
	switch what {
	case linux.TCOOFF:
		t.stop()
		t.out.byProgram = true
	case linux.TCOON:
		t.out.byProgram = false
		t.start()
	case linux.TCIOFF, linux.TCION:
		i := linux.VSTOP
		if what == linux.TCION {
			i = linux.VSTART
		}
		if c := t.term.Cc[i]; c != 0 && t.room() > 0 {
			t.out.buf = append(t.out.buf, c)
			t.after.kick = true
		}
	default:
		return linux.EINVAL
	}
	return 0
}

// drain waits until all output has left; a pty's counts as having.
func (t *TTY) drain(c *caller.Ctx) linux.Errno {
	t.mu.Lock()
	defer t.unlock()
	for !t.driver.drained(t) {
		if t.sleep(c, writable, wait.NoDeadline) == wait.Interrupted {
			return linux.ERESTARTSYS
		}
	}
	return 0
}

// getTermios is TCGETS and its sisters.
func (t *TTY) getTermios(c *caller.Ctx, cmd uint32, arg uint64) linux.Errno {
	t.mu.Lock()
	k := t.term
	t.mu.Unlock()
	b := c.Scratch[:linux.SizeofTermios2]
	clear(b)
	if cmd == linux.TCGETA {
		for i, f := range []uint32{k.Iflag, k.Oflag, k.Cflag, k.Lflag} {
			binary.LittleEndian.PutUint16(b[2*i:], uint16(f))
		}
		b[8] = k.Line
		copy(b[9:17], k.Cc[:8])
		b = b[:linux.SizeofTermio]
	} else {
		putTermios(b, &k)
		binary.LittleEndian.PutUint32(b[36:], k.Ispeed)
		binary.LittleEndian.PutUint32(b[40:], k.Ospeed)
		if cmd == linux.TCGETS {
			b = b[:linux.SizeofTermios]
		}
	}
	_, e := c.Mem.CopyOut(uio.Addr(arg), b)
	return e
}

// setTermios is TCSETS and its sisters: at once, after output has left (…W),
// and with input thrown away (…F).
func (t *TTY) setTermios(c *caller.Ctx, cmd uint32, arg uint64) linux.Errno {
	if e := t.mayChange(c, linux.SIGTTOU); e != 0 {
		return e
	}
	size, two, old := linux.SizeofTermios, false, false
	switch cmd {
	case linux.TCSETS2, linux.TCSETSW2, linux.TCSETSF2:
		size, two = linux.SizeofTermios2, true
	case linux.TCSETA, linux.TCSETAW, linux.TCSETAF:
		size, old = linux.SizeofTermio, true
	}
	b := c.Scratch[:size]
	if _, e := c.Mem.CopyIn(b, uio.Addr(arg)); e != 0 {
		return e
	}
	t.mu.Lock()
	k := t.term
	t.mu.Unlock()
	if old {
		for i, f := range []*uint32{&k.Iflag, &k.Oflag, &k.Cflag, &k.Lflag} {
			*f = *f&^0xffff | uint32(binary.LittleEndian.Uint16(b[2*i:]))
		}
		k.Line = b[8]
		copy(k.Cc[:8], b[9:17])
	} else {
		for i, f := range []*uint32{&k.Iflag, &k.Oflag, &k.Cflag, &k.Lflag} {
			*f = binary.LittleEndian.Uint32(b[4*i:])
		}
		k.Line = b[16]
		copy(k.Cc[:], b[17:36])
		if two {
			k.Ispeed, k.Ospeed = binary.LittleEndian.Uint32(b[36:]), binary.LittleEndian.Uint32(b[40:])
		}
	}
	if s, ok := speedOf(k.Cflag); ok {
		k.Ospeed = s
		if k.Cflag&linux.CIBAUD == 0 || !two {
			k.Ispeed = s
		}
	}
	wait, flush := false, false
	switch cmd {
	case linux.TCSETSF, linux.TCSETSF2, linux.TCSETAF:
		wait, flush = true, true
	case linux.TCSETSW, linux.TCSETSW2, linux.TCSETAW:
		wait = true
	}
	if flush {
		t.mu.Lock()
		t.flush(true, false)
		t.unlock()
	}
	if wait {
		if e := t.drain(c); e != 0 {
			return e
		}
	}
	t.mu.Lock()
	t.change(&k)
	t.unlock()
	return 0
}

// speeds are the rates that CBAUD encodes.
var speeds = [...]uint32{0, 50, 75, 110, 134, 150, 200, 300, 600, 1200, 1800, 2400, 4800, 9600, 19200, 38400,
	0, 57600, 115200, 230400, 460800, 500000, 576000, 921600, 1000000, 1152000, 1500000, 2000000, 2500000, 3000000, 3500000, 4000000}

// speedOf decodes CBAUD; false for BOTHER, which leaves the number given.
func speedOf(cflag uint32) (uint32, bool) {
	i := cflag & linux.CBAUD
	if i == linux.BOTHER {
		return 0, false
	}
	if i&linux.CBAUDEX != 0 {
		i = i&^linux.CBAUDEX + 16
	}
	return speeds[i], true
}

// lockRequest is TIOCGLCKTRMIOS and TIOCSLCKTRMIOS: which modes nobody changes.
func (t *TTY) lockRequest(c *caller.Ctx, cmd uint32, arg uint64) linux.Errno {
	b := c.Scratch[:linux.SizeofTermios]
	if cmd == linux.TIOCGLCKTRMIOS {
		t.mu.Lock()
		k := t.locked
		t.mu.Unlock()
		putTermios(b, &k)
		_, e := c.Mem.CopyOut(uio.Addr(arg), b)
		return e
	}
	if r := c.Cred(); !r.Has(creds.CapSysAdmin) && !r.Has(creds.CapCheckpointRestore) {
		return linux.EPERM
	}
	if _, e := c.Mem.CopyIn(b, uio.Addr(arg)); e != 0 {
		return e
	}
	t.mu.Lock()
	for i, f := range []*uint32{&t.locked.Iflag, &t.locked.Oflag, &t.locked.Cflag, &t.locked.Lflag} {
		*f = binary.LittleEndian.Uint32(b[4*i:])
	}
	t.locked.Line = b[16]
	copy(t.locked.Cc[:], b[17:])
	t.mu.Unlock()
	return 0
}

// keepLocked makes locked modes what they were; called with mu held.
func (t *TTY) keepLocked(was *linux.Termios) {
	k, l := &t.term, &t.locked
	keep := func(to *uint32, was, locked uint32) { *to = *to&^locked | was&locked }
	keep(&k.Iflag, was.Iflag, l.Iflag)
	keep(&k.Oflag, was.Oflag, l.Oflag)
	keep(&k.Cflag, was.Cflag, l.Cflag)
	keep(&k.Lflag, was.Lflag, l.Lflag)
	if l.Line != 0 {
		k.Line = was.Line
	}
	for i, locked := range l.Cc {
		if locked != 0 {
			k.Cc[i] = was.Cc[i]
		}
	}
}

// putTermios encodes modes without speeds.
func putTermios(b []byte, k *linux.Termios) {
	for i, f := range []uint32{k.Iflag, k.Oflag, k.Cflag, k.Lflag} {
		binary.LittleEndian.PutUint32(b[4*i:], f)
	}
	b[16] = k.Line
	copy(b[17:36], k.Cc[:])
}

// change installs new modes; called with mu held.
func (t *TTY) change(k *linux.Termios) {
	was := t.term
	t.term = *k
	t.keepLocked(&was)
	if t.pty {
		t.term.Cflag = t.term.Cflag&^linux.CSIZE&^0o400 | linux.CS8 | linux.CREAD // no parity
		t.packetModes(&was)
	}
	in := &t.in
	if (was.Lflag^k.Lflag)&(linux.ICANON|linux.EXTPROC) != 0 {
		in.mark = [bufSize / 64]uint64{}
		if !t.lflag(linux.ICANON) || in.head == in.tail {
			in.canon = in.tail
		} else {
			// What was typed raw is a line now.
			in.setMark(in.head - 1)
			in.canon = in.head
		}
		in.erasing, in.literal = false, false
	}
	if was.Iflag&linux.IXON != 0 && !t.iflag(linux.IXON) {
		t.start()
	}
	t.pump()
	t.after.events |= readable | writable
}

// packetModes tells a master in packet mode whether the usual flow control
// characters are in force.
func (t *TTY) packetModes(was *linux.Termios) {
	usual := func(k *linux.Termios) bool {
		return k.Iflag&linux.IXON != 0 && k.Cc[linux.VSTOP] == control('S') && k.Cc[linux.VSTART] == control('Q')
	}
	if (was.Lflag^t.term.Lflag)&linux.EXTPROC != 0 || t.term.Lflag&linux.EXTPROC != 0 {
		t.driver.packet(t, linux.TIOCPKT_IOCTL)
	}
	if before, now := usual(was), usual(&t.term); before != now {
		if now {
			t.driver.packet(t, linux.TIOCPKT_DOSTOP)
		} else {
			t.driver.packet(t, linux.TIOCPKT_NOSTOP)
		}
	}
}
