package tty

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

// file is an open file of a terminal's user side.
type file struct {
	t   *TTY
	gen uint32 // t.hangups when it was opened; immutable
	// lasting files outlive hang-ups: what was opened as /dev/console. Immutable.
	lasting bool
}

// open opens the user side.
func (t *TTY) open(c *caller.Ctx, flags uint32, mayControl bool) (*file, linux.Errno) {
	t.mu.Lock()
	if t.noPeer {
		t.mu.Unlock()
		return nil, linux.EIO
	}
	if t.exclusive && t.opens > 0 && !c.Cred().Has(creds.CapSysAdmin) {
		t.mu.Unlock()
		return nil, linux.EBUSY
	}
	t.opens++
	x := &file{t: t, gen: t.hangups.Load()}
	t.after.kick = true // the master hears of it
	t.unlock()
	if mayControl && flags&linux.O_NOCTTY == 0 && flags&linux.O_ACCMODE != linux.O_WRONLY {
		t.opened(c)
	}
	return x, 0
}

// dead reports that the terminal was hung up since the file was opened.
func (x *file) dead() bool { return x.t.hangups.Load() != x.gen && !x.lasting }

// Read returns a line, or bytes in raw mode.
func (x *file) Read(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	if x.dead() || v.Len() == 0 {
		return 0, 0
	}
	t := x.t
	if e := t.mayChange(c, linux.SIGTTIN); e != 0 {
		return 0, e
	}
	t.mu.Lock()
	r := reading{minimum: 1}
	if !t.canonical() {
		r.begin(t)
	}
	n, e := r.run(c, x, f, v)
	t.pump() // there is room again
	t.unlock()
	if n > 0 {
		e = 0
	}
	return n, e
}

// reading is the progress of a read: VMIN and VTIME.
type reading struct {
	minimum  int
	interval int64 // nanoseconds between bytes; 0: no limit
	deadline int64 // 0: none
	now      bool  // what is there, at once
}

// tenth is VTIME's unit.
const tenth = 100_000_000

// begin takes VMIN and VTIME; called with t.mu held.
func (r *reading) begin(t *TTY) {
	vmin, vtime := int(t.term.Cc[linux.VMIN]), int64(t.term.Cc[linux.VTIME])*tenth
	switch {
	case vmin > 0:
		r.minimum, r.interval = vmin, vtime
	case vtime > 0:
		r.deadline = wait.Now() + vtime
	default:
		r.now = true
	}
}

// run reads until enough is there; called with t.mu held, which it gives up
// while it sleeps or copies.
func (r *reading) run(c *caller.Ctx, x *file, f *vfs.File, v *uio.Vec) (n int, e linux.Errno) {
	t := x.t
	slept := wait.Woken
	for v.Len() > 0 {
		if !t.available(false) {
			switch {
			case t.noPeer:
				return n, linux.EIO
			case x.dead() || t.ended || r.now || slept == wait.TimedOut:
				return n, 0
			case f.NonBlock():
				return n, linux.EAGAIN
			case slept == wait.Interrupted:
				return n, linux.ERESTARTSYS
			}
			slept = t.sleep(c, readable, r.deadline)
			continue
		}
		if x.dead() {
			return n, 0
		}
		slept = wait.Woken
		if t.canonical() {
			k, e := t.readLine(c, v)
			return n + k, e
		}
		k, e := t.readRaw(c, v)
		if n += k; e != 0 || n >= r.minimum {
			return n, e
		}
		if r.interval > 0 {
			r.deadline = wait.Now() + r.interval
		}
	}
	return n, 0
}

// copyOut copies outside mu, which is held before and after.
func (t *TTY) copyOut(v *uio.Vec, b []byte) (int, linux.Errno) {
	t.unlock()
	n, e := v.CopyOut(b)
	t.mu.Lock()
	return n, e
}

// readLine moves the rest of a line, or what fits of it; called with mu held.
func (t *TTY) readLine(c *caller.Ctx, v *uio.Vec) (n int, e linux.Errno) {
	in := &t.in
	for v.Len() > 0 && in.tail != in.canon {
		b, end := c.Scratch[:0], false
		for len(b) < min(v.Len(), len(c.Scratch)) && in.tail != in.canon && !end {
			ch := in.at(in.tail)
			if end = in.marked(in.tail); end {
				in.clearMark(in.tail)
			}
			in.tail++
			if !end || ch != 0 {
				b = append(b, ch)
			}
		}
		k, e := t.copyOut(v, b)
		if n += k; e != 0 || end {
			return n, e
		}
	}
	// An end of file right behind what filled the buffer belongs to it.
	if v.Len() == 0 && in.tail != in.canon && in.marked(in.tail) && in.at(in.tail) == 0 {
		in.clearMark(in.tail)
		in.tail++
	}
	return n, 0
}

// readRaw moves what is there; called with mu held.
func (t *TTY) readRaw(c *caller.Ctx, v *uio.Vec) (n int, e linux.Errno) {
	in := &t.in
	for v.Len() > 0 && in.tail != in.head {
		b := c.Scratch[:0]
		for len(b) < min(v.Len(), len(c.Scratch)) && in.tail != in.head {
			b = append(b, in.at(in.tail))
			in.clearMark(in.tail)
			in.tail++
		}
		in.canon = max(in.canon, in.tail)
		k, e := t.copyOut(v, b)
		if n += k; e != 0 {
			return n, e
		}
	}
	return n, 0
}

// Write puts bytes through the output half to the driver.
func (x *file) Write(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (done int, e linux.Errno) {
	t := x.t
	if x.dead() {
		return 0, linux.EIO
	}
	t.mu.Lock()
	tostop := t.lflag(linux.TOSTOP)
	t.mu.Unlock()
	if tostop {
		if e := t.mayChange(c, linux.SIGTTOU); e != 0 {
			return 0, e
		}
	}
	b := c.Scratch[:]
	if v.Len() > len(b) {
		chunk := chunks.Get().(*[4096]byte)
		defer chunks.Put(chunk)
		b = chunk[:]
	}
	for v.Len() > 0 && e == 0 {
		n, err := v.CopyIn(b)
		var k int
		if k, e = x.writeChunk(c, f, b[:n]); e == 0 {
			e = err
		}
		done += k
	}
	if done > 0 {
		e = 0
	}
	return done, e
}

// writeChunk writes all of p unless it must not wait.
func (x *file) writeChunk(c *caller.Ctx, f *vfs.File, p []byte) (done int, e linux.Errno) {
	t := x.t
	t.mu.Lock()
	defer t.unlock()
	for interrupted := false; ; {
		if x.dead() || t.noPeer {
			return done, linux.EIO
		}
		done += t.output(p[done:])
		switch {
		case done == len(p):
			return done, 0
		case f.NonBlock():
			return done, linux.EAGAIN
		case interrupted:
			return done, linux.ERESTARTSYS
		}
		interrupted = t.sleep(c, writable, wait.NoDeadline) == wait.Interrupted
	}
}

// Ready is what poll reports.
func (x *file) Ready(*vfs.File) wait.Events {
	if x.dead() {
		return readable | writable | wait.Err | wait.Hup
	}
	t := x.t
	var ev wait.Events
	t.mu.Lock()
	if t.available(true) || t.ended {
		ev |= readable
	}
	if t.noPeer {
		ev |= wait.Hup
	}
	if t.room() > 0 {
		ev |= writable
	}
	t.mu.Unlock()
	return ev
}

// Queue is where readiness is announced.
func (x *file) Queue(*vfs.File) *wait.Queue { return &x.t.queue }

// Release closes the file; the driver hears of it.
func (x *file) Release(*vfs.File) {
	t := x.t
	t.mu.Lock()
	t.opens--
	t.after.kick = true
	t.unlock()
}

// TTYOf returns the terminal behind an open file, or nil.
func TTYOf(f *vfs.File) *TTY {
	if x, ok := f.Ops.(*file); ok {
		return x.t
	}
	return nil
}
