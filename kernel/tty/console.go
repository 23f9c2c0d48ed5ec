package tty

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/fs/devfs"
	"hardtack/kernel/fs/vfs"
)

// Console is a terminal on a machine's serial line or console device.
type Console struct {
	TTY
	write func([]byte)

	draining bool   // somebody is writing; guarded by mu
	spare    []byte // the buffer that is not in use; guarded by mu
}

// NewConsole returns a terminal whose output goes to write, which may block and
// must not keep its argument; it is called by one goroutine at a time.
func NewConsole(write func([]byte)) *Console {
	c := &Console{write: write}
	c.driver, c.term = c, defaultTermios()
	c.term.Cflag = linux.B115200 | linux.CS8 | linux.CREAD | linux.HUPCL | linux.CLOCAL
	c.term.Ispeed, c.term.Ospeed = 115200, 115200
	c.major, c.minor = linux.TTY_MAJOR, linux.TTYS_MINOR
	return c
}

// Input is what the user typed. It does not block: when nothing reads, what
// exceeds the buffers is lost.
func (c *Console) Input(p []byte) {
	for len(p) > 0 {
		n := c.Receive(p)
		if n == 0 {
			return
		}
		p = p[n:]
	}
}

// SetSize sets the window size in characters; the foreground group hears of a change.
func (c *Console) SetSize(rows, cols int) {
	c.TTY.SetSize(linux.Winsize{Row: uint16(rows), Col: uint16(cols)})
}

// EOF says that no more input will come: what was typed of a line can be read,
// and from then on there is an end of file.
func (c *Console) EOF() {
	c.mu.Lock()
	c.ended = true
	if c.canonical() && c.in.canon != c.in.head {
		c.in.setMark(c.in.head - 1)
		c.in.canon = c.in.head
	}
	c.after.events |= readable
	c.unlock()
}

// Flush waits until all output was written (before power-off).
func (c *Console) Flush() {
	k := caller.NewKernelCtx()
	c.mu.Lock()
	c.out.stopped = false
	c.after.kick = true
	c.unlock()
	c.drain(k)
}

// kick writes what is buffered, unless somebody is at it already.
func (c *Console) kick(t *TTY) {
	for {
		t.mu.Lock()
		t.releaseEcho()
		if c.draining || t.out.stopped || t.out.len() == 0 {
			t.mu.Unlock()
			return
		}
		c.draining = true
		b := t.out.buf[t.out.off:]
		whole := t.out.buf
		t.out.buf, t.out.off, c.spare = c.spare[:0], 0, nil
		t.mu.Unlock()
		c.write(b)
		t.mu.Lock()
		c.draining, c.spare = false, whole[:0]
		t.mu.Unlock()
		t.queue.Notify(writable)
	}
}

func (c *Console) packet(*TTY, uint8) {}

func (c *Console) drained(t *TTY) bool { return t.out.stopped || t.out.len() == 0 && !c.draining }

// File returns an open file of the console without a name; opening
// /dev/console gives one with.
func (c *Console) File() *vfs.File {
	ops, _ := c.openConsole(caller.NewKernelCtx(), linux.O_RDWR)
	return vfs.NewFile(ops, linux.O_RDWR)
}

// Register makes the console /dev/console and /dev/ttyS0; /dev/tty is the
// caller's controlling terminal.
func (c *Console) Register() linux.Errno {
	vfs.RegisterChar(linux.TTYAUX_MAJOR, 1, c.openConsole)
	vfs.RegisterChar(linux.TTY_MAJOR, linux.TTYS_MINOR, func(k *caller.Ctx, flags uint32) (vfs.Ops, linux.Errno) {
		return opsOf(c.open(k, flags, true))
	})
	return addSerialNode()
}

// openConsole opens /dev/console, which never becomes anybody's controlling
// terminal and does not end with a session.
func (c *Console) openConsole(k *caller.Ctx, flags uint32) (vfs.Ops, linux.Errno) {
	x, e := c.open(k, flags, false)
	if e != 0 {
		return nil, e
	}
	x.lasting = true
	return x, 0
}

// opsOf makes the result of open one of a CharOpener.
func opsOf(x *file, e linux.Errno) (vfs.Ops, linux.Errno) {
	if e != 0 {
		return nil, e
	}
	return x, 0
}

// OpenControlling opens /dev/tty.
func OpenControlling(k *caller.Ctx, flags uint32) (vfs.Ops, linux.Errno) {
	t := Controlling(k)
	if t == nil {
		return nil, linux.ENXIO
	}
	return opsOf(t.open(k, flags, false))
}

// addSerialNode makes /dev/ttyS0.
func addSerialNode() linux.Errno {
	dev := devfs.Dev()
	i, e := dev.Make(&vfs.NewNode{Mode: linux.S_IFCHR | 0o620, GID: 5, Rdev: linux.Makedev(linux.TTY_MAJOR, linux.TTYS_MINOR)})
	if e == 0 {
		_, e = dev.Root.AddChild("ttyS0", i)
	}
	return e
}
