package syscall

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fd/pipe"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/sock"
	"hardtack/kernel/process/proc"
)

var spliceCalls = []Call{
	{linux.SYS_splice, "splice", sysSplice, "works; bytes are copied"},
	{linux.SYS_tee, "tee", sysTee, "works; bytes are copied"},
	{linux.SYS_vmsplice, "vmsplice", sysVmsplice, "works; bytes are copied"},
}

// sysSplice is splice(int in, loff_t *offIn, int out, loff_t *offOut, size_t n, flags).
func sysSplice(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	flags := a.Uint(5)
	if flags&^linux.SPLICE_F_ALL != 0 {
		return 0, linux.EINVAL
	}
	if a[4] == 0 {
		return 0, 0
	}
	src, dst := t.FDs.Get(a.Int(0)), t.FDs.Get(a.Int(2))
	defer putFile(src)
	defer putFile(dst)
	if src == nil || dst == nil || src.IsPath() || dst.IsPath() {
		return 0, linux.EBADF
	}
	from, to := pipe.PipeOf(src), pipe.PipeOf(dst)
	if from != nil && a[1] != 0 || to != nil && a[3] != 0 {
		return 0, linux.ESPIPE
	}
	if !src.Readable() || !dst.Writable() {
		return 0, linux.EBADF
	}
	wait := flags&linux.SPLICE_F_NONBLOCK == 0
	var done int
	var e linux.Errno
	switch {
	case from != nil && to != nil:
		if from == to {
			return 0, linux.EINVAL
		}
		done, e = pipe.Tee(&t.Ctx, from, to, int(min(a[4], uio.MaxTransfer)), !wait || src.NonBlock() || dst.NonBlock(), true)
	case from != nil:
		done, e = spliceOut(t, from, dst, a.Addr(3), a[4], !wait || src.NonBlock())
	case to != nil:
		done, e = spliceIn(t, src, a.Addr(1), to, dst, a[4], !wait || dst.NonBlock())
	default:
		return 0, linux.EINVAL
	}
	return uint64(done), e
}

// position is the offset that a transfer of a file begins at: in user memory, or the
// file's own. It is not locked meanwhile, as on Linux: the transfer may wait long.
type position struct {
	f    *vfs.File
	addr uio.Addr
	off  int64
}

func beginAt(t *proc.Thread, f *vfs.File, addr uio.Addr) (p position, e linux.Errno) {
	p = position{f: f, addr: addr}
	if addr == 0 {
		if f.Seekable() {
			p.off = posOf(f)
		}
		return p, 0
	}
	p.off, e = readOffset(t, addr)
	if e == 0 && !f.Seekable() {
		e = linux.EINVAL
	}
	return p, e
}

// fits is the check of a transfer's length that Linux makes before anything else.
func (p *position) fits(n uint64) linux.Errno {
	if int64(n) < 0 || p.off+int64(n) < 0 {
		return linux.EINVAL
	}
	return 0
}

// end moves the position on by what was transferred.
func (p *position) end(t *proc.Thread, done int) linux.Errno {
	if p.addr != 0 {
		return writeWords(t, p.addr, p.off+int64(done))
	}
	if p.f.Seekable() && done > 0 {
		setPos(p.f, p.off+int64(done))
	}
	return 0
}

// spliceOut moves bytes of a pipe to a file. It does not wait for them if the file could
// not take them.
func spliceOut(t *proc.Thread, p *pipe.Pipe, dst *vfs.File, addr uio.Addr, n uint64, nonblock bool) (int, linux.Errno) {
	at, e := beginAt(t, dst, addr)
	if e == 0 && dst.Flags()&linux.O_APPEND != 0 {
		e = linux.EINVAL
	}
	if e == 0 {
		e = at.fits(n)
	}
	if e == 0 && !spliceInto(dst) {
		e = linux.EINVAL
	}
	if e != 0 {
		return 0, e
	}
	off := at.off
	done, e := p.SpliceTo(&t.Ctx, int(min(n, uio.MaxTransfer)), nonblock, func(b []byte) (int, linux.Errno) {
		done := 0
		for {
			t.Vec.InitBytes(b[done:])
			k, e := dst.Ops.Write(&t.Ctx, dst, &t.Vec, off)
			off += int64(k)
			// A file that did not take all is asked again: it says why.
			if done += k; e != 0 || k == 0 || done == len(b) || kindOf(dst) != linux.S_IFREG {
				return done, e
			}
		}
	})
	if e2 := at.end(t, done); e == 0 {
		e = e2
	}
	return done, e
}

// spliceIn moves what a file gives at once to a pipe. As on Linux it waits for room
// before it checks whether the file can give anything.
func spliceIn(t *proc.Thread, src *vfs.File, addr uio.Addr, p *pipe.Pipe, dst *vfs.File, n uint64, nonblock bool) (done int, e linux.Errno) {
	at, e := beginAt(t, src, addr)
	if e != 0 {
		return 0, e
	}
	room, e := p.AwaitRoom(&t.Ctx, nonblock)
	if e == 0 {
		e = at.fits(n)
	}
	if kindOf(src) == linux.S_IFREG { // the first slot takes what is left of its page
		room -= int(at.off % mem.PageSize)
	}
	if e == 0 && !spliceFrom(src) {
		e = linux.EINVAL
	}
	if e != 0 {
		return 0, e
	}
	buf := transferBuffers.Get().(*[transferSize]byte)
	defer transferBuffers.Put(buf)
	t.Vec.InitBytes(buf[:min(n, uint64(room), uint64(len(buf)))])
	got, e := spliceRead(t, src, at.off, nonblock)
	if got > 0 {
		in := 0
		if kindOf(src) == linux.S_IFREG {
			in = int(at.off % mem.PageSize)
		}
		t.Vec.InitBytes(buf[:got])
		done, e = p.SpliceFrom(&t.Ctx, &t.Vec, in)
	}
	if e2 := at.end(t, done); e == 0 {
		e = e2
	}
	return done, e
}

// spliceRead reads into the thread's Vec. SPLICE_F_NONBLOCK holds for a local socket too.
func spliceRead(t *proc.Thread, src *vfs.File, off int64, nonblock bool) (int, linux.Errno) {
	s, ok := sock.Of(src)
	if !ok || !nonblock || s.SockBase().Domain != linux.AF_UNIX {
		return src.Ops.Read(&t.Ctx, src, &t.Vec, off)
	}
	m := sock.GetMsg(&t.Vec)
	m.Flags = linux.MSG_DONTWAIT
	n, e := s.Recv(&t.Ctx, src, m)
	dropRights(m)
	sock.PutMsg(m)
	return n, e
}

// sysTee is tee(int in, int out, size_t n, flags).
func sysTee(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	flags := a.Uint(3)
	if flags&^linux.SPLICE_F_ALL != 0 {
		return 0, linux.EINVAL
	}
	if a[2] == 0 {
		return 0, 0
	}
	src, dst := t.FDs.Get(a.Int(0)), t.FDs.Get(a.Int(1))
	defer putFile(src)
	defer putFile(dst)
	if src == nil || dst == nil || !src.Readable() || !dst.Writable() {
		return 0, linux.EBADF
	}
	p, q := pipe.PipeOf(src), pipe.PipeOf(dst)
	if p == nil || q == nil || p == q {
		return 0, linux.EINVAL
	}
	nonblock := flags&linux.SPLICE_F_NONBLOCK != 0 || src.NonBlock() || dst.NonBlock()
	n, e := pipe.Tee(&t.Ctx, p, q, int(min(a[2], uio.MaxTransfer)), nonblock, false)
	return uint64(n), e
}

// sysVmsplice is vmsplice(int fd, const struct iovec *iov, size_t n, flags): it
// copies into a pipe what fits, or out of it what is there. The flags alone say
// whether it waits.
func sysVmsplice(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	flags := a.Uint(3)
	if flags&^linux.SPLICE_F_ALL != 0 {
		return 0, linux.EINVAL
	}
	f := t.FDs.Get(a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	if !f.Readable() && !f.Writable() {
		return 0, linux.EBADF
	}
	if e := initVec(t, a.Addr(1), a[2]); e != 0 {
		return 0, e
	}
	if t.Vec.Len() == 0 {
		return 0, 0
	}
	p := pipe.PipeOf(f)
	if p == nil {
		return 0, linux.EBADF
	}
	nonblock := flags&linux.SPLICE_F_NONBLOCK != 0
	if !f.Writable() {
		n, e := p.SpliceTo(&t.Ctx, t.Vec.Len(), nonblock, t.Vec.CopyOut)
		return uint64(n), e
	}
	n, e := p.Map(&t.Ctx, &t.Vec, nonblock)
	return uint64(n), e
}
