package syscall

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fd/pipe"
	"hardtack/kernel/fs/tmpfs"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/tty"
)

// Control of open files, and locks.
var fcntlCalls = []Call{
	{linux.SYS_fcntl, "fcntl", sysFcntl, "works"},
	{linux.SYS_flock, "flock", sysFlock, "works"},
}

// sysFcntl is fcntl(int fd, int cmd, ...).
func sysFcntl(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f := t.FDs.Get(a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	cmd := a.Uint(1)
	switch cmd { // these work on O_PATH descriptors too
	case linux.F_DUPFD, linux.F_DUPFD_CLOEXEC:
		if a[2] >= t.NoFile() {
			return 0, linux.EINVAL
		}
		return dupTo(t, a.Int(0), int(a[2]), cmd == linux.F_DUPFD_CLOEXEC)
	case linux.F_GETFD:
		on, e := t.FDs.CloseOnExec(a.Int(0))
		if on {
			return linux.FD_CLOEXEC, e
		}
		return 0, e
	case linux.F_SETFD:
		return 0, t.FDs.SetCloseOnExec(a.Int(0), a[2]&linux.FD_CLOEXEC != 0)
	case linux.F_GETFL:
		return uint64(f.Flags()), 0
	}
	if f.IsPath() {
		return 0, linux.EBADF
	}
	return fcntlFile(t, f, cmd, a)
}

// fcntlFile does the commands that need a file open for more than its path.
func fcntlFile(t *proc.Thread, f *vfs.File, cmd uint32, a *Args) (uint64, linux.Errno) {
	switch cmd {
	case linux.F_SETFL:
		return 0, setFlags(t, f, a.Uint(2), a.Int(0))
	case linux.F_GETLK, linux.F_SETLK, linux.F_SETLKW, linux.F_OFD_GETLK, linux.F_OFD_SETLK, linux.F_OFD_SETLKW:
		return 0, recordLock(t, f, a.Int(0), cmd, a.Addr(2))
	case linux.F_SETOWN:
		return 0, setOwnerID(t, f, a.Int(2))
	case linux.F_GETOWN:
		return uint64(ownerID(f)), 0
	case linux.F_SETOWN_EX:
		b, e := readUser(t, a.Addr(2), 8)
		if e != 0 {
			return 0, e
		}
		return 0, setOwner(t, f, vfs.Owner{Type: int32(binary.LittleEndian.Uint32(b)), ID: int32(binary.LittleEndian.Uint32(b[4:]))})
	case linux.F_GETOWN_EX:
		return 0, writeOwner(t, f, a.Addr(2))
	case linux.F_GETOWNER_UIDS:
		return 0, writeOwnerUIDs(t, f, a.Addr(2))
	case linux.F_SETSIG:
		if a[2] > 64 {
			return 0, linux.EINVAL
		}
		f.SetSig(int32(a[2]))
		return 0, 0
	case linux.F_GETSIG:
		_, sig := f.Owner()
		return uint64(sig), 0
	case linux.F_GETLEASE:
		return uint64(f.Lease()), 0
	case linux.F_SETLEASE:
		return 0, f.SetLease(&t.Ctx, a[2], a.Int(0))
	case linux.F_NOTIFY:
		return 0, notifyDir(t, f, a.Int(0), a.Uint(2))
	case linux.F_SETPIPE_SZ, linux.F_GETPIPE_SZ:
		return pipeSize(t, f, cmd, a[2])
	case linux.F_GET_RW_HINT, linux.F_SET_RW_HINT:
		return 0, writeHint(t, f, cmd, a.Addr(2))
	case linux.F_ADD_SEALS, linux.F_GET_SEALS:
		return seals(f, cmd, a[2])
	}
	return 0, linux.EINVAL
}

// notifyDir is F_NOTIFY. What it asks for ends with the descriptor, which may have been
// closed meanwhile.
func notifyDir(t *proc.Thread, f *vfs.File, fd int32, events uint32) linux.Errno {
	e := f.NotifyDir(&t.Ctx, t.FDs, fd, events)
	if e == 0 && !stillOpen(t, fd, f) {
		f.Closed(t.FDs)
		e = linux.EBADF
	}
	return e
}

// writeHint is F_GET_RW_HINT and F_SET_RW_HINT: how long what is written will live. It
// belongs to the inode and, as no disk here asks for it, does nothing.
func writeHint(t *proc.Thread, f *vfs.File, cmd uint32, addr uio.Addr) linux.Errno {
	i := f.LockInode()
	if cmd == linux.F_GET_RW_HINT {
		b := t.Scratch[:8]
		binary.LittleEndian.PutUint64(b, uint64(i.WriteHint()))
		_, e := t.Mem.CopyOut(addr, b)
		return e
	}
	b, e := readUser(t, addr, 8)
	if e != 0 {
		return e
	}
	hint := binary.LittleEndian.Uint64(b)
	if hint > linux.RWH_WRITE_LIFE_EXTREME {
		return linux.EINVAL
	}
	i.SetWriteHint(uint32(hint))
	return 0
}

// writeOwner is F_GETOWN_EX.
func writeOwner(t *proc.Thread, f *vfs.File, to uio.Addr) linux.Errno {
	o, _ := f.Owner()
	b := t.Scratch[:8]
	binary.LittleEndian.PutUint32(b, uint32(o.Type))
	binary.LittleEndian.PutUint32(b[4:], uint32(o.ID))
	_, e := t.Mem.CopyOut(to, b)
	return e
}

// writeOwnerUIDs is F_GETOWNER_UIDS: the real and the effective user that set the owner.
func writeOwnerUIDs(t *proc.Thread, f *vfs.File, to uio.Addr) linux.Errno {
	o, _ := f.Owner()
	b := t.Scratch[:8]
	clear(b)
	if o.Cred != nil {
		binary.LittleEndian.PutUint32(b, o.Cred.UID)
		binary.LittleEndian.PutUint32(b[4:], o.Cred.EUID)
	}
	_, e := t.Mem.CopyOut(to, b)
	return e
}

// pipeSize is F_SETPIPE_SZ and F_GETPIPE_SZ.
func pipeSize(t *proc.Thread, f *vfs.File, cmd uint32, size uint64) (uint64, linux.Errno) {
	p := pipe.PipeOf(f)
	if p == nil {
		return 0, linux.EBADF
	}
	if cmd == linux.F_GETPIPE_SZ {
		return uint64(p.Size()), 0
	}
	n, e := p.SetSize(&t.Ctx, size&(1<<32-1))
	return uint64(n), e
}

// seals is F_ADD_SEALS and F_GET_SEALS.
func seals(f *vfs.File, cmd uint32, add uint64) (uint64, linux.Errno) {
	s, ok := f.Ops.(tmpfs.Sealer)
	switch {
	case cmd == linux.F_GET_SEALS && ok:
		return uint64(s.Seals()), 0
	case cmd == linux.F_GET_SEALS, add>>32 != 0:
		return 0, linux.EINVAL
	case !f.Writable():
		return 0, linux.EPERM
	case !ok:
		return 0, linux.EINVAL
	}
	return 0, s.AddSeals(uint32(add))
}

// setOwnerID is F_SETOWN: a negative number is a process group.
func setOwnerID(t *proc.Thread, f *vfs.File, id int32) linux.Errno {
	switch {
	case id == -1<<31:
		return linux.EINVAL
	case id < 0:
		return setOwner(t, f, vfs.Owner{Type: linux.F_OWNER_PGRP, ID: -id})
	}
	return setOwner(t, f, vfs.Owner{Type: linux.F_OWNER_PID, ID: id})
}

// ownerID is F_GETOWN.
func ownerID(f *vfs.File) int32 {
	o, _ := f.Owner()
	if o.Type == linux.F_OWNER_PGRP {
		return -o.ID
	}
	return o.ID
}

func setOwner(t *proc.Thread, f *vfs.File, o vfs.Owner) linux.Errno {
	switch o.Type {
	case linux.F_OWNER_TID, linux.F_OWNER_PID, linux.F_OWNER_PGRP:
	default:
		return linux.EINVAL
	}
	if o.ID < 0 {
		return linux.EINVAL
	}
	if o.ID != 0 {
		found := false
		switch o.Type {
		case linux.F_OWNER_TID:
			found = proc.ByTID(o.ID) != nil
		case linux.F_OWNER_PID:
			found = proc.Lookup(o.ID) != nil
		default:
			found = len(proc.GroupMembers(o.ID)) > 0
		}
		if !found {
			return linux.ESRCH
		}
	}
	o.Cred = t.Cred()
	f.SetOwner(o)
	return 0
}

// bands says which si_code and si_band an event gives (linux/signal: POLL_IN …).
var bands = []struct {
	ev         wait.Events
	code, band int32
}{
	{wait.Msg, 3, int32(wait.In | wait.RdNorm | wait.Msg)},
	{wait.Hup, 6, int32(wait.Hup | wait.Err)},
	{wait.Err, 4, int32(wait.Err)},
	{wait.Pri, 5, int32(wait.Pri | wait.RdBand)},
	{wait.In, 1, int32(wait.In | wait.RdNorm)},
	{wait.Out, 2, int32(wait.Out | wait.WrNorm | wait.WrBand)},
}

// SignalIO is vfs.SignalIO. It tells the owner of an O_ASYNC file of an event: by a plain SIGIO, or
// with F_SETSIG by that signal and what happened.
func SignalIO(o vfs.Owner, sig, fd int32, ev wait.Events) {
	info := linux.Siginfo{Signo: int32(linux.SIGIO), Code: linux.SI_KERNEL}
	switch {
	case sig < 0:
		info.Signo = int32(linux.SIGURG)
	case sig > 0:
		info.Signo = sig
		for _, b := range bands {
			if ev&b.ev != 0 {
				info.Code = b.code
				info.SetPoll(int64(b.band), fd)
				break
			}
		}
	}
	proc.SignalFor(int(o.Type), o.ID, &info, o.Cred)
}

// setFlags is F_SETFL through descriptor fd: only some flags can change.
func setFlags(t *proc.Thread, f *vfs.File, flags uint32, fd int32) linux.Errno {
	const mask = linux.O_APPEND | linux.O_NONBLOCK | linux.O_DIRECT | linux.O_NOATIME
	old := f.Flags()
	now := old&^mask | flags&mask
	if flags&^old&linux.O_NOATIME != 0 && !vfs.IsOwner(t.Cred(), f.PathOf().Inode()) {
		return linux.EPERM
	}
	if flags&linux.O_DIRECT != 0 && !f.Direct() {
		return linux.EINVAL
	}
	if (old^flags)&linux.O_APPEND != 0 && !f.Path.Zero() && f.Path.Inode().Attrs()&vfs.AppendOnly != 0 {
		return linux.EPERM
	}
	if s, ok := f.Ops.(vfs.FlagSetter); ok {
		if e := s.SetFlags(f, old, now); e != 0 {
			return e
		}
	}
	f.UpdateFlags(mask, now)
	if (old^flags)&linux.O_ASYNC != 0 && signalsIO(f) {
		ownTerminal(t, f)
		return f.SetAsync(flags&linux.O_ASYNC != 0, fd)
	}
	return 0
}

// ownTerminal gives the signals of a terminal that nobody owns to the group in the
// foreground, or to the caller.
func ownTerminal(t *proc.Thread, f *vfs.File) {
	typ, major, _ := driver(f)
	if o, _ := f.Owner(); o.ID != 0 || typ != linux.S_IFCHR || !isTerminal(major) {
		return
	}
	o := vfs.Owner{Type: linux.F_OWNER_PID, ID: t.PID, Cred: t.Cred()}
	if x := tty.TTYOf(f); x != nil {
		if group := x.ForegroundGroup(); group != 0 {
			o.Type, o.ID = linux.F_OWNER_PGRP, group
		}
	}
	f.SetOwner(o)
}

// stillOpen reports whether a descriptor is the one that a call began with. Closing it
// ends what its process has on the file: what another thread's call adds after that
// would stay for good.
func stillOpen(t *proc.Thread, fd int32, f *vfs.File) bool {
	now := t.FDs.Get(fd)
	putFile(now)
	return now == f
}

// recordLock carries out the commands about struct flock.
func recordLock(t *proc.Thread, f *vfs.File, fd int32, cmd uint32, addr uio.Addr) linux.Errno {
	b, e := readUser(t, addr, 32)
	if e != 0 {
		return e
	}
	le := binary.LittleEndian
	l := vfs.RecordLock{Type: int16(le.Uint16(b)), PID: t.PID, Owner: t.FDs}
	whence, start, n := int16(le.Uint16(b[2:])), int64(le.Uint64(b[8:])), int64(le.Uint64(b[16:]))
	ofd := cmd == linux.F_OFD_GETLK || cmd == linux.F_OFD_SETLK || cmd == linux.F_OFD_SETLKW
	if ofd {
		if le.Uint32(b[24:]) != 0 {
			return linux.EINVAL
		}
		l.Owner, l.PID = f, -1
	}
	get := cmd == linux.F_GETLK || cmd == linux.F_OFD_GETLK
	if get && l.Type != linux.F_RDLCK && l.Type != linux.F_WRLCK { // before the range is looked at
		return linux.EINVAL
	}
	if l.Start, l.End, e = lockRange(f, whence, start, n); e != 0 {
		return e
	}
	switch l.Type {
	case linux.F_RDLCK:
		if !get && !f.Readable() {
			return linux.EBADF
		}
	case linux.F_WRLCK:
		if !get && !f.Writable() {
			return linux.EBADF
		}
	case linux.F_UNLCK:
	default:
		return linux.EINVAL
	}
	i := f.LockInode()
	if !get {
		e := i.SetLock(&t.Ctx, &l, cmd == linux.F_SETLKW || cmd == linux.F_OFD_SETLKW)
		if e == 0 && l.Type != linux.F_UNLCK && !ofd && !stillOpen(t, fd, f) {
			f.Closed(t.FDs)
			e = linux.EBADF
		}
		return e
	}
	i.GetLock(&l)
	b = t.Scratch[:32]
	le.PutUint16(b, uint16(l.Type))
	if l.Type != linux.F_UNLCK {
		le.PutUint16(b[2:], linux.SEEK_SET)
		le.PutUint64(b[8:], uint64(l.Start))
		n := int64(0)
		if l.End != 1<<63-1 {
			n = l.End - l.Start + 1
		}
		le.PutUint64(b[16:], uint64(n))
		le.PutUint32(b[24:], uint32(l.PID))
	}
	_, e = t.Mem.CopyOut(addr, b)
	return e
}

// lockRange turns l_whence, l_start and l_len into first and last byte.
func lockRange(f *vfs.File, whence int16, start, n int64) (first, last int64, e linux.Errno) {
	var base int64
	switch whence {
	case linux.SEEK_SET:
	case linux.SEEK_CUR:
		f.PosMu.Lock()
		base = f.Pos
		f.PosMu.Unlock()
	case linux.SEEK_END:
		base = f.LockInode().Size()
	default:
		return 0, 0, linux.EINVAL
	}
	if start > 0 && base > 1<<63-1-start {
		return 0, 0, linux.EOVERFLOW
	}
	start += base
	if start < 0 {
		return 0, 0, linux.EINVAL
	}
	switch {
	case n > 0:
		if n-1 > 1<<63-1-start {
			return 0, 0, linux.EOVERFLOW
		}
		return start, start + n - 1, 0
	case n < 0:
		if start+n < 0 {
			return 0, 0, linux.EINVAL
		}
		return start + n, start - 1, 0
	}
	return start, 1<<63 - 1, 0
}

// sysFlock is flock(int fd, int operation).
func sysFlock(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	op := int(a.Int(1))
	if op&linux.LOCK_MAND != 0 {
		return 0, 0 // Linux has given these locks up and ignores them, before all else
	}
	switch op &^ linux.LOCK_NB {
	case linux.LOCK_SH, linux.LOCK_EX, linux.LOCK_UN:
	default:
		return 0, linux.EINVAL
	}
	f := file(t, a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	return 0, f.Flock(&t.Ctx, op)
}
