// Package pipe is pipes and fifos.
//
// A Pipe is a ring of bytes in page frames. Frames are taken from mem when a
// write reaches them; when the last byte is read the ring starts over at its
// first frame and gives the others back, so an idle pipe keeps one page and an
// exchange of small messages stays in it.
//
// Invariants: head ≤ tail ≤ head + capacity; byte position x is in frame
// x/4096 modulo the number of frames. packets lists, in order, the position
// ranges that were written with O_DIRECT.
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
	head, tail uint64      // positions of the next byte to read and to write; guarded by mu
	frames     []mem.Frame // the ring, a power of two long; 0 = not taken yet; guarded by mu
	packets    []span      // guarded by mu
	busy       bool        // somebody has the front out: head stays; guarded by mu
	readers    int         // open files that can read; guarded by mu
	writers    int         // open files that can write; guarded by mu
	rOpens     uint64      // how often a reader was opened; guarded by mu
	wOpens     uint64      // how often a writer was opened; guarded by mu
}

// span is the bytes from start to before end.
type span struct{ start, end uint64 }

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
	p.frames = make([]mem.Frame, n)
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

// free is the room left in bytes; called with mu held.
func (p *Pipe) free() uint64 { return uint64(len(p.frames))*page - (p.tail - p.head) }

// full reports whether a writer must wait before it is told of room: a write
// of PIPE_BUF would not fit. Called with mu held.
func (p *Pipe) full() bool {
	return p.free() < linux.PIPE_BUF || len(p.packets) >= len(p.frames)
}

// room returns how much of a write may go in now: all of an atomic one or
// nothing. Called with mu held.
func (p *Pipe) room(n int) int {
	free := p.free()
	if len(p.packets) >= len(p.frames) || n <= linux.PIPE_BUF && uint64(n) > free {
		return 0
	}
	return int(min(uint64(n), free))
}

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
	if p.tail <= page && v.Len() >= int(p.tail-p.head) && len(p.frames) > 1 && len(p.packets) == 0 {
		// A small message, read whole; nobody can be waiting for room.
		n, e := v.CopyOut(p.frames[0].Bytes()[p.head:p.tail])
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
	packet := f.Flags()&linux.O_DIRECT != 0
	p.mu.Lock()
	if n := v.Len(); p.tail == 0 && n <= page && p.frames[0] != 0 && p.readers > 0 && !packet {
		// A small message into an empty pipe.
		if _, e = v.CopyIn(p.frames[0].Bytes()[:n]); e != 0 {
			p.mu.Unlock()
			return 0, e
		}
		p.tail = uint64(n)
		p.mu.Unlock()
		p.queue.Notify(readable)
		return n, 0
	}
	told, interrupted := 0, false
	for {
		if p.readers == 0 {
			e = linux.EPIPE
			break
		}
		if room := p.room(v.Len()); room > 0 {
			var n int
			n, e = p.put(v, room, packet)
			done += n
			if e != linux.ENOMEM || p.head == p.tail {
				if e != 0 || v.Len() == 0 {
					break
				}
				continue
			}
			e = 0 // a full pipe: what is in it has its memory
		}
		if f.NonBlock() {
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
	p.mu.Unlock()
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

// put copies n bytes, which fit, to the tail; with packet it makes one packet
// of up to PIPE_BUF. A chunk that cannot be read whole does not count. Called
// with mu held.
func (p *Pipe) put(v *uio.Vec, n int, packet bool) (int, linux.Errno) {
	if packet {
		n = min(n, linux.PIPE_BUF)
	}
	start := p.tail
	end := start + uint64(n)
	if n <= linux.PIPE_BUF && start/page != (end-1)/page && p.frameAt(end-1) == nil {
		return 0, linux.ENOMEM // before anything is taken from v
	}
	for p.tail < end {
		slot := p.frameAt(p.tail)
		if slot == nil {
			if p.tail > start {
				return int(p.tail - start), 0
			}
			return 0, linux.ENOMEM
		}
		off := p.tail % page
		m := min(end-p.tail, page-off)
		if _, e := v.CopyIn(slot.Bytes()[off : off+m]); e != 0 {
			return p.undo(start, n, e)
		}
		p.tail += m
	}
	if packet {
		p.packets = append(p.packets, span{start, p.tail})
	}
	return n, 0
}

// inPipes is the frames of all pipes, which users share: they may have a quarter of
// memory, since nobody who could be killed for it owns them.
var inPipes = accounts.LatePool{Make: func() *accounts.Pool { return accounts.NewPool(int64(mem.Total() / 4)) }}

// frameAt returns the frame of a position, which it takes if need be; nil if there is
// none. Called with mu held.
func (p *Pipe) frameAt(pos uint64) *mem.Frame {
	slot := &p.frames[pos/page&uint64(len(p.frames)-1)]
	if *slot == 0 {
		f, ok := p.takeFrame()
		if !ok {
			return nil
		}
		*slot = f
	}
	return slot
}

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

// undo takes a failed atomic write back, and keeps what was done of a longer one.
func (p *Pipe) undo(start uint64, n int, e linux.Errno) (int, linux.Errno) {
	if n <= linux.PIPE_BUF {
		p.tail = start
	}
	return int(p.tail - start), e
}

// take moves bytes from the head into v: what fits, or one packet, of which
// the rest is lost. Called with mu held and the pipe not empty.
func (p *Pipe) take(v *uio.Vec) (n int, e linux.Errno) {
	end := min(p.tail, p.head+uint64(v.Len()))
	whole := end // where the head goes if all is copied
	if len(p.packets) > 0 {
		if k := p.packets[0]; k.start == p.head {
			end, whole = min(end, k.end), k.end
		} else {
			end = min(end, k.start)
			whole = end
		}
	}
	for p.head < end {
		off := p.head % page
		m := min(end-p.head, page-off)
		frame := p.frames[p.head/page&uint64(len(p.frames)-1)]
		var k int
		if k, e = v.CopyOut(frame.Bytes()[off : off+m]); e != 0 {
			break // a piece that could not be copied whole stays
		}
		n += k
		p.head += uint64(k)
	}
	if e == 0 {
		p.head = whole
	}
	if n > 0 {
		e = 0
	}
	p.trim()
	return n, e
}

// trim drops packets that were read and, from an empty pipe, all frames but
// the first. Called with mu held.
func (p *Pipe) trim() {
	if k := p.packets; len(k) > 0 {
		if k[0].end <= p.head {
			k = k[:copy(k, k[1:])]
		} else if k[0].start < p.head {
			k[0].start = p.head
		}
		p.packets = k
	}
	if p.head == p.tail {
		if p.tail > page {
			p.drop(1)
		}
		p.head, p.tail = 0, 0
	}
}

// drop gives back the frames of an empty pipe from index i on; called with mu held.
func (p *Pipe) drop(i int) {
	for ; i < len(p.frames); i++ {
		if p.frames[i] != 0 {
			p.giveFrame(p.frames[i])
			p.frames[i] = 0
		}
	}
}

// Size returns the capacity in bytes (F_GETPIPE_SZ).
func (p *Pipe) Size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.frames) * page
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
	if pages*page > uint64(settings.PipeMaxSize.Get()) && int(pages) > len(p.frames) && !c.Cred().Has(creds.CapSysResource) {
		return 0, linux.EPERM
	}
	if pages*page > maxRootSize {
		return 0, linux.ENOMEM
	}
	if more := int64(pages) - int64(len(p.frames)); more > 0 && !privileged(c.Cred()) &&
		(tooMany(slots.Of(p.user)+more, &settings.PipePagesSoft) || tooMany(slots.Of(p.user)+more, &settings.PipePagesHard)) {
		return 0, linux.EPERM
	}
	if used := p.tail - p.head; p.busy || used > pages*page || uint64(len(p.packets)) > pages {
		return 0, linux.EBUSY
	}
	before := len(p.frames)
	if e := p.move(int(pages)); e != 0 {
		return 0, e
	}
	slots.Force(p.user, int64(len(p.frames)-before))
	p.queue.Notify(writable)
	return int(pages) * page, 0
}

// move copies what the pipe holds into a ring of so many frames, from position
// 0 on. Called with mu held.
func (p *Pipe) move(frames int) linux.Errno {
	old, was := p.frames, span{p.head, p.tail}
	p.frames, p.head, p.tail = make([]mem.Frame, frames), 0, 0
	for at := was.start; at < was.end; {
		off := at % page
		m := min(was.end-at, page-off)
		b := old[at/page&uint64(len(old)-1)].Bytes()[off : off+m]
		var v uio.Vec
		v.InitBytes(b)
		if k, e := p.put(&v, int(m), false); e != 0 || k < int(m) {
			p.drop(0)
			p.frames, p.head, p.tail = old, was.start, was.end
			return linux.ENOMEM
		}
		at += m
	}
	for i := range p.packets {
		p.packets[i].start -= was.start
		p.packets[i].end -= was.start
	}
	for _, f := range old {
		if f != 0 {
			p.giveFrame(f)
		}
	}
	return 0
}
