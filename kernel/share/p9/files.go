package p9

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
)

// version is the only one that is spoken.
const version = "9P2000.L"

// minMsize is the smallest size of a message that any name and any link fits in.
const minMsize = 8 << 10

// Begin agrees with the server on the version and the size of messages, at most msize, and
// returns the number of the folder that it serves.
func (c *Client) Begin(ctx *caller.Ctx, msize int) (root uint32, q QID, e linux.Errno) {
	w := waiterOf(ctx)
	msize = min(max(msize, minMsize), c.t.MaxSize())
	r, e := c.begin(&w, tversion)
	var d decoder
	if e == 0 {
		r.u32(uint32(msize))
		r.str(version)
		if d, e = c.call(&w, r, 0); e == 0 {
			n := d.u32()
			if v := d.str(len(version)); d.bad || v != version || n < minMsize || n > uint32(msize) {
				e = linux.EPROTONOSUPPORT
			} else {
				msize = int(n)
			}
		}
	}
	if e = c.finish(&w, r, &d, e); e != 0 {
		return NoFID, q, e
	}
	c.msize = msize
	root = c.newFID()
	q, e = c.attach(ctx, root)
	return root, q, e
}

func (c *Client) attach(ctx *caller.Ctx, root uint32) (q QID, e linux.Errno) {
	w := waiterOf(ctx)
	r, e := c.begin(&w, tattach)
	var d decoder
	if e == 0 {
		r.u32(root)
		r.u32(NoFID) // no authentication
		r.str("root")
		r.str("")
		r.u32(0)
		d, e = c.call(&w, r, 0)
		q = d.qid()
	}
	return q, c.finish(&w, r, &d, e)
}

// MaxData is how many bytes a read or a write moves at most.
func (c *Client) MaxData() int { return c.msize - overhead }

// Walk finds a name in a directory, and gives what it leads to a number of its own. With
// an empty name that is the file itself.
func (c *Client) Walk(ctx *caller.Ctx, dir uint32, name string) (fid uint32, q QID, e linux.Errno) {
	w := waiterOf(ctx)
	r, e := c.begin(&w, twalk)
	var d decoder
	fid = NoFID
	if e == 0 {
		fid = c.newFID()
		r.made = fid
		r.u32(dir)
		r.u32(fid)
		want := uint16(0)
		if name == "" {
			r.u16(0)
		} else {
			want = 1
			r.u16(1)
			r.str(name)
		}
		d, e = c.call(&w, r, 0)
		if e == 0 && d.u16() != want {
			d.bad = true
		}
		if want == 1 {
			q = d.qid()
		}
	}
	return c.made(&w, r, &d, fid, e, q)
}

// made ends a request that gives a file a number, which is free again where it failed.
func (c *Client) made(w *waiter, r *request, d *decoder, fid uint32, e linux.Errno, q QID) (uint32, QID, linux.Errno) {
	isLost, bad := d.lost, d.bad && e == 0
	e = c.finish(w, r, d, e)
	switch {
	case e == 0:
		return fid, q, 0
	case isLost || fid == NoFID: // when the reply comes
	case bad || e == linux.EIO: // the server may have made it
		c.Clunk(fid)
	default:
		c.freeFID(fid)
	}
	return NoFID, QID{}, e
}

// ask sends a request whose reply has nothing in it.
func (c *Client) ask(ctx *caller.Ctx, kind uint8, put func(r *request)) linux.Errno {
	w := waiterOf(ctx)
	r, e := c.begin(&w, kind)
	var d decoder
	if e == 0 {
		put(r)
		d, e = c.call(&w, r, 0)
	}
	return c.finish(&w, r, &d, e)
}

// Open opens what fid leads to; flags are O_*, whose numbers the protocol has taken over.
func (c *Client) Open(ctx *caller.Ctx, fid, flags uint32) linux.Errno {
	return c.ask(ctx, tlopen, func(r *request) {
		r.u32(fid)
		r.u32(flags)
	})
}

// Create makes a file in the directory dir, and opens it: fid, which was dir's, is then
// the open file's.
func (c *Client) Create(ctx *caller.Ctx, fid uint32, name string, flags, mode, gid uint32) linux.Errno {
	return c.ask(ctx, tlcreate, func(r *request) {
		r.u32(fid)
		r.str(name)
		r.u32(flags)
		r.u32(mode)
		r.u32(gid)
	})
}

// Mkdir makes a directory.
func (c *Client) Mkdir(ctx *caller.Ctx, dir uint32, name string, mode, gid uint32) linux.Errno {
	return c.ask(ctx, tmkdir, func(r *request) {
		r.u32(dir)
		r.str(name)
		r.u32(mode)
		r.u32(gid)
	})
}

// Mknod makes a device, a FIFO or a socket.
func (c *Client) Mknod(ctx *caller.Ctx, dir uint32, name string, mode, major, minor, gid uint32) linux.Errno {
	return c.ask(ctx, tmknod, func(r *request) {
		r.u32(dir)
		r.str(name)
		r.u32(mode)
		r.u32(major)
		r.u32(minor)
		r.u32(gid)
	})
}

// Symlink makes a symbolic link.
func (c *Client) Symlink(ctx *caller.Ctx, dir uint32, name, target string, gid uint32) linux.Errno {
	return c.ask(ctx, tsymlink, func(r *request) {
		r.u32(dir)
		r.str(name)
		r.str(target)
		r.u32(gid)
	})
}

// Link gives a file another name.
func (c *Client) Link(ctx *caller.Ctx, dir, fid uint32, name string) linux.Errno {
	return c.ask(ctx, tlink, func(r *request) {
		r.u32(dir)
		r.u32(fid)
		r.str(name)
	})
}

// Unlink takes a name away, with dir that of a directory.
func (c *Client) Unlink(ctx *caller.Ctx, dir uint32, name string, isDir bool) linux.Errno {
	return c.ask(ctx, tunlinkat, func(r *request) {
		r.u32(dir)
		r.str(name)
		if isDir {
			r.u32(0x200) // AT_REMOVEDIR
		} else {
			r.u32(0)
		}
	})
}

// Rename moves a name.
func (c *Client) Rename(ctx *caller.Ctx, dir uint32, name string, to uint32, as string) linux.Errno {
	return c.ask(ctx, trenameat, func(r *request) {
		r.u32(dir)
		r.str(name)
		r.u32(to)
		r.str(as)
	})
}

// Fsync makes an open file durable on the host.
func (c *Client) Fsync(ctx *caller.Ctx, fid uint32, dataOnly bool) linux.Errno {
	return c.ask(ctx, tfsync, func(r *request) {
		r.u32(fid)
		if dataOnly {
			r.u32(1)
		} else {
			r.u32(0)
		}
	})
}

// Readlink returns a symbolic link's text.
func (c *Client) Readlink(ctx *caller.Ctx, fid uint32) (text string, e linux.Errno) {
	w := waiterOf(ctx)
	r, e := c.begin(&w, treadlink)
	var d decoder
	if e == 0 {
		r.u32(fid)
		d, e = c.call(&w, r, linux.PATH_MAX)
		text = d.str(linux.PATH_MAX - 1)
	}
	return text, c.finish(&w, r, &d, e)
}

// Read reads n bytes at off into pages; fewer only at the end of the file.
func (c *Client) Read(ctx *caller.Ctx, fid uint32, pages [][]byte, off int64, n int) (done int, e linux.Errno) {
	for done < n {
		want := min(n-done, c.MaxData())
		got, e := c.readOnce(ctx, fid, pages, done, off+int64(done), want)
		if e != 0 && done == 0 {
			return 0, e
		}
		done += got
		if e != 0 || got < want {
			break
		}
	}
	return done, 0
}

// readOnce fills pages from byte at on with at most n bytes of the file.
func (c *Client) readOnce(ctx *caller.Ctx, fid uint32, pages [][]byte, at int, off int64, n int) (got int, e linux.Errno) {
	return c.readTo(ctx, fid, off, n, func(data []byte) {
		each(pages, at, len(data), func(p []byte) { data = data[copy(p, data):] })
	})
}

// ReadUser reads n bytes at off, at most MaxData, into user memory. Since the memory of the
// reply is held meanwhile, only pages are filled that need no fault: moved may be less
// than what the server gave.
func (c *Client) ReadUser(ctx *caller.Ctx, fid uint32, v *uio.Vec, off int64, n int) (got, moved int, e linux.Errno) {
	got, e = c.readTo(ctx, fid, off, n, func(data []byte) { moved = v.TryCopyOut(data) })
	return got, moved, e
}

// readTo reads at most n bytes of the file at off, gives to what the server sent, and returns how
// many bytes that was.
func (c *Client) readTo(ctx *caller.Ctx, fid uint32, off int64, n int, to func(data []byte)) (got int, e linux.Errno) {
	w := waiterOf(ctx)
	r, e := c.begin(&w, tread)
	var d decoder
	if e == 0 {
		r.u32(fid)
		r.u64(uint64(off))
		r.u32(uint32(n))
		if d, e = c.call(&w, r, n); e == 0 {
			count := d.u32()
			if count > uint32(n) {
				d.bad = true
			}
			data := d.take(int(count))
			got = len(data)
			to(data)
		}
	}
	return got, c.finish(&w, r, &d, e)
}

// WriteUser writes n bytes of user memory, at most MaxData, to off, or fewer, if pages
// have faults: took may be 0. It returns how many the server was given, and how many it took.
func (c *Client) WriteUser(ctx *caller.Ctx, fid uint32, v *uio.Vec, off int64, n int) (gave, took int, e linux.Errno) {
	w := waiterOf(ctx)
	r, e := c.begin(&w, twrite)
	var d decoder
	if e == 0 {
		r.u32(fid)
		r.u64(uint64(off))
		size := r.room(4)
		gave = v.TryCopyIn(r.room(n))
		r.encoder.n -= n - gave
		le.PutUint32(size, uint32(gave))
		if gave > 0 {
			if d, e = c.call(&w, r, 0); e == 0 {
				count := d.u32()
				if count > uint32(gave) {
					d.bad = true
				} else {
					took = int(count)
				}
			}
		}
	}
	return gave, took, c.finish(&w, r, &d, e)
}

// Write writes n bytes of pages to off, and returns how many the server took.
func (c *Client) Write(ctx *caller.Ctx, fid uint32, pages [][]byte, off int64, n int) (done int, e linux.Errno) {
	for done < n {
		want := min(n-done, c.MaxData())
		got, e := c.writeOnce(ctx, fid, pages, done, off+int64(done), want)
		if e != 0 && done == 0 {
			return 0, e
		}
		done += got
		if e != 0 || got < want {
			break
		}
	}
	return done, 0
}

func (c *Client) writeOnce(ctx *caller.Ctx, fid uint32, pages [][]byte, at int, off int64, n int) (got int, e linux.Errno) {
	w := waiterOf(ctx)
	r, e := c.begin(&w, twrite)
	var d decoder
	if e == 0 {
		r.u32(fid)
		r.u64(uint64(off))
		r.u32(uint32(n))
		each(pages, at, n, func(p []byte) { copy(r.room(len(p)), p) })
		if d, e = c.call(&w, r, 0); e == 0 {
			count := d.u32()
			if count > uint32(n) {
				d.bad = true
			} else {
				got = int(count)
			}
		}
	}
	return got, c.finish(&w, r, &d, e)
}

// each calls do for the pieces of pages that n bytes from byte at on are in.
func each(pages [][]byte, at, n int, do func(p []byte)) {
	for _, p := range pages {
		if at >= len(p) {
			at -= len(p)
			continue
		}
		k := min(len(p)-at, n)
		if k <= 0 {
			return
		}
		do(p[at : at+k])
		at, n = 0, n-k
	}
}

// Dirent is one name of a directory.
type Dirent struct {
	QID    QID
	Offset uint64 // of the next one
	Type   uint8  // DT_*
	Name   string
}

// Readdir calls emit for names from an offset on until it says false, and returns how many
// there were: none is the end. emit is called while no slot is held.
func (c *Client) Readdir(ctx *caller.Ctx, fid uint32, off uint64, page []byte, emit func(x *Dirent) bool) (n int, e linux.Errno) {
	w := waiterOf(ctx)
	r, e := c.begin(&w, treaddir)
	var d decoder
	got := 0
	if e == 0 {
		want := min(len(page), c.MaxData())
		r.u32(fid)
		r.u64(off)
		r.u32(uint32(want))
		if d, e = c.call(&w, r, want); e == 0 {
			count := d.u32()
			if count > uint32(want) {
				d.bad = true
			}
			got = copy(page, d.take(int(count)))
		}
	}
	if e = c.finish(&w, r, &d, e); e != 0 {
		return 0, e
	}
	list := decoder{b: page[:got]}
	var x Dirent
	for len(list.b) > 0 {
		x.QID, x.Offset, x.Type, x.Name = list.qid(), list.u64(), list.u8(), list.str(linux.NAME_MAX)
		if list.bad || !goodName(x.Name) || int64(x.Offset) < 0 {
			return n, linux.EIO
		}
		n++
		if !emit(&x) {
			break
		}
	}
	return n, 0
}

// goodName reports whether a directory may have the name.
func goodName(s string) bool {
	for i := range len(s) {
		if s[i] == '/' || s[i] == 0 {
			return false
		}
	}
	return s != ""
}
