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
	sysProfile
	sysMessage
)

// serveSyscall is the runtime's system call interface: what it asks of Linux,
// and no more. The thread's registers are saved; the result goes there.
func serveSyscall(c *amd64.CPU, at *amd64.Thread) {
	num, a, b, d, e, f, _ := at.Args()
	if num == sysMessage { // has a lock of its own
		at.SetResult(serveMeeting(c, a, b, d))
		return
	}
	big.lock(c)
	t := threadPointer(at)
	var r uint64
	switch num {
	case linux.SYS_futex:
		r = sysFutex(c, a, b, d, e)
	case linux.SYS_sched_yield:
		cpus[c.Index].resched = true
	case linux.SYS_nanosleep:
		r = sysNanosleep(c, a)
	case linux.SYS_epoll_pwait:
		r = sysEpollWait(c, b, d, e)
	case linux.SYS_write:
		r = sysWrite(c, a, b, d)
	case linux.SYS_read:
		r = errno(linux.EBADF)
		if a == fdEvent {
			r = sysReadEvent(c, b)
		}
	case linux.SYS_mmap:
		r = sysMmap(c, a, b, e, f)
	case linux.SYS_munmap:
		discard(c, a, b)
	case linux.SYS_madvise:
		if d == 4 || d == 8 { // MADV_DONTNEED, MADV_FREE
			discard(c, a, b)
		}
	case linux.SYS_rt_sigreturn:
		sysSigreturn(c, t)
		deliver(c)
		big.unlock()
		return
	case linux.SYS_tgkill:
		r = sysTgkill(c, b, d)
	case linux.SYS_rt_sigaction:
		r = sysSigaction(c, a, b, d)
	case linux.SYS_rt_sigprocmask:
		r = sysSigprocmask(c, t, a, b, d)
	case linux.SYS_sigaltstack:
		r = sysSigaltstack(c, t, a, b)
	case linux.SYS_clone:
		r = errno(linux.EAGAIN)
		if i, ok := clone(t, b, f); ok {
			r = uint64(i) + 1
			wakeIdle(c)
		}
	case linux.SYS_gettid:
		r = uint64(cpus[c.Index].current) + 1
	case linux.SYS_getpid:
		r = 1
	case linux.SYS_arch_prctl:
		if a == 0x1002 { // ARCH_SET_FS
			at.SetFS(b)
		} else {
			r = errno(linux.EINVAL)
		}
	case linux.SYS_sched_getaffinity:
		r = sysAffinity(c, b, d)
	case linux.SYS_fcntl:
		r = 2 // F_GETFD, F_GETFL of the standard descriptors: O_RDWR
		if a > 2 {
			r = errno(linux.EBADF)
		}
	case linux.SYS_getrandom:
		r = sysGetrandom(c, a, b)
	case linux.SYS_openat:
		r = errno(linux.ENOENT)
	case linux.SYS_eventfd2:
		r = fdEvent
	case linux.SYS_epoll_create1:
		r = fdEpoll
	case linux.SYS_epoll_ctl:
		r = sysEpollCtl(c, b, d, e)
	case linux.SYS_setitimer:
		r = sysSetitimer(c, a, b)
	case linux.SYS_exit:
		t.state = threadFree
		schedule(c)
		deliver(c)
		big.unlock()
		return
	case linux.SYS_exit_group:
		big.unlock()
		exit(c, int(a))
	case sysAllocFrames:
		r = serveAlloc(c, a, b)
	case sysFreeFrames:
		r = serveFree(c, a, b)
	case sysContiguous:
		r = allocContiguous(int(a))
	case sysMapDevice:
		r = mapDevice(c, a, b)
	case sysFlushSpace:
		r = serveFlushSpace(c, a, b)
	case sysSyncFPU:
		r = serveSyncFPU(c, a)
	case sysKick:
		sendIPI(int(a), vectorResched)
	case sysStartCPU:
		r = serveStartCPU(c, uint32(a), b)
	case sysIRQRoute:
		r = serveRoute(c, a, b, d)
	default:
		r = errno(linux.ENOSYS)
	}
	if t.state == threadRunning {
		at.SetResult(r)
		if t.pending&^t.mask == 0 && !cpus[c.Index].resched {
			big.unlock()
			return
		}
	}
	schedule(c)
	deliver(c)
	big.unlock()
}

// wakeIdle tells an idle CPU that the run queue is not empty.
func wakeIdle(c *amd64.CPU) {
	for j := range int(numCPU.Load()) {
		if j != int(c.Index) && cpus[j].current == idleIndex(uint32(j)) {
			cpus[j].current = -1
			sendIPI(j, vectorResched)
			return
		}
	}
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
	block(c, waitSleep, now()+max(d, 1))
	return 0
}

func sysWrite(c *amd64.CPU, fd, buf, n uint64) uint64 {
	switch fd {
	case fdEvent:
		return sysWriteEvent(c, buf)
	case 1, 2:
		if n > 1<<20 || !touch(c, uintptr(buf), int(n)) {
			return errno(linux.EFAULT)
		}
		for i := range uintptr(n) {
			putc(load8(uintptr(buf) + i))
		}
		return n
	}
	return errno(linux.EBADF)
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
