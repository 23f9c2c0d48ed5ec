// Package pipe is pipes and fifos.
//
// A Pipe is a ring of slots, as Linux's is a ring of buffers: each slot has bytes in a
// page frame of its own, and a write that does not fit behind the last bytes takes a new
// slot. So a pipe of 16 pages is full after 16 packets, however small they are. Frames are
// taken from mem when a slot is first used; when the last byte is read the ring starts
// over at its first slot and gives the other frames back, so an idle pipe keeps one page
// and an exchange of small messages stays in it.
//
// Invariants: head ≤ tail ≤ head + length of the ring; slot x is at index x modulo that
// length, and the slots from head to before tail are not empty.
//
// Lock order: Pipe.mu, then the queue's. Pipe.mu is held while user memory is
// copied (a page fault takes vm's locks below it) and never while sleeping.
package pipe

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

const (
	// DefaultSize is the capacity of a new pipe.
	DefaultSize = 65536
	// maxRootSize is the most that F_SETPIPE_SZ grants with CAP_SYS_RESOURCE; without
	// it is fs.pipe-max-size.
	maxRootSize = 1 << 26

	page = mem.PageSize
)

const (
	readable = wait.In | wait.RdNorm
	writable = wait.Out | wait.WrNorm
)

// Pipe is the buffer that its open ends share.
type Pipe struct {
	queue wait.Queue     // both ends wait here: readers for In, writers for Out
	ino   uint64         // immutable
	ctime int64          // when it was made, CLOCK_REALTIME; immutable
	uid   uint32         // whose it is; immutable
	gid   uint32         // immutable
	user  *accounts.User // who is charged for it; immutable
	attr  vfs.AnonAttr
	locks atomic.Pointer[vfs.Inode] // made on first use

	mu         sync.Mutex
	head, tail uint32 // the first slot with bytes, and the slot behind the last; guarded by mu
	ring       []slot // a power of two long; guarded by mu
	busy       bool   // somebody has the front out: head stays; guarded by mu
	readers    int    // open files that can read; guarded by mu
	writers    int    // open files that can write; guarded by mu
	rOpens     uint64 // how often a reader was opened; guarded by mu
	wOpens     uint64 // how often a writer was opened; guarded by mu
}

// slot is n bytes of a frame, from off on.
type slot struct {
	frame  mem.Frame // 0 = not taken yet
	off, n uint16
	flags  uint8
}

const (
	packet uint8 = 1 << iota // what is not read of it at once is lost (O_DIRECT)
	sealed                   // nothing is added behind its bytes
)

func (s *slot) bytes() []byte { return s.frame.Bytes()[s.off : s.off+s.n] }

// used takes n bytes off the front, and reports whether none are left.
func (s *slot) used(n int) bool {
	s.off += uint16(n)
	s.n -= uint16(n)
	return s.n == 0
}

// at is slot x; called with mu held.
func (p *Pipe) at(x uint32) *slot { return &p.ring[x&uint32(len(p.ring)-1)] }

// New returns a pipe of c's that nobody has open, nil if the user has too many. It is
// small if the user has many.
func New(c *caller.Ctx) *Pipe {
	cr := c.Cred()
	p := &Pipe{
		ino:   vfs.AnonIno(),
		ctime: clocks.Realtime(),
		uid:   cr.FSUID,
		gid:   cr.FSGID,
		user:  cr.User,
	}
	n := int64(DefaultSize / page)
	if most := settings.PipeMaxSize.Get(); n > most/page && !cr.Has(creds.CapSysResource) {
		n = most / page
	}
	if tooMany(slots.Of(p.user)+n, &settings.PipePagesSoft) && !privileged(cr) {
		n = min(n, leastFrames)
	}
	if tooMany(slots.Of(p.user)+n, &settings.PipePagesHard) && !privileged(cr) {
		return nil
	}
	p.ring = make([]slot, n) //maxlive:len 16 because a new pipe has at most DefaultSize bytes
	return p
}

// tooMany reports whether a user has more than a limit of pages in pipes, 0 being none.
func tooMany(n int64, limit *settings.Setting) bool {
	most := limit.Get()
	return most > 0 && n > most
}

// slots counts the pages that users' pipes may take, taken or not.
var slots = accounts.NewPool(math.MaxInt64)

// leastFrames is the size of a small pipe.
const leastFrames = 2

func privileged(c *creds.Cred) bool {
	return c.Has(creds.CapSysResource) || c.Has(creds.CapSysAdmin)
}

// full reports whether all slots are used; called with mu held.
func (p *Pipe) full() bool { return p.tail-p.head >= uint32(len(p.ring)) }

// sleep waits for a notification of ev and reports whether a signal came. It
// is called with mu held, which it gives up meanwhile; with tell, readers are
// told of data first.
func (p *Pipe) sleep(c *caller.Ctx, ev wait.Events, tell bool) (interrupted bool) {
	c.Arm()
	p.queue.Add(&c.Entry, &c.Sleeper, ev)
	p.mu.Unlock()
	if tell {
		p.queue.Notify(readable)
	}
	r := c.Sleep(wait.NoDeadline)
	p.queue.Remove(&c.Entry)
	p.mu.Lock()
	return r == wait.Interrupted
}

// Read takes bytes from the pipe.
func (x *end) Read(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	if !x.r {
		return 0, linux.EBADF
	}
	return x.p.read(c, f, v)
}

// Write puts bytes into the pipe.
func (x *end) Write(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	if !x.w {
		return 0, linux.EBADF
	}
	return x.p.write(c, f, v)
}

func (p *Pipe) read(c *caller.Ctx, f *vfs.File, v *uio.Vec) (int, linux.Errno) {
	if v.Len() == 0 {
		return 0, 0
	}
	p.mu.Lock()
	for interrupted := false; p.head == p.tail || p.busy; {
		var e linux.Errno
		switch {
		case p.writers == 0 && !p.busy:
			p.mu.Unlock()
			return 0, 0
		case f.NonBlock():
			e = linux.EAGAIN
		case interrupted:
			e = linux.ERESTARTSYS
		}
		if e != 0 {
			p.mu.Unlock()
			return 0, e
		}
		interrupted = p.sleep(c, readable, false)
	}
	if s := &p.ring[0]; p.tail == 1 && v.Len() >= int(s.n) && len(p.ring) > 1 {
		// A small message, read whole; nobody can be waiting for room.
		n, e := v.CopyOut(s.bytes())
		if e == 0 {
			p.head, p.tail = 0, 0
		} else {
			n = 0 // as on Linux, a piece that could not be copied whole stays
		}
		p.mu.Unlock()
		return n, e
	}
	wasFull := p.full()
	n, e := p.take(v)
	tell := wasFull && !p.full()
	p.mu.Unlock()
	if tell {
		p.queue.Notify(writable)
	}
	return n, e
}

func (p *Pipe) write(c *caller.Ctx, f *vfs.File, v *uio.Vec) (done int, e linux.Errno) {
	if v.Len() == 0 {
		return 0, 0
	}
	var h how
	if f.Flags()&linux.O_DIRECT != 0 {
		h.flags = packet
	}
	p.mu.Lock()
	if s := &p.ring[0]; p.tail == 0 && v.Len() <= page && s.frame != 0 && p.readers > 0 && h.flags == 0 {
		// A small message into an empty pipe.
		n := v.Len()
		if _, e = v.CopyIn(s.frame.Bytes()[:n]); e != 0 {
			p.mu.Unlock()
			return 0, e
		}
		s.off, s.n, s.flags = 0, uint16(n), 0
		p.tail = 1
		p.mu.Unlock()
		p.queue.Notify(readable)
		return n, 0
	}
	h.nonblock, h.merge = f.NonBlock(), true
	done, told, e := p.fill(c, v, &h)
	p.mu.Unlock()
	return p.filled(c, done, told, e)
}

// how says how bytes come into a pipe.
type how struct {
	flags    uint8              // of new slots
	merge    bool               // what is left of whole pages may go behind the last bytes
	nonblock bool               // it does not wait for room
	once     bool               // it does not wait for room for the rest
	part     func(*uio.Vec) int // the most for the next slot, where that is not a page
}

// fill moves the bytes of v into the pipe, and returns how many, and of how many readers
// know. Called with mu held, which it gives up while it waits; filled does the rest.
func (p *Pipe) fill(c *caller.Ctx, v *uio.Vec, h *how) (done, told int, e linux.Errno) {
	interrupted := false
	if h.merge && p.readers > 0 {
		done, e = p.append(v)
	}
	for e == 0 && v.Len() > 0 {
		if p.readers == 0 {
			e = linux.EPIPE
			break
		}
		if !p.full() {
			var n int
			n, e = p.put(v, h)
			done += n
			if e == 0 {
				continue
			}
			if e != linux.ENOMEM || p.head == p.tail {
				break
			}
			e = 0 // as a full pipe: what is in it has its memory
		}
		if h.once && done > 0 {
			break
		}
		if h.nonblock {
			e = linux.EAGAIN
			break
		}
		if interrupted {
			e = linux.ERESTARTSYS
			break
		}
		interrupted = p.sleep(c, writable, done > told)
		told = done
	}
	return done, told, e
}

// filled tells readers of what fill put into the pipe, and returns the call's result.
func (p *Pipe) filled(c *caller.Ctx, done, told int, e linux.Errno) (int, linux.Errno) {
	if done > told {
		p.queue.Notify(readable)
	}
	if e == linux.EPIPE {
		caller.SignalSelf(c, sigPipe)
	}
	if done > 0 {
		e = 0
	}
	return done, e
}

const sigPipe = 13

// append puts what v has beyond whole pages behind the last bytes of the pipe, if it fits
// into their frame. Called with mu held.
func (p *Pipe) append(v *uio.Vec) (int, linux.Errno) {
	n := v.Len() % page
	if n == 0 || p.head == p.tail {
		return 0, 0
	}
	s := p.at(p.tail - 1)
	end := int(s.off) + int(s.n)
	if s.flags != 0 || end+n > page {
		return 0, 0
	}
	if _, e := v.CopyIn(s.frame.Bytes()[end : end+n]); e != 0 {
		return 0, e
	}
	s.n += uint16(n)
	return n, 0
}

// put copies up to a page into the next slot, which is free. What cannot be read whole
// does not count. Called with mu held.
func (p *Pipe) put(v *uio.Vec, h *how) (int, linux.Errno) {
	s := p.at(p.tail)
	if s.frame == 0 {
		f, ok := p.takeFrame()
		if !ok {
			return 0, linux.ENOMEM
		}
		s.frame = f
	}
	n := min(v.Len(), page)
	if h.part != nil {
		n = min(n, h.part(v))
	}
	if _, e := v.CopyIn(s.frame.Bytes()[:n]); e != 0 {
		return 0, e
	}
	s.off, s.n, s.flags = 0, uint16(n), h.flags
	p.tail++
	return n, 0
}

// inPipes is the frames of all pipes, which users share: they may have a quarter of
// memory, since nobody who could be killed for it owns them.
var inPipes = accounts.LatePool{Make: func() *accounts.Pool { return accounts.NewPool(int64(mem.Total() / 4)) }}

func (p *Pipe) takeFrame() (mem.Frame, bool) {
	if !inPipes.Get().Charge(p.user, 1) {
		return 0, false
	}
	f, ok := mem.Alloc()
	if !ok {
		inPipes.Get().Release(p.user, 1)
	}
	return f, ok
}

func (p *Pipe) giveFrame(f mem.Frame) {
	f.Put()
	inPipes.Get().Release(p.user, 1)
}

// take moves bytes from the head into v: what fits, or one packet, of which
// the rest is lost. Called with mu held and the pipe not empty.
func (p *Pipe) take(v *uio.Vec) (n int, e linux.Errno) {
	for p.head != p.tail && v.Len() > 0 {
		s := p.at(p.head)
		m := min(int(s.n), v.Len())
		if _, e = v.CopyOut(s.bytes()[:m]); e != 0 {
			break // a piece that could not be copied whole stays
		}
		n += m
		whole := s.flags&packet != 0
		if s.used(m) || whole {
			p.head++
		}
		if whole {
			break
		}
	}
	if n > 0 {
		e = 0
	}
	p.trim()
	return n, e
}

// trim starts an empty ring over, and gives back all frames but the first. Called with mu
// held.
func (p *Pipe) trim() {
	if p.head != p.tail {
		return
	}
	if p.tail > 1 {
		p.drop(1)
	}
	p.head, p.tail = 0, 0
}

// drop gives back the frames of an empty pipe from index i on; called with mu held.
func (p *Pipe) drop(i int) {
	for ; i < len(p.ring); i++ {
		if s := &p.ring[i]; s.frame != 0 {
			p.giveFrame(s.frame)
			s.frame = 0
		}
	}
}

// Size returns the capacity in bytes (F_GETPIPE_SZ).
func (p *Pipe) Size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ring) * page
}

// SetSize changes the capacity to n rounded up (F_SETPIPE_SZ): EPERM beyond
// what c may have, EBUSY if the pipe holds more.
func (p *Pipe) SetSize(c *caller.Ctx, n uint64) (int, linux.Errno) {
	if n == 0 {
		n = 1
	}
	if n > 1<<31 {
		return 0, linux.EINVAL
	}
	pages := (n + page - 1) / page
	pages = 1 << bits.Len64(pages-1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if pages*page > uint64(settings.PipeMaxSize.Get()) && int(pages) > len(p.ring) && !c.Cred().Has(creds.CapSysResource) {
		return 0, linux.EPERM
	}
	if pages*page > maxRootSize {
		return 0, linux.ENOMEM
	}
	if more := int64(pages) - int64(len(p.ring)); more > 0 && !privileged(c.Cred()) &&
		(tooMany(slots.Of(p.user)+more, &settings.PipePagesSoft) || tooMany(slots.Of(p.user)+more, &settings.PipePagesHard)) {
		return 0, linux.EPERM
	}
	if p.busy || uint64(p.tail-p.head) > pages {
		return 0, linux.EBUSY
	}
	before := len(p.ring)
	p.move(int(pages))
	slots.Force(p.user, int64(len(p.ring)-before))
	p.queue.Notify(writable)
	return int(pages) * page, 0
}

// move makes the ring n slots long and lets it begin with what the pipe holds. Called
// with mu held.
func (p *Pipe) move(n int) {
	ring := make([]slot, n)
	used := p.tail - p.head
	for i := range used {
		s := p.at(p.head + i)
		ring[i] = *s
		s.frame = 0
	}
	p.drop(0)
	p.ring, p.head, p.tail = ring, 0, used
}
