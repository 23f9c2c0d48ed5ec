package nucleus

import (
	"hardtack/abi/linux"
	"hardtack/arch/amd64"
)

// Private call numbers of the kernel's own goroutines.
const (
	sysAllocFrames = 1000 + iota
	sysFreeFrames
	sysContiguous
	sysMapDevice
	sysFlushSpace
	sysSyncFPU
	sysKick
	sysStartCPU
	sysIRQRoute
	sysMessage
	sysUnmask
	sysLinger
	sysWindow
	sysMapCluster
	sysStartCluster
	sysParkCPU
	sysRing
	sysMapShared
	sysGo
	sysLeave
	sysLeft
	sysReturn
	sysReserve
	sysTake
	sysDrop
	sysOffer
	sysClaim
	sysUnmap
	sysAdopt
	sysShare
	sysProbe
)

// serveSyscall is the runtime's system call interface: what it asks of Linux,
// and no more. The thread's registers are saved; the result goes there.
func serveSyscall(c *amd64.CPU, at *amd64.Thread) {
	num, a, b, d, e, f, _ := at.Args()
	switch num {
	case sysMessage: // under a control of its own
		at.SetResult(serveRendezvous(c, a, b, d))
		return
	// The hardware's business only.
	case sysKick:
		sendIPI(int(a), vectorResched)
		at.SetResult(0)
		return
	case sysProbe:
		sendIPI(int(a), vectorFlush)
		at.SetResult(0)
		return
	case sysSyncFPU:
		at.SetResult(serveSyncFPU(c, a))
		return
	case sysFlushSpace:
		at.SetResult(serveFlushSpace(c, a, b))
		return
	case sysRing:
		icr(uint32(a), vectorDoorbell|1<<14)
		at.SetResult(0)
		return
	case sysUnmask:
		maskPin(int(a), false)
		at.SetResult(0)
		return
	case linux.SYS_exit_group:
		exit(c, int(a))
	}
	me, t := cpuPointer(c), threadPointer(at)
	var in bool
	var r uint64
	single := alone(num, a)
	if single {
		guard.EnterAlone(c.Index)
		r = serveAlone(c, t, num, a, b, d, e, f)
	} else {
		in = guard.Enter(c.Index)
		r = serveBeside(c, t, num, a, b, d, e)
	}
	if me.current >= 0 {
		at.SetResult(r)
	} // else it waits, and may already run elsewhere
	if me.current < 0 || me.resched || t.signalled() {
		schedule(c)
		deliver(c)
	}
	if single {
		guard.LeaveAlone(c.Index)
	} else {
		guard.Leave(c.Index, in)
	}
	me.finish()
}

// alone tells whether a call changes what others rely on; a is its first argument.
func alone(num, a uint64) bool {
	switch num {
	case linux.SYS_mmap, linux.SYS_munmap, linux.SYS_madvise, linux.SYS_rt_sigaction, linux.SYS_clone,
		linux.SYS_setitimer, linux.SYS_exit, sysContiguous, sysMapDevice, sysStartCPU, sysIRQRoute,
		sysWindow, sysMapShared, sysParkCPU, sysMapCluster, sysStartCluster,
		sysLeave, sysLeft, sysReturn, sysReserve, sysTake, sysDrop,
		sysOffer, sysClaim, sysUnmap, sysAdopt, sysShare:
		return true
	case linux.SYS_write:
		return a != fdEvent // the console
	}
	return false
}

func serveAlone(c *amd64.CPU, t *thread, num, a, b, d, e, f uint64) uint64 {
	switch num {
	case linux.SYS_write:
		return sysWrite(c, a, b, d)
	case linux.SYS_mmap:
		return sysMmap(c, a, b, e, f)
	case linux.SYS_munmap:
		discard(c, a, b)
	case linux.SYS_madvise:
		if d == 4 || d == 8 { // MADV_DONTNEED, MADV_FREE
			discard(c, a, b)
		}
	case linux.SYS_rt_sigaction:
		return sysSigaction(c, a, b, d)
	case linux.SYS_clone:
		if i, ok := clone(c, t, b, f); ok {
			return uint64(i) + 1
		}
		return errno(linux.EAGAIN)
	case linux.SYS_setitimer:
		return sysSetitimer(c, a, b)
	case linux.SYS_exit:
		t.state = threadFree
		cpus[c.Index].current = -1
	case sysContiguous:
		return allocContiguous(int(a))
	case sysMapDevice:
		return mapDevice(c, a, b)
	case sysStartCPU:
		return serveStartCPU(c, uint32(a), b)
	case sysIRQRoute:
		return serveRoute(a, b, d)
	case sysWindow:
		return serveWindow(c, a, b)
	case sysParkCPU:
		return servePark(uint32(a), b)
	case sysMapShared:
		return mapPages(c, a, b, 0)
	case sysMapCluster:
		return serveMapCluster(c, a)
	case sysStartCluster:
		return serveStartCluster(a, uint32(b), d)
	case sysLeave:
		return serveLeave(c, a)
	case sysLeft:
		return serveLeft(c, a)
	case sysReturn:
		return serveReturn(a, b)
	case sysReserve:
		return serveReserve(a)
	case sysTake:
		return serveTake(c, a, uint32(b))
	case sysDrop:
		return serveDrop(a, b)
	case sysOffer:
		return serveOffer(c, a, b, d)
	case sysClaim:
		return serveClaim(c, a, b, d)
	case sysUnmap:
		return serveUnmap(c, a, b)
	case sysAdopt:
		return serveAdopt(c, a, b)
	case sysShare:
		return serveShare(c, a, b, d)
	}
	return 0
}

// serveBeside serves the calls that run beside others. When the thread waits, the
// result is what it is woken with.
func serveBeside(c *amd64.CPU, t *thread, num, a, b, d, e uint64) uint64 {
	switch num {
	case linux.SYS_futex:
		return sysFutex(c, a, b, d, e)
	case linux.SYS_sched_yield:
		cpus[c.Index].resched = true
	case sysLinger:
		serveLinger(c)
	case sysGo:
		return serveGo(c, t, a)
	case linux.SYS_nanosleep:
		return sysNanosleep(c, a)
	case linux.SYS_epoll_pwait:
		return sysEpollWait(c, b, d, e)
	case linux.SYS_write:
		return sysWriteEvent(c, b)
	case linux.SYS_read:
		if a == fdEvent {
			return sysReadEvent(c, b)
		}
		return errno(linux.EBADF)
	case linux.SYS_rt_sigreturn:
		return sysSigreturn(t)
	case linux.SYS_tgkill:
		return sysTgkill(c, b, d)
	case linux.SYS_rt_sigprocmask:
		return sysSigprocmask(c, t, a, b, d)
	case linux.SYS_sigaltstack:
		return sysSigaltstack(c, t, a, b)
	case linux.SYS_gettid:
		return uint64(cpus[c.Index].current) + 1
	case linux.SYS_getpid:
		return 1
	case linux.SYS_arch_prctl:
		if a != 0x1002 { // ARCH_SET_FS
			return errno(linux.EINVAL)
		}
		t.SetFS(b)
	case linux.SYS_sched_getaffinity:
		return sysAffinity(c, b, d)
	case linux.SYS_fcntl:
		if a > 2 {
			return errno(linux.EBADF)
		}
		return 2 // F_GETFD, F_GETFL of the standard descriptors: O_RDWR
	case linux.SYS_getrandom:
		return sysGetrandom(c, a, b)
	case linux.SYS_openat:
		return errno(linux.ENOENT)
	case linux.SYS_eventfd2:
		return fdEvent
	case linux.SYS_epoll_create1:
		return fdEpoll
	case linux.SYS_epoll_ctl:
		return sysEpollCtl(c, b, d, e)
	case sysAllocFrames:
		return serveAlloc(c, a, b)
	case sysFreeFrames:
		return serveFree(c, a, b)
	default:
		return errno(linux.ENOSYS)
	}
	return 0
}

// The runtime's monitor thread, the first that it starts, looks every 20 µs
// whether a P is stuck in a system call, which cannot happen here, and every
// 10 ms whether a goroutine should be preempted: it may sleep longer.
const (
	sysmon      = 1
	sysmonSleep = 2e6
)

func sysNanosleep(c *amd64.CPU, req uint64) uint64 {
	if !touch(c, uintptr(req), 16) {
		return errno(linux.EFAULT)
	}
	d := int64(load64(uintptr(req)))*1e9 + int64(load64(uintptr(req)+8))
	if cpus[c.Index].current == sysmon {
		d = max(d, sysmonSleep)
	}
	block(c, noQueue, now()+max(d, 1))
	return 0
}

// sysWrite writes to the console.
func sysWrite(c *amd64.CPU, fd, buf, n uint64) uint64 {
	if fd != 1 && fd != 2 {
		return errno(linux.EBADF)
	}
	if n > 1<<20 || !touch(c, uintptr(buf), int(n)) {
		return errno(linux.EFAULT)
	}
	for i := range uintptr(n) {
		putc(load8(uintptr(buf) + i))
	}
	return n
}

func sysMmap(c *amd64.CPU, hint, size, flags, fd uint64) uint64 {
	const fixed, anonymous = 0x10, 0x20
	if flags&anonymous == 0 {
		return errno(linux.ENODEV)
	}
	if flags&fixed != 0 {
		if hint >= arenaBase && hint+size <= deviceBase {
			return hint
		}
		return errno(linux.EINVAL)
	}
	if va := mapAnonymous(hint, size); va != 0 {
		return va
	}
	return errno(linux.ENOMEM)
}

func sysTgkill(c *amd64.CPU, tid, sig uint64) uint64 {
	if tid < 1 || tid > uint64(threadMax) || threads[tid-1].state == threadFree {
		return errno(linux.ESRCH)
	}
	if sig < 1 || sig > numSig {
		return errno(linux.EINVAL)
	}
	raise(c, int32(tid-1), sig)
	return 0
}

func sysAffinity(c *amd64.CPU, size, buf uint64) uint64 {
	if size < 8 || !touch(c, uintptr(buf), 8) {
		return errno(linux.EINVAL)
	}
	store64(uintptr(buf), 1<<uint(numCPU.Load())-1)
	return 8
}

func sysGetrandom(c *amd64.CPU, buf, n uint64) uint64 {
	n = min(n, 256)
	if !touch(c, uintptr(buf), int(n)) {
		return errno(linux.EFAULT)
	}
	Entropy(bytesAt(uintptr(buf), int(n)))
	return n
}
