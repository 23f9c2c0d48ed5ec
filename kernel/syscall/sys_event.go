package syscall

import (
	"hardtack/abi/linux"
	"hardtack/kernel/fd/eventfd"
	"hardtack/kernel/fd/signalfd"
	"hardtack/kernel/process/proc"
)

var eventCalls = []Call{
	{linux.SYS_eventfd, "eventfd", sysEventfd, "works"},
	{linux.SYS_eventfd2, "eventfd2", sysEventfd2, "works"},
	{linux.SYS_signalfd, "signalfd", sysSignalfd, "works"},
	{linux.SYS_signalfd4, "signalfd4", sysSignalfd4, "works; epoll looks at the signals of the process that made the file"},
}

// sysEventfd is eventfd(unsigned initial).
func sysEventfd(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return addFile(t, eventfd.New(a.Uint(0), 0), false)
}

// sysEventfd2 is eventfd2(unsigned initial, int flags).
func sysEventfd2(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	flags := a.Uint(1)
	if flags&^(linux.EFD_SEMAPHORE|linux.EFD_CLOEXEC|linux.EFD_NONBLOCK) != 0 {
		return 0, linux.EINVAL
	}
	return addFile(t, eventfd.New(a.Uint(0), flags), flags&linux.EFD_CLOEXEC != 0)
}

// sysSignalfd is signalfd(int fd, const sigset_t *mask, size_t size).
func sysSignalfd(t *proc.Thread, a *Args) (uint64, linux.Errno) { return makeSignalfd(t, a, 0) }

// sysSignalfd4 is signalfd4(fd, mask, size, int flags).
func sysSignalfd4(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return makeSignalfd(t, a, a.Uint(3))
}

func makeSignalfd(t *proc.Thread, a *Args, flags uint32) (uint64, linux.Errno) {
	if flags&^(linux.SFD_CLOEXEC|linux.SFD_NONBLOCK) != 0 {
		return 0, linux.EINVAL
	}
	mask, given, e := readSigset(t, a.Addr(1), a[2])
	if e != 0 {
		return 0, e
	}
	if !given {
		return 0, linux.EFAULT
	}
	if a.Int(0) == -1 {
		return addFile(t, signalfd.New(t.Proc, mask, flags), flags&linux.SFD_CLOEXEC != 0)
	}
	f := t.FDs.Get(a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	x := signalfd.Of(f)
	if x == nil {
		return 0, linux.EINVAL
	}
	x.SetMask(mask)
	return uint64(uint32(a.Int(0))), 0
}
