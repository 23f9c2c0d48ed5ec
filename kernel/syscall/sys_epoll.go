package syscall

import (
	"encoding/binary"
	"math"

	"hardtack/abi/linux"
	"hardtack/kernel/fd/epoll"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

var epollCalls = []Call{
	{linux.SYS_epoll_create, "epoll_create", sysEpollCreate, "works"},
	{linux.SYS_epoll_create1, "epoll_create1", sysEpollCreate1, "works"},
	{linux.SYS_epoll_ctl, "epoll_ctl", sysEpollCtl, "works except EPOLLWAKEUP, which is ignored"},
	{linux.SYS_epoll_wait, "epoll_wait", sysEpollWait, "works"},
	{linux.SYS_epoll_pwait, "epoll_pwait", sysEpollPwait, "works"},
	{linux.SYS_epoll_pwait2, "epoll_pwait2", sysEpollPwait2, "works"},
}

// addFile gives a new open file the lowest descriptor and drops it on failure.
func addFile(t *proc.Thread, f *vfs.File, cloexec bool) (uint64, linux.Errno) {
	fd, e := t.FDs.Add(f, 0, t.NoFile(), cloexec)
	if e != 0 {
		f.Put()
		return 0, e
	}
	return uint64(fd), 0
}

// sysEpollCreate is epoll_create(int size).
func sysEpollCreate(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a.Int(0) <= 0 {
		return 0, linux.EINVAL
	}
	return addFile(t, epoll.New(t.Ctx.User()), false)
}

// sysEpollCreate1 is epoll_create1(int flags).
func sysEpollCreate1(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	flags := a.Uint(0)
	if flags&^linux.EPOLL_CLOEXEC != 0 {
		return 0, linux.EINVAL
	}
	return addFile(t, epoll.New(t.Ctx.User()), flags != 0)
}

// sysEpollCtl is epoll_ctl(int epfd, int op, int fd, struct epoll_event *event).
func sysEpollCtl(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	op, fd := a.Int(1), a.Int(2)
	var events uint32
	var data uint64
	if op != linux.EPOLL_CTL_DEL {
		b, e := readUser(t, a.Addr(3), linux.SizeofEpollEvent)
		if e != 0 {
			return 0, e
		}
		events, data = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint64(b[4:])
	}
	epf := file(t, a.Int(0))
	if epf == nil {
		return 0, linux.EBADF
	}
	defer epf.Put()
	f := file(t, fd)
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	if f.Ops.Queue(f) == nil {
		return 0, linux.EPERM
	}
	ep := epoll.Of(epf)
	if ep == nil {
		return 0, linux.EINVAL
	}
	return 0, ep.Ctl(epf, op, fd, f, events, data)
}

// sysEpollWait is epoll_wait(int epfd, struct epoll_event *events, int max, int timeout).
func sysEpollWait(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return epollWait(t, a, limitMillis(a.Int(3)))
}

// sysEpollPwait is epoll_pwait(epfd, events, max, int timeout, sigset_t *mask, size).
func sysEpollPwait(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return epollPwait(t, a, limitMillis(a.Int(3)))
}

// sysEpollPwait2 is epoll_pwait2(epfd, events, max, struct timespec *tmo, sigset_t *mask, size).
func sysEpollPwait2(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	limit, e := limitTimespec(t, a.Addr(3))
	if e != 0 {
		return 0, e
	}
	return epollPwait(t, a, limit)
}

func epollPwait(t *proc.Thread, a *Args, limit timeLimit) (uint64, linux.Errno) {
	mask, masked, e := readSigset(t, a.Addr(4), a[5])
	if e != 0 {
		return 0, e
	}
	if masked {
		t.SetTempMask(mask)
	}
	n, e := epollWait(t, a, limit)
	if masked {
		t.RestoreTempMask(e == linux.EINTR)
	}
	return n, e
}

func epollWait(t *proc.Thread, a *Args, limit timeLimit) (uint64, linux.Errno) {
	max := a.Int(2)
	if max <= 0 || max > math.MaxInt32/linux.SizeofEpollEvent {
		return 0, linux.EINVAL
	}
	epf := t.FDs.Get(a.Int(0))
	if epf == nil {
		return 0, linux.EBADF
	}
	var n int
	e := linux.EINVAL
	if epf.IsPath() {
		e = linux.EBADF
	} else if ep := epoll.Of(epf); ep != nil {
		n, e = ep.Wait(&t.Ctx, t.Mem, a.Addr(1), int(max), limit.deadline, limit.poll)
	}
	epf.Put()
	return uint64(n), e
}
