package tty

import (
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

// RawConsole is a console that is no terminal: bytes in, bytes out, end of
// file, as when the machine's standard input and output are files or pipes.
type RawConsole struct {
	vfs.BaseOps
	queue wait.Queue // readers, and Input when it waits for them
	write func([]byte)

	outMu sync.Mutex // one write at a time

	mu  sync.Mutex
	buf []byte // not read yet; guarded by mu
	eof bool   // guarded by mu
}

// rawSize is how much input waits to be read.
const rawSize = 65536

// NewRawConsole returns a console whose output goes to write, which may block
// and must not keep its argument.
func NewRawConsole(write func([]byte)) *RawConsole { return &RawConsole{write: write} }

// File returns an open file of the console without a name.
func (r *RawConsole) File() *vfs.File { return vfs.NewFile(r, linux.O_RDWR) }

// Register makes the console /dev/console and /dev/ttyS0.
func (r *RawConsole) Register() linux.Errno {
	open := func(*caller.Ctx, uint32) (vfs.Ops, linux.Errno) { return r, 0 }
	vfs.RegisterChar(linux.TTYAUX_MAJOR, 1, open)
	vfs.RegisterChar(linux.TTY_MAJOR, linux.TTYS_MINOR, open)
	return addSerialNode()
}

// Input brings bytes; it blocks while too many are unread. The caller must be a
// goroutine that nothing else waits for.
func (r *RawConsole) Input(p []byte) {
	c := caller.NewKernelCtx()
	for len(p) > 0 {
		n := r.TryInput(p)
		if p = p[n:]; len(p) == 0 {
			return
		}
		c.Arm()
		r.queue.Add(&c.Entry, &c.Sleeper, wait.WrBand)
		if r.Space() == 0 {
			c.Sleep(wait.NoDeadline)
		}
		r.queue.Remove(&c.Entry)
	}
}

// TryInput is Input that takes what there is room for and returns how much.
func (r *RawConsole) TryInput(p []byte) int {
	r.mu.Lock()
	n := min(len(p), rawSize-len(r.buf))
	r.buf = append(r.buf, p[:n]...)
	r.mu.Unlock()
	r.queue.Notify(readable)
	return n
}

// Space returns how many bytes Input would take at once.
func (r *RawConsole) Space() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return rawSize - len(r.buf)
}

// EOF ends the input.
func (r *RawConsole) EOF() {
	r.mu.Lock()
	r.eof = true
	r.mu.Unlock()
	r.queue.Notify(readable | wait.Hup)
}

// Read returns input as it comes, 0 at its end.
func (r *RawConsole) Read(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (n int, e linux.Errno) {
	if v.Len() == 0 {
		return 0, 0
	}
	r.mu.Lock()
	for interrupted := false; len(r.buf) == 0 && !r.eof; {
		if f.NonBlock() {
			e = linux.EAGAIN
		} else if interrupted {
			e = linux.ERESTARTSYS
		}
		if e != 0 {
			r.mu.Unlock()
			return 0, e
		}
		c.Arm()
		r.queue.Add(&c.Entry, &c.Sleeper, wait.In)
		r.mu.Unlock()
		interrupted = c.Sleep(wait.NoDeadline) == wait.Interrupted
		r.queue.Remove(&c.Entry)
		r.mu.Lock()
	}
	n, e = v.CopyOut(r.buf)
	r.buf = r.buf[:copy(r.buf, r.buf[n:])]
	r.mu.Unlock()
	r.queue.Notify(wait.WrBand)
	if n > 0 {
		e = 0
	}
	return n, e
}

// chunks are what writes are copied to: consoles like long ones.
var chunks = sync.Pool{New: func() any { return new([4096]byte) }}

// Write passes bytes on.
func (r *RawConsole) Write(_ *caller.Ctx, _ *vfs.File, v *uio.Vec, _ int64) (done int, e linux.Errno) {
	b := chunks.Get().(*[4096]byte)
	defer chunks.Put(b)
	r.outMu.Lock()
	defer r.outMu.Unlock()
	for v.Len() > 0 && e == 0 {
		var n int
		n, e = v.CopyIn(b[:])
		if n > 0 {
			r.write(b[:n])
			done += n
		}
	}
	if done > 0 {
		e = 0
	}
	return done, e
}

// Ready is what poll reports.
func (r *RawConsole) Ready(*vfs.File) wait.Events {
	ev := writable
	r.mu.Lock()
	if len(r.buf) > 0 || r.eof {
		ev |= readable
	}
	r.mu.Unlock()
	return ev
}

// Queue is where readiness is announced.
func (r *RawConsole) Queue(*vfs.File) *wait.Queue { return &r.queue }
