package endpoint

import (
	"hardtack/abi/ipc"
	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// Syscall carries out the system call in t.Args if its number is one of Hardtack's own
// (abi/ipc), which are beyond Linux's table.
func Syscall(t *proc.Thread, nr uint64) {
	v, e := uint64(0), linux.ENOSYS
	switch nr {
	case ipc.Send, ipc.Recv, ipc.Call, ipc.Reply, ipc.ReplyRecv, ipc.Signal, ipc.Wait, ipc.SignalWait:
		message(t)
		return
	case ipc.Endpoint:
		v, e = 0, makeEndpoint(t, uio.Addr(t.Args[0]), uint32(t.Args[1]))
	case ipc.Mint:
		v, e = mintSender(t, int32(t.Args[0]), t.Args[1], uint32(t.Args[2]))
	case ipc.Notification:
		v, e = makeNotification(t, uint32(t.Args[0]))
	}
	if e != 0 {
		v = -uint64(e)
	}
	t.User.RAX = v
}

// makeEndpoint is Endpoint(int fds[2], flags).
func makeEndpoint(t *proc.Thread, addr uio.Addr, flags uint32) linux.Errno {
	cloexec, e := closeOnExec(flags)
	if e != 0 {
		return e
	}
	fds, e := t.ReserveFDs()
	if e != 0 {
		return e
	}
	if e = fds.Write(t, addr); e == 0 {
		var r, s *vfs.File
		if r, s, e = newEndpoint(t.Ctx.User()); e == 0 {
			fds.Install(t, r, s, cloexec)
			return 0
		}
	}
	fds.Drop(t)
	return e
}

// mintSender is Mint(fd, badge, flags).
func mintSender(t *proc.Thread, fd int32, badge uint64, flags uint32) (uint64, linux.Errno) {
	cloexec, e := closeOnExec(flags)
	if e != 0 {
		return 0, e
	}
	f := t.FDs.Get(fd)
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	s, e := mint(f, badge)
	if e != 0 {
		return 0, e
	}
	return addFile(t, s, cloexec)
}

// makeNotification is Notification(flags).
func makeNotification(t *proc.Thread, flags uint32) (uint64, linux.Errno) {
	cloexec, e := closeOnExec(flags)
	if e != 0 {
		return 0, e
	}
	f, e := newNotification(t.Ctx.User())
	if e != 0 {
		return 0, e
	}
	return addFile(t, f, cloexec)
}

// closeOnExec tells whether the flags of a call that makes descriptors say so; EINVAL
// for others.
func closeOnExec(flags uint32) (bool, linux.Errno) {
	if flags&^ipc.CloseOnExec != 0 {
		return false, linux.EINVAL
	}
	return flags != 0, 0
}

func addFile(t *proc.Thread, f *vfs.File, cloexec bool) (uint64, linux.Errno) {
	fd, e := t.FDs.Add(f, 0, t.NoFile(), cloexec)
	if e != 0 {
		f.Put()
		return 0, e
	}
	return uint64(fd), 0
}
