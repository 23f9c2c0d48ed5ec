package syscall

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fd/pipe"
	"hardtack/kernel/process/proc"
)

var pipeCalls = []Call{
	{linux.SYS_pipe, "pipe", sysPipe, "works"},
	{linux.SYS_pipe2, "pipe2", sysPipe2, "works except O_NOTIFICATION_PIPE"},
}

// sysPipe is pipe(int fd[2]).
func sysPipe(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return 0, makePipe(t, a.Addr(0), 0)
}

// sysPipe2 is pipe2(int fd[2], int flags).
func sysPipe2(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return 0, makePipe(t, a.Addr(0), a.Uint(1))
}

func makePipe(t *proc.Thread, addr uio.Addr, flags uint32) linux.Errno {
	if flags&^(linux.O_CLOEXEC|linux.O_NONBLOCK|linux.O_DIRECT) != 0 {
		return linux.EINVAL
	}
	fds, e := t.ReserveFDs()
	if e != 0 {
		return e
	}
	if e := fds.Write(t, addr); e != 0 {
		fds.Drop(t)
		return e
	}
	r, w, e := pipe.Pair(&t.Ctx, flags)
	if e != 0 {
		fds.Drop(t)
		return e
	}
	fds.Install(t, r, w, flags&linux.O_CLOEXEC != 0)
	return 0
}
