package p9

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
)

// basicAttrs asks for all that stat(2) shows, and the time of creation.
const basicAttrs = 0x7ff | 0x800

// Attr is what a server says of a file; Stat.Dev is not used.
type Attr struct {
	QID   QID
	Stat  linux.Stat
	Btime int64
}

// Getattr returns a file's attributes.
func (c *Client) Getattr(ctx *caller.Ctx, fid uint32, a *Attr) linux.Errno {
	w := waiterOf(ctx)
	r, e := c.begin(&w, tgetattr)
	var d decoder
	if e == 0 {
		r.u32(fid)
		r.u64(basicAttrs)
		if d, e = c.call(&w, r, 0); e == 0 {
			a.read(&d)
		}
	}
	return c.finish(&w, r, &d, e)
}

// read takes the attributes out of a reply.
func (a *Attr) read(d *decoder) {
	st := &a.Stat
	d.u64() // which of them are valid: all that are asked for
	a.QID = d.qid()
	st.Mode, st.UID, st.GID, st.Nlink = d.u32(), d.u32(), d.u32(), d.u64()
	st.Rdev, st.Size, st.Blksize, st.Blocks = d.u64(), int64(d.u64()), int64(d.u64()), int64(d.u64())
	st.Atime, st.Mtime, st.Ctime = d.time(), d.time(), d.time()
	a.Btime = d.time().Nano()
	st.Ino = a.QID.Path
	st.Nlink = min(st.Nlink, 1<<31)
	if st.Size < 0 || st.Blocks < 0 {
		d.bad = true
	}
	switch st.Mode & linux.S_IFMT {
	case linux.S_IFREG, linux.S_IFDIR, linux.S_IFLNK, linux.S_IFCHR, linux.S_IFBLK, linux.S_IFIFO, linux.S_IFSOCK:
	default:
		d.bad = true
	}
	st.Mode &= linux.S_IFMT | 0o7777
}

// maxSeconds keeps times within what nanoseconds in 64 bits can say.
const maxSeconds = 1 << 33

// time reads a time.
func (d *decoder) time() linux.Timespec {
	t := linux.Timespec{Sec: int64(d.u64()), Nsec: int64(d.u64())}
	if t.Sec < -maxSeconds || t.Sec > maxSeconds || t.Nsec < 0 || t.Nsec >= 1e9 {
		return linux.Timespec{}
	}
	return t
}

// Bits of SetAttr.Valid.
const (
	SetMode = 1 << iota
	SetUID
	SetGID
	SetSize
	SetAtime
	SetMtime
	SetCtime
	SetAtimeTo // to the given time, not now
	SetMtimeTo
)

// SetAttr is a change of attributes.
type SetAttr struct {
	Valid, Mode, UID, GID uint32
	Size                  int64
	Atime, Mtime          linux.Timespec
}

// Setattr changes attributes.
func (c *Client) Setattr(ctx *caller.Ctx, fid uint32, a *SetAttr) linux.Errno {
	return c.ask(ctx, tsetattr, func(r *request) {
		r.u32(fid)
		r.u32(a.Valid)
		r.u32(a.Mode)
		r.u32(a.UID)
		r.u32(a.GID)
		r.u64(uint64(a.Size))
		r.u64(uint64(a.Atime.Sec))
		r.u64(uint64(a.Atime.Nsec))
		r.u64(uint64(a.Mtime.Sec))
		r.u64(uint64(a.Mtime.Nsec))
	})
}

// Statfs fills in what the server says of its file system.
func (c *Client) Statfs(ctx *caller.Ctx, fid uint32, st *linux.Statfs) linux.Errno {
	w := waiterOf(ctx)
	r, e := c.begin(&w, tstatfs)
	var d decoder
	if e == 0 {
		r.u32(fid)
		if d, e = c.call(&w, r, 0); e == 0 {
			d.u32() // the host's type
			bsize := int64(d.u32())
			x := linux.Statfs{Blocks: d.u64(), Bfree: d.u64(), Bavail: d.u64(), Files: d.u64(), Ffree: d.u64()}
			d.u64() // the host's number
			names := int64(d.u32())
			if !d.bad && bsize > 0 {
				st.Bsize, st.Frsize = bsize, bsize
				st.Blocks, st.Bfree, st.Bavail, st.Files, st.Ffree = x.Blocks, x.Bfree, x.Bavail, x.Files, x.Ffree
				st.Namelen = min(names, linux.NAME_MAX)
			}
		}
	}
	return c.finish(&w, r, &d, e)
}

// XattrWalk gives an extended attribute, or with an empty name their list, a number to
// read it by, and returns its size.
func (c *Client) XattrWalk(ctx *caller.Ctx, of uint32, name string) (fid uint32, size uint64, e linux.Errno) {
	w := waiterOf(ctx)
	r, e := c.begin(&w, txattrwalk)
	var d decoder
	fid = NoFID
	if e == 0 {
		fid = c.newFID()
		r.made = fid
		r.u32(of)
		r.u32(fid)
		r.str(name)
		d, e = c.call(&w, r, 0)
		if size = d.u64(); size > linux.XATTR_SIZE_MAX {
			d.bad = true
		}
	}
	fid, _, e = c.made(&w, r, &d, fid, e, QID{})
	return fid, size, e
}

// XattrCreate turns fid, a file's number of its own, into that of one of its extended
// attributes that is about to be written, of size bytes; none removes it.
func (c *Client) XattrCreate(ctx *caller.Ctx, fid uint32, name string, size uint64, flags uint32) linux.Errno {
	return c.ask(ctx, txattrcreate, func(r *request) {
		r.u32(fid)
		r.str(name)
		r.u64(size)
		r.u32(flags)
	})
}

// ClunkNow is Clunk that waits and tells whether it worked: a written attribute is stored
// by it.
func (c *Client) ClunkNow(ctx *caller.Ctx, fid uint32) linux.Errno {
	w := waiterOf(ctx)
	r, e := c.begin(&w, tclunk)
	var d decoder
	if e == 0 {
		r.u32(fid)
		d, e = c.call(&w, r, 0)
	}
	isLost := d.lost
	e = c.finish(&w, r, &d, e)
	if !isLost && e != linux.EIO {
		c.freeFID(fid)
	}
	return e
}
