package syscall

import (
	"hardtack/abi/ipc"
	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/endpoint"
	"hardtack/kernel/process/proc"
)

// own carries out Hardtack's own calls (abi/ipc), whose numbers are beyond the table.
func own(t *proc.Thread, a *Args, nr uint64) {
	v, e := uint64(0), linux.ENOSYS
	switch nr {
	case ipc.Send, ipc.Recv, ipc.Call, ipc.Reply, ipc.ReplyRecv, ipc.Signal, ipc.Wait, ipc.SignalWait:
		t.Message()
		return
	case ipc.Endpoint:
		v, e = 0, makeEndpoint(t, a.Addr(0), a.Uint(1))
	case ipc.Mint:
		v, e = mintSender(t, a.Int(0), a[1], a.Uint(2))
	case ipc.Notification:
		v, e = makeNotification(t, a.Uint(0))
	}
	if e != 0 {
		v = errnoResult(e)
	}
	t.User.RAX = v
}

// makeEndpoint is Endpoint(int fds[2], flags).
func makeEndpoint(t *proc.Thread, addr uio.Addr, flags uint32) linux.Errno {
	cloexec, e := endpoint.CloseOnExec(flags)
	if e != 0 {
		return e
	}
	fds, e := reservePair(t)
	if e != 0 {
		return e
	}
	if e = fds.write(t, addr); e == 0 {
		var r, s *vfs.File
		if r, s, e = endpoint.New(t.Ctx.User()); e == 0 {
			fds.install(t, r, s, cloexec)
			return 0
		}
	}
	fds.drop(t)
	return e
}

// mintSender is Mint(fd, badge, flags).
func mintSender(t *proc.Thread, fd int32, badge uint64, flags uint32) (uint64, linux.Errno) {
	cloexec, e := endpoint.CloseOnExec(flags)
	if e != 0 {
		return 0, e
	}
	f := t.FDs.Get(fd)
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	s, e := endpoint.Mint(f, badge)
	if e != 0 {
		return 0, e
	}
	return addFile(t, s, cloexec)
}

// makeNotification is Notification(flags).
func makeNotification(t *proc.Thread, flags uint32) (uint64, linux.Errno) {
	cloexec, e := endpoint.CloseOnExec(flags)
	if e != 0 {
		return 0, e
	}
	f, e := endpoint.NewNotification(t.Ctx.User())
	if e != 0 {
		return 0, e
	}
	return addFile(t, f, cloexec)
}
