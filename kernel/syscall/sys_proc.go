package syscall

import (
	"encoding/binary"
	"math"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/process/signals"
)

var procCalls = []Call{
	{linux.SYS_getpid, "getpid", sysGetpid, "works"},
	{linux.SYS_gettid, "gettid", sysGettid, "works"},
	{linux.SYS_getppid, "getppid", sysGetppid, "works"},
	{linux.SYS_getpgrp, "getpgrp", sysGetpgrp, "works"},
	{linux.SYS_getpgid, "getpgid", sysGetpgid, "works"},
	{linux.SYS_setpgid, "setpgid", sysSetpgid, "works"},
	{linux.SYS_getsid, "getsid", sysGetsid, "works"},
	{linux.SYS_setsid, "setsid", sysSetsid, "works"},
	{linux.SYS_fork, "fork", sysFork, "works"},
	{linux.SYS_vfork, "vfork", sysVfork, "works"},
	{linux.SYS_clone, "clone", sysClone, "works except the namespaces (EINVAL); CLONE_PTRACE, CLONE_IO and CLONE_SYSVSEM are ignored"},
	{linux.SYS_clone3, "clone3", sysClone3, "works except the namespaces (EINVAL); there are no control groups for CLONE_INTO_CGROUP (EBADF)"},
	{linux.SYS_setns, "setns", sysSetns, "works; there is one namespace of each kind"},
	{linux.SYS_unshare, "unshare", sysUnshare, "works except the namespaces (EINVAL)"},
	{linux.SYS_set_tid_address, "set_tid_address", sysSetTIDAddress, "works"},
	{linux.SYS_exit, "exit", sysExit, "works"},
	{linux.SYS_exit_group, "exit_group", sysExitGroup, "works"},
	{linux.SYS_wait4, "wait4", sysWait4, "works"},
	{linux.SYS_waitid, "waitid", sysWaitid, "works"},
	{linux.SYS_pidfd_open, "pidfd_open", sysPidfdOpen, "works"},
	{linux.SYS_pidfd_getfd, "pidfd_getfd", sysPidfdGetfd, "works"},
	{linux.SYS_pidfd_send_signal, "pidfd_send_signal", sysPidfdSendSignal, "works"},
}

func sysGetpid(t *proc.Thread, _ *Args) (uint64, linux.Errno)  { return uint64(t.PID), 0 }
func sysGettid(t *proc.Thread, _ *Args) (uint64, linux.Errno)  { return uint64(t.TID), 0 }
func sysGetppid(t *proc.Thread, _ *Args) (uint64, linux.Errno) { return uint64(t.Proc.PPID()), 0 }
func sysGetpgrp(t *proc.Thread, _ *Args) (uint64, linux.Errno) { return uint64(t.Proc.Group().ID), 0 }

// process returns the process with a thread's or its own number; 0 is the caller's.
func process(t *proc.Thread, pid int32) *proc.Process {
	if pid == 0 {
		return t.Proc
	}
	if p := proc.Lookup(pid); p != nil {
		return p
	}
	if u := proc.ByTID(pid); u != nil {
		return u.Proc
	}
	return nil
}

// sysGetpgid is getpgid(pid_t pid).
func sysGetpgid(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	p := process(t, a.Int(0))
	if p == nil {
		return 0, linux.ESRCH
	}
	return uint64(p.Group().ID), 0
}

// sysSetpgid is setpgid(pid_t pid, pid_t pgid).
func sysSetpgid(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return 0, t.Proc.Setpgid(a.Int(0), a.Int(1))
}

// sysGetsid is getsid(pid_t pid).
func sysGetsid(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	p := process(t, a.Int(0))
	if p == nil {
		return 0, linux.ESRCH
	}
	return uint64(p.Session().ID), 0
}

// sysSetsid is setsid().
func sysSetsid(t *proc.Thread, _ *Args) (uint64, linux.Errno) {
	if e := t.Proc.Setsid(); e != 0 {
		return 0, e
	}
	return uint64(t.PID), 0
}

func clone(t *proc.Thread, a *proc.CloneArgs) (uint64, linux.Errno) {
	tid, e := t.Clone(a)
	return uint64(tid), e
}

// sysFork is fork().
func sysFork(t *proc.Thread, _ *Args) (uint64, linux.Errno) {
	return clone(t, &proc.CloneArgs{ExitSignal: linux.SIGCHLD})
}

// sysVfork is vfork().
func sysVfork(t *proc.Thread, _ *Args) (uint64, linux.Errno) {
	return clone(t, &proc.CloneArgs{Flags: linux.CLONE_VFORK | linux.CLONE_VM, ExitSignal: linux.SIGCHLD})
}

// sysClone is clone(flags, stack, int *parent_tid, int *child_tid, tls).
func sysClone(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	flags := a[0] &^ linux.CSIGNAL & 0xffffffff
	// The descriptor goes where the parent's copy of the number would.
	if flags&linux.CLONE_PIDFD != 0 && flags&linux.CLONE_PARENT_SETTID != 0 {
		return 0, linux.EINVAL
	}
	return clone(t, &proc.CloneArgs{
		Flags: flags, ExitSignal: linux.Signal(a[0] & linux.CSIGNAL), Stack: a[1],
		PIDFD: a.Addr(2), ParentTID: a.Addr(2), ChildTID: a.Addr(3), TLS: a[4],
	})
}

// Sizes of struct clone_args.
const (
	cloneArgsMin = 64
	cloneArgsMax = 88
)

// sysClone3 is clone3(struct clone_args *args, size_t size).
func sysClone3(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	var b [cloneArgsMax]byte
	if e := readExtensible(t, b[:], a.Addr(0), a[1], cloneArgsMin); e != 0 {
		return 0, e
	}
	f := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	flags, exitSignal, stack, size := f(0), f(4), f(5), f(6)
	switch {
	case flags&(linux.CSIGNAL|linux.CLONE_DETACHED) != 0, exitSignal > uint64(linux.NSIG),
		flags>>34 != 0,
		f(9) > maxSetTID, (f(8) == 0) != (f(9) == 0),
		flags&linux.CLONE_INTO_CGROUP != 0 && (a[1] < cloneArgsMax || f(10) > math.MaxInt32),
		(stack == 0) != (size == 0), stack+size < stack,
		flags&(linux.CLONE_THREAD|linux.CLONE_PARENT) != 0 && exitSignal != 0:
		return 0, linux.EINVAL
	}
	c := proc.CloneArgs{
		Flags: flags, ExitSignal: linux.Signal(exitSignal), Stack: stack + size,
		PIDFD: uio.Addr(f(1)), ChildTID: uio.Addr(f(2)), ParentTID: uio.Addr(f(3)), TLS: f(7),
	}
	if f(9) != 0 {
		var e linux.Errno
		if c.TID, e = readSetTID(t, uio.Addr(f(8)), int(f(9))); e != 0 {
			return 0, e
		}
	}
	return clone(t, &c)
}

// maxSetTID is how many namespaces clone3 takes numbers for; there is one.
const maxSetTID = 32

// readSetTID reads the number that the child is to have.
func readSetTID(t *proc.Thread, addr uio.Addr, n int) (int32, linux.Errno) {
	b, e := readUser(t, addr, 4*n)
	if e != 0 {
		return 0, e
	}
	tid := int32(binary.LittleEndian.Uint32(b))
	c := t.Cred()
	switch {
	case n > 1, tid < 1, int64(tid) >= proc.PIDMax():
		return 0, linux.EINVAL
	case !c.Has(creds.CapSysAdmin) && !c.Has(creds.CapCheckpointRestore):
		return 0, linux.EPERM
	}
	return tid, 0
}

// readExtensible reads a structure whose size the caller gives: a shorter one
// is filled up with zeroes, a longer one must have nothing but zeroes beyond
// what we know.
func readExtensible(t *proc.Thread, b []byte, addr uio.Addr, size uint64, min int) linux.Errno {
	switch {
	case size > 4096:
		return linux.E2BIG
	case size < uint64(min):
		return linux.EINVAL
	}
	n := int(size)
	if n <= len(b) {
		_, e := t.Mem.CopyIn(b[:n], addr)
		return e
	}
	if _, e := t.Mem.CopyIn(b, addr); e != 0 {
		return e
	}
	//maxlive:len 4096 because larger ones are refused above
	rest := make([]byte, n-len(b))
	if _, e := t.Mem.CopyIn(rest, addr+uio.Addr(len(b))); e != 0 {
		return e
	}
	for _, x := range rest {
		if x != 0 {
			return linux.E2BIG
		}
	}
	return 0
}

// sysUnshare is unshare(int flags).
func sysUnshare(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return 0, t.Unshare(uint64(a.Uint(0)))
}

// sysSetTIDAddress is set_tid_address(int *tidptr).
func sysSetTIDAddress(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	t.Futex.ClearTID = a[0]
	return uint64(t.TID), 0
}

// sysExit is exit(int status).
func sysExit(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	t.Exit(a.Int(0))
	return 0, 0
}

// sysExitGroup is exit_group(int status).
func sysExitGroup(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	t.ExitGroup(a.Int(0))
	return 0, 0
}

// sysWait4 is wait4(pid_t pid, int *wstatus, int options, struct rusage *rusage).
func sysWait4(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	opts := a.Uint(2)
	if opts&^(linux.WNOHANG|linux.WUNTRACED|linux.WCONTINUED|linux.WNOTHREAD|linux.WALL|linux.WCLONE) != 0 {
		return 0, linux.EINVAL
	}
	w := proc.WaitArgs{Options: opts | linux.WEXITED, NoHang: opts&linux.WNOHANG != 0}
	switch pid := a.Int(0); {
	case pid == -1<<31:
		return 0, linux.ESRCH
	case pid < -1:
		w.Kind, w.ID = linux.P_PGID, -pid
	case pid == -1:
		w.Kind = linux.P_ALL
	case pid == 0:
		w.Kind, w.ID = linux.P_PGID, t.Proc.Group().ID
	default:
		w.Kind, w.ID = linux.P_PID, pid
	}
	r, e := t.Wait(&w)
	if e != 0 || r.PID == 0 {
		return 0, e
	}
	if addr := a.Addr(1); addr != 0 {
		if e := writeU32(t, addr, uint32(r.Status)); e != 0 {
			return 0, e
		}
	}
	if addr := a.Addr(3); addr != 0 {
		if e := writeRusage(t, addr, &r.Usage); e != 0 {
			return 0, e
		}
	}
	return uint64(r.PID), 0
}

// writeRusage copies a struct rusage out.
func writeRusage(t *proc.Thread, addr uio.Addr, r *linux.Rusage) linux.Errno {
	return writeWords(t, addr, r.Utime.Sec, r.Utime.Usec, r.Stime.Sec, r.Stime.Usec,
		r.Maxrss, r.Ixrss, r.Idrss, r.Isrss, r.Minflt, r.Majflt,
		r.Nswap, r.Inblock, r.Oublock, r.Msgsnd, r.Msgrcv, r.Nsignals, r.Nvcsw, r.Nivcsw)
}

// sysWaitid is waitid(idtype, id, siginfo_t *info, int options, struct rusage *ru).
func sysWaitid(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	r, e := waitID(t, a)
	if addr := a.Addr(4); e == 0 && addr != 0 && r.PID != 0 {
		if e := writeRusage(t, addr, &r.Usage); e != 0 {
			return 0, e
		}
	}
	addr := a.Addr(2)
	if addr == 0 {
		return 0, e
	}
	var info linux.Siginfo
	if e == 0 && r.PID != 0 {
		info.Signo, info.Code = int32(linux.SIGCHLD), r.Code
		info.SetChild(r.PID, r.UID, r.Value, 0, 0)
	}
	// Linux writes the fields up to si_status only, and them also where it fails.
	b := signals.EncodeSiginfo(&info)
	copy(t.Scratch[:], b[:28])
	if _, bad := t.Mem.CopyOut(addr, t.Scratch[:28]); bad != 0 {
		e = bad
	}
	return 0, e
}

// waitID checks the arguments of waitid and waits.
func waitID(t *proc.Thread, a *Args) (r proc.WaitResult, e linux.Errno) {
	opts := a.Uint(3)
	const kinds = linux.WEXITED | linux.WSTOPPED | linux.WCONTINUED
	if opts&^(kinds|linux.WNOHANG|linux.WNOWAIT|linux.WNOTHREAD|linux.WALL|linux.WCLONE) != 0 || opts&kinds == 0 {
		return r, linux.EINVAL
	}
	w := proc.WaitArgs{Kind: int(a.Int(0)), ID: a.Int(1), Options: opts, NoHang: opts&linux.WNOHANG != 0}
	switch w.Kind {
	case linux.P_ALL:
	case linux.P_PID:
		if w.ID <= 0 {
			return r, linux.EINVAL
		}
	case linux.P_PGID:
		if w.ID < 0 {
			return r, linux.EINVAL
		}
		if w.ID == 0 {
			w.ID = t.Proc.Group().ID
		}
	case linux.P_PIDFD:
		return waitPidfd(t, &w)
	default:
		return r, linux.EINVAL
	}
	return t.Wait(&w)
}

// waitPidfd waits for the process behind the descriptor w.ID, which may be
// non-blocking.
func waitPidfd(t *proc.Thread, w *proc.WaitArgs) (r proc.WaitResult, e linux.Errno) {
	if w.ID < 0 {
		return r, linux.EINVAL
	}
	f := t.FDs.Get(w.ID)
	if f == nil {
		return r, linux.EBADF
	}
	w.Process = proc.FromPIDFD(f)
	nonBlocking := f.NonBlock()
	f.Put()
	if w.Process == nil {
		return r, linux.EBADF
	}
	hang := !w.NoHang
	w.NoHang = w.NoHang || nonBlocking
	r, e = t.Wait(w)
	if e == 0 && r.PID == 0 && hang {
		e = linux.EAGAIN
	}
	return r, e
}

// sysPidfdOpen is pidfd_open(pid_t pid, unsigned flags).
func sysPidfdOpen(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	pid, flags := a.Int(0), a.Uint(1)
	if flags&^linux.PIDFD_NONBLOCK != 0 || pid <= 0 {
		return 0, linux.EINVAL
	}
	p := proc.Lookup(pid)
	if p == nil {
		if proc.ByTID(pid) != nil {
			return 0, linux.EINVAL // a thread that leads no process
		}
		return 0, linux.ESRCH
	}
	return addFile(t, proc.OpenPIDFD(p, flags), true)
}

// pidfdProcess returns the process behind a descriptor of the caller as of tells it.
func pidfdProcess(t *proc.Thread, fd int32, of func(*vfs.File) *proc.Process) (*proc.Process, linux.Errno) {
	f := t.FDs.Get(fd)
	if f == nil {
		return nil, linux.EBADF
	}
	defer f.Put()
	p := of(f)
	if p == nil {
		return nil, linux.EBADF
	}
	return p, 0
}

// sysPidfdGetfd is pidfd_getfd(int pidfd, int targetfd, unsigned flags).
func sysPidfdGetfd(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a.Uint(2) != 0 {
		return 0, linux.EINVAL
	}
	p, e := pidfdProcess(t, a.Int(0), proc.FromPIDFD)
	if e != 0 {
		return 0, e
	}
	if p.Main() == nil {
		return 0, linux.ESRCH
	}
	f, _, e := p.InspectFile(nil, &t.Ctx, proc.RealCreds, a.Int(1))
	if e != 0 {
		return 0, e
	}
	if f == nil {
		return 0, linux.EBADF
	}
	return addFile(t, f, true)
}

// sysPidfdSendSignal is pidfd_send_signal(int pidfd, int sig, siginfo_t *info, unsigned flags).
func sysPidfdSendSignal(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a.Uint(3) != 0 {
		return 0, linux.EINVAL
	}
	p, e := pidfdProcess(t, a.Int(0), proc.FromSignalFD)
	if e != 0 {
		return 0, e
	}
	sig := linux.Signal(a.Int(1))
	info := proc.UserInfo(&t.Ctx, sig, linux.SI_USER)
	if addr := a.Addr(2); addr != 0 {
		if info, e = readSiginfo(t, addr); e != 0 {
			return 0, e
		}
		if info.Signal() != sig {
			return 0, linux.EINVAL
		}
		if p != t.Proc && (info.Code >= 0 || info.Code == linux.SI_TKILL) {
			return 0, linux.EPERM
		}
	}
	if p.Reaped() {
		return 0, linux.ESRCH
	}
	return 0, sendTo(t, p, nil, sig, &info)
}
