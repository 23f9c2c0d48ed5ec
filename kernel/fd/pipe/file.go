package pipe

import (
	"strconv"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

// end is an open end of a fifo: it reads, writes or both, as it was opened.
type end struct {
	p    *Pipe
	r, w bool // immutable
	// seen is Pipe.wOpens when a reader was opened with no writer about: as
	// long as it holds there is no hang-up to report. Immutable.
	seen uint64
}

// anon is an open end of a pipe(2): a file without a name.
type anon struct{ end }

// Pair returns both ends of a new pipe; flags are O_NONBLOCK and O_DIRECT, which only
// the writer keeps. ENFILE: the user has too many.
func Pair(c *caller.Ctx, flags uint32) (r, w *vfs.File, e linux.Errno) {
	p := New(c)
	if p == nil {
		return nil, nil, linux.ENFILE
	}
	p.readers, p.writers, p.rOpens, p.wOpens = 1, 1, 1, 1
	slots.Force(p.user, int64(len(p.ring)))
	flags &= linux.O_NONBLOCK | linux.O_DIRECT
	return vfs.NewFile(&anon{end{p: p, r: true}}, linux.O_RDONLY|flags&^linux.O_DIRECT),
		vfs.NewFile(&anon{end{p: p, w: true}}, linux.O_WRONLY|flags), 0
}

// Open opens a fifo as fifo(7) tells: a reader waits for a writer and the
// other way round, unless O_NONBLOCK or O_RDWR.
func (p *Pipe) Open(c *caller.Ctx, flags uint32) (vfs.Ops, linux.Errno) {
	x, e := p.open(c, flags, true)
	if e != 0 {
		return nil, e
	}
	return x, 0
}

// open makes another end. A pipe without a name has had both ends since it was
// made, so opening it once more never waits: meet is for fifos.
func (p *Pipe) open(c *caller.Ctx, flags uint32, meet bool) (*end, linux.Errno) {
	x := &end{p: p}
	switch flags & linux.O_ACCMODE {
	case linux.O_RDONLY:
		x.r = true
	case linux.O_WRONLY:
		x.w = true
	case linux.O_RDWR:
		x.r, x.w = true, true
	default:
		return nil, linux.EINVAL
	}
	nonblock := flags&linux.O_NONBLOCK != 0
	p.mu.Lock()
	if meet && x.w && !x.r && nonblock && p.readers == 0 {
		p.mu.Unlock()
		return nil, linux.ENXIO
	}
	if p.readers+p.writers == 0 {
		slots.Force(p.user, int64(len(p.ring)))
	}
	if x.r {
		p.readers++
		p.rOpens++
	}
	if x.w {
		p.writers++
		p.wOpens++
	}
	rOpens, wOpens := p.rOpens, p.wOpens
	waitR := meet && x.w && !x.r && p.readers == 0
	waitW := meet && x.r && !x.w && p.writers == 0
	if waitW && nonblock {
		x.seen, waitW = wOpens, false
	}
	p.mu.Unlock()
	// Whoever waits in Open for this side hears of it.
	p.queue.Notify(readable | writable)
	var e linux.Errno
	if waitR {
		e = p.partner(c, &p.rOpens, rOpens)
	} else if waitW {
		e = p.partner(c, &p.wOpens, wOpens)
	}
	if e == 0 && flags&linux.O_DIRECT != 0 {
		e = linux.EINVAL // packets come with pipe2 and F_SETFL only
	}
	if e != 0 {
		x.Release(nil)
		return nil, e
	}
	return x, 0
}

// partner waits until the other side was opened once more than was times, even
// if it is closed again by then.
func (p *Pipe) partner(c *caller.Ctx, opens *uint64, was uint64) linux.Errno {
	p.mu.Lock()
	defer p.mu.Unlock()
	for interrupted := false; *opens == was; {
		if interrupted {
			return linux.ERESTARTSYS
		}
		interrupted = p.sleep(c, readable|writable, false)
	}
	return 0
}

// OpenFIFO is vfs.OpenFIFO.
func OpenFIFO(c *caller.Ctx, i *vfs.Inode, flags uint32) (vfs.Ops, linux.Errno) {
	p, ok := i.PrivateOr(func() any {
		if p := New(c); p != nil {
			return p
		}
		return nil
	}).(*Pipe)
	if !ok {
		if p == nil && i.PrivateOr(func() any { return nil }) == nil {
			return nil, linux.ENOMEM
		}
		return nil, linux.ENXIO
	}
	return p.Open(c, flags)
}

// Reopen opens the pipe behind /proc/PID/fd/N once more.
func (x *anon) Reopen(c *caller.Ctx, _ *vfs.File, flags uint32) (vfs.Ops, linux.Errno) {
	y, e := x.p.open(c, flags, false)
	if e != 0 {
		return nil, e
	}
	return &anon{*y}, 0
}

// Ready is what poll reports.
func (x *end) Ready(*vfs.File) wait.Events {
	p := x.p
	var ev wait.Events
	p.mu.Lock()
	if x.r {
		if p.head != p.tail {
			ev |= readable
		}
		if p.writers == 0 && p.wOpens != x.seen {
			ev |= wait.Hup
		}
	}
	if x.w {
		if !p.full() {
			ev |= writable
		}
		if p.readers == 0 {
			ev |= wait.Err
		}
	}
	p.mu.Unlock()
	return ev
}

// Queue is where readiness is announced.
func (x *end) Queue(*vfs.File) *wait.Queue { return &x.p.queue }

// Ioctl knows FIONREAD.
func (x *end) Ioctl(c *caller.Ctx, _ *vfs.File, cmd uint32, arg uint64) (uint64, linux.Errno) {
	if cmd != linux.FIONREAD {
		return 0, linux.ENOTTY
	}
	x.p.mu.Lock()
	n := 0
	for i := x.p.head; i != x.p.tail; i++ {
		n += int(x.p.at(i).n)
	}
	x.p.mu.Unlock()
	_, e := c.Mem.CopyOut(uio.Addr(arg), []byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)})
	return 0, e
}

// Release closes the end; the last one to go throws the content away.
func (x *end) Release(*vfs.File) {
	p := x.p
	p.mu.Lock()
	if x.r {
		p.readers--
	}
	if x.w {
		p.writers--
	}
	last := p.readers == 0 && p.writers == 0
	if last {
		p.drop(0)
		p.head, p.tail = 0, 0
		slots.Release(p.user, int64(len(p.ring)))
	}
	tell := !last && (p.readers == 0 || p.writers == 0)
	p.mu.Unlock()
	if tell {
		p.queue.Notify(readable | writable | wait.Err | wait.Hup)
	}
}

// PipeOf returns the pipe behind an open file, or nil.
func PipeOf(f *vfs.File) *Pipe {
	switch x := f.Ops.(type) {
	case *anon:
		return x.p
	case *end:
		return x.p
	}
	return nil
}

// Stat answers fstat.
func (x *anon) Stat(c *caller.Ctx, _ *vfs.File, st *linux.Stat) linux.Errno {
	t := linux.NsecToTimespec(x.p.ctime)
	*st = linux.Stat{
		Dev: vfs.AnonDev(), Ino: x.p.ino, Nlink: 1, Mode: linux.S_IFIFO | 0o600,
		UID: x.p.uid, GID: x.p.gid, Blksize: page,
		Atime: t, Mtime: t, Ctime: t,
	}
	x.p.attr.Overlay(st)
	return 0
}

// SetAttr is fchmod and fchown.
func (x *anon) SetAttr(a *vfs.Attr) { x.p.attr.SetAttr(a) }

// Name is the text of /proc/self/fd/N.
func (x *anon) Name(*vfs.File) string {
	return "pipe:[" + strconv.FormatUint(x.p.ino, 10) + "]"
}

// LockInode is where the locks of both ends are.
func (x *anon) LockInode() *vfs.Inode {
	if i := x.p.locks.Load(); i != nil {
		return i
	}
	x.p.locks.CompareAndSwap(nil, new(vfs.Inode))
	return x.p.locks.Load()
}

// Holds adds the end, and its part of the pipe.
func (e *end) Holds(s *ledger.Sum) {
	s.Add(ledger.Pipes, ledger.Of[end]())
	p := e.p
	p.mu.Lock()
	defer p.mu.Unlock()
	own := ledger.Scratch()
	own.Add(ledger.Pipes, ledger.Of[Pipe]()+ledger.Array[slot](cap(p.ring)))
	for i := range p.ring {
		if p.ring[i].frame != 0 {
			own.Add(ledger.PipePages, mem.PageSize)
		}
	}
	if p.locks.Load() != nil {
		own.Add(ledger.Locks, ledger.Of[vfs.Inode]())
	}
	ends := int64(0)
	if e.r {
		ends++
	}
	if e.w {
		ends++
	}
	s.AddPartDone(own, ends, int64(p.readers+p.writers))
}
