package syscall

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/process/signals"
)

var signalCalls = []Call{
	{linux.SYS_rt_sigaction, "rt_sigaction", sysRtSigaction, "works"},
	{linux.SYS_rt_sigprocmask, "rt_sigprocmask", sysRtSigprocmask, "works"},
	{linux.SYS_rt_sigreturn, "rt_sigreturn", sysRtSigreturn, "works"},
	{linux.SYS_rt_sigpending, "rt_sigpending", sysRtSigpending, "works"},
	{linux.SYS_rt_sigsuspend, "rt_sigsuspend", sysRtSigsuspend, "works"},
	{linux.SYS_rt_sigtimedwait, "rt_sigtimedwait", sysRtSigtimedwait, "works"},
	{linux.SYS_rt_sigqueueinfo, "rt_sigqueueinfo", sysRtSigqueueinfo, "works"},
	{linux.SYS_rt_tgsigqueueinfo, "rt_tgsigqueueinfo", sysRtTgsigqueueinfo, "works"},
	{linux.SYS_sigaltstack, "sigaltstack", sysSigaltstack, "works"},
	{linux.SYS_pause, "pause", sysPause, "works"},
	{linux.SYS_kill, "kill", sysKill, "works"},
	{linux.SYS_tkill, "tkill", sysTkill, "works"},
	{linux.SYS_tgkill, "tgkill", sysTgkill, "works"},
	{linux.SYS_restart_syscall, "restart_syscall", sysRestart, "works"},
	{linux.SYS_alarm, "alarm", sysAlarm, "works"},
	{linux.SYS_getitimer, "getitimer", sysGetitimer, "works"},
	{linux.SYS_setitimer, "setitimer", sysSetitimer, "works; ITIMER_VIRTUAL and ITIMER_PROF to 10 ms"},
}

func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// sysRtSigaction is rt_sigaction(int sig, const struct sigaction *act, struct sigaction *old, size_t size).
func sysRtSigaction(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	sig := linux.Signal(a.Int(0))
	if a[3] != 8 {
		return 0, linux.EINVAL
	}
	var act *linux.SigAction
	if addr := a.Addr(1); addr != 0 {
		b, e := readUser(t, addr, 32)
		if e != 0 {
			return 0, e
		}
		if !sig.Valid() || sig == linux.SIGKILL || sig == linux.SIGSTOP {
			return 0, linux.EINVAL
		}
		act = &linux.SigAction{
			Handler: le64(b), Flags: le64(b[8:]), Restorer: le64(b[16:]), Mask: linux.SigSet(le64(b[24:])),
		}
		const known = linux.SA_NOCLDSTOP | linux.SA_NOCLDWAIT | linux.SA_SIGINFO | linux.SA_EXPOSE_TAGBITS |
			linux.SA_RESTORER | linux.SA_ONSTACK | linux.SA_RESTART | linux.SA_NODEFER | linux.SA_RESETHAND
		act.Flags &= known
	}
	if !sig.Valid() {
		return 0, linux.EINVAL
	}
	old := t.Proc.SetAction(sig, act)
	if addr := a.Addr(2); addr != 0 {
		return 0, writeWords(t, addr, int64(old.Handler), int64(old.Flags), int64(old.Restorer), int64(old.Mask))
	}
	return 0, 0
}

// sysRtSigprocmask is rt_sigprocmask(int how, const sigset_t *set, sigset_t *old, size_t size).
func sysRtSigprocmask(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a[3] != 8 {
		return 0, linux.EINVAL
	}
	old := t.Blocked()
	m, given, e := readSigset(t, a.Addr(1), 8)
	if e != 0 {
		return 0, e
	}
	if given {
		switch a.Int(0) {
		case linux.SIG_BLOCK:
			m |= old
		case linux.SIG_UNBLOCK:
			m = old &^ m
		case linux.SIG_SETMASK:
		default:
			return 0, linux.EINVAL
		}
		t.SetBlocked(m)
	}
	if addr := a.Addr(2); addr != 0 {
		return 0, writeWords(t, addr, int64(old))
	}
	return 0, 0
}

// sysRtSigreturn is rt_sigreturn(): the registers come from the frame, the
// result too.
func sysRtSigreturn(t *proc.Thread, _ *Args) (uint64, linux.Errno) {
	t.Sigreturn()
	return t.User.RAX, 0
}

// sysRtSigpending is rt_sigpending(sigset_t *set, size_t size).
func sysRtSigpending(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a[1] > 8 {
		return 0, linux.EINVAL
	}
	binary.LittleEndian.PutUint64(t.Scratch[:], uint64(t.Pending()&t.Blocked()))
	_, e := t.Mem.CopyOut(a.Addr(0), t.Scratch[:a[1]])
	return 0, e
}

// sleepForSignal blocks until a signal is to be delivered.
func sleepForSignal(t *proc.Thread) (uint64, linux.Errno) {
	for {
		t.Arm()
		if t.Sleep(wait.NoDeadline) == wait.Interrupted {
			return 0, linux.ERESTARTNOHAND
		}
	}
}

// sysRtSigsuspend is rt_sigsuspend(const sigset_t *mask, size_t size).
func sysRtSigsuspend(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a[1] != 8 {
		return 0, linux.EINVAL
	}
	m, given, e := readSigset(t, a.Addr(0), 8)
	if e != 0 {
		return 0, e
	}
	if !given {
		return 0, linux.EFAULT
	}
	t.SetTempMask(m)
	return sleepForSignal(t)
}

// sysPause is pause().
func sysPause(t *proc.Thread, _ *Args) (uint64, linux.Errno) { return sleepForSignal(t) }

// sysRtSigtimedwait is rt_sigtimedwait(const sigset_t *set, siginfo_t *info,
// const struct timespec *timeout, size_t size).
func sysRtSigtimedwait(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a[3] != 8 {
		return 0, linux.EINVAL
	}
	m, given, e := readSigset(t, a.Addr(0), 8)
	if e != 0 {
		return 0, e
	}
	if !given {
		return 0, linux.EFAULT
	}
	limit, e := limitTimespec(t, a.Addr(2))
	if e != 0 {
		return 0, e
	}
	info, e := t.WaitSignal(m, limit.deadline, limit.poll)
	if e != 0 {
		return 0, e
	}
	if addr := a.Addr(1); addr != 0 {
		b := signals.EncodeSiginfo(&info)
		n := copy(t.Scratch[:], b[:])
		if _, e := t.Mem.CopyOut(addr, t.Scratch[:n]); e != 0 {
			return 0, e
		}
	}
	return uint64(info.Signo), 0
}

// sysSigaltstack is sigaltstack(const stack_t *ss, stack_t *old).
func sysSigaltstack(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	var n *linux.StackT
	if addr := a.Addr(0); addr != 0 {
		b, e := readUser(t, addr, 24)
		if e != 0 {
			return 0, e
		}
		n = &linux.StackT{SP: le64(b), Flags: int32(le64(b[8:])), Size: le64(b[16:])}
	}
	old, e := t.AltStack(n)
	if e != 0 {
		return 0, e
	}
	if addr := a.Addr(1); addr != 0 {
		return 0, writeWords(t, addr, int64(old.SP), int64(uint32(old.Flags)), int64(old.Size))
	}
	return 0, 0
}

// sendTo sends a signal to a process, or to one of its threads, if the caller
// may; signal 0 asks only that.
func sendTo(t *proc.Thread, p *proc.Process, u *proc.Thread, sig linux.Signal, info *linux.Siginfo) linux.Errno {
	if sig < 0 || sig > linux.NSIG {
		return linux.EINVAL
	}
	if p != t.Proc && !proc.MaySignal(t.Cred(), p, u, sig, p.Session() == t.Proc.Session()) {
		return linux.EPERM
	}
	switch {
	case sig == 0:
		return 0
	case u != nil:
		return u.Signal(info)
	}
	return p.Signal(info)
}

// sysKill is kill(pid_t pid, int sig).
func sysKill(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	pid, sig := a.Int(0), linux.Signal(a.Int(1))
	info := proc.UserInfo(&t.Ctx, sig, linux.SI_USER)
	switch {
	case pid > 0:
		p := process(t, pid)
		if p == nil {
			return 0, linux.ESRCH
		}
		return 0, sendTo(t, p, nil, sig, &info)
	case pid == -1:
		return 0, killAll(t, sig, &info)
	case pid == -1<<31:
		return 0, linux.ESRCH
	}
	pgid := -pid
	if pgid == 0 {
		pgid = t.Proc.Group().ID
	}
	return 0, killMany(t, proc.GroupMembers(pgid), sig, &info)
}

// killMany sends to several processes: it succeeds if one could be reached.
func killMany(t *proc.Thread, list []*proc.Process, sig linux.Signal, info *linux.Siginfo) linux.Errno {
	result := linux.ESRCH
	for _, p := range list {
		if e := sendTo(t, p, nil, sig, info); e == 0 || result != 0 {
			result = e
		}
	}
	return result
}

// killAll sends to everybody but process 1 and the caller.
func killAll(t *proc.Thread, sig linux.Signal, info *linux.Siginfo) linux.Errno {
	var list []*proc.Process
	proc.Each(func(p *proc.Process) bool {
		if p.PID != 1 && p != t.Proc {
			list = append(list, p)
		}
		return true
	})
	result := linux.ESRCH
	for _, p := range list {
		if e := sendTo(t, p, nil, sig, info); e != linux.EPERM || result == linux.ESRCH {
			result = e
		}
		if result == linux.EPERM {
			result = 0 // there was somebody, if out of reach
		}
	}
	return result
}

func killThread(t *proc.Thread, tgid, tid int32, sig linux.Signal, info *linux.Siginfo) linux.Errno {
	if tid <= 0 {
		return linux.EINVAL
	}
	u := proc.ByTID(tid)
	if u == nil && (tgid == 0 || tgid == tid) {
		if p := proc.Lookup(tid); p != nil {
			return sendTo(t, p, nil, sig, info) // it is still there to be asked for
		}
	}
	if u == nil || tgid != 0 && u.Proc.PID != tgid {
		return linux.ESRCH
	}
	return sendTo(t, u.Proc, u, sig, info)
}

// sysTkill is tkill(int tid, int sig).
func sysTkill(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	info := proc.UserInfo(&t.Ctx, linux.Signal(a.Int(1)), linux.SI_TKILL)
	return 0, killThread(t, 0, a.Int(0), linux.Signal(a.Int(1)), &info)
}

// sysTgkill is tgkill(int tgid, int tid, int sig).
func sysTgkill(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a.Int(0) <= 0 {
		return 0, linux.EINVAL
	}
	info := proc.UserInfo(&t.Ctx, linux.Signal(a.Int(2)), linux.SI_TKILL)
	return 0, killThread(t, a.Int(0), a.Int(1), linux.Signal(a.Int(2)), &info)
}

// readSiginfo copies a siginfo_t in.
func readSiginfo(t *proc.Thread, addr uio.Addr) (linux.Siginfo, linux.Errno) {
	b, e := readUser(t, addr, 128)
	if e != 0 {
		return linux.Siginfo{}, e
	}
	return signals.DecodeSiginfo((*[128]byte)(b)), 0
}

// sysRtSigqueueinfo is rt_sigqueueinfo(pid_t tgid, int sig, siginfo_t *info).
func sysRtSigqueueinfo(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	info, e := readSiginfo(t, a.Addr(2))
	if e != 0 {
		return 0, e
	}
	sig := linux.Signal(a.Int(1))
	info.Signo = int32(sig)
	// Nobody may pretend to be kill or the kernel.
	if (info.Code >= 0 || info.Code == linux.SI_TKILL) && a.Int(0) != t.PID {
		return 0, linux.EPERM
	}
	p := process(t, a.Int(0))
	if a.Int(0) <= 0 || p == nil {
		return 0, linux.ESRCH
	}
	return 0, sendTo(t, p, nil, sig, &info)
}

// sysRtTgsigqueueinfo is rt_tgsigqueueinfo(pid_t tgid, pid_t tid, int sig, siginfo_t *info).
func sysRtTgsigqueueinfo(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	info, e := readSiginfo(t, a.Addr(3))
	if e != 0 {
		return 0, e
	}
	if a.Int(0) <= 0 || a.Int(1) <= 0 {
		return 0, linux.EINVAL
	}
	sig := linux.Signal(a.Int(2))
	info.Signo = int32(sig)
	if (info.Code >= 0 || info.Code == linux.SI_TKILL) && a.Int(0) != t.PID {
		return 0, linux.EPERM
	}
	return 0, killThread(t, a.Int(0), a.Int(1), sig, &info)
}

// sysRestart is restart_syscall(): an interrupted call goes on.
func sysRestart(t *proc.Thread, _ *Args) (uint64, linux.Errno) { return t.ResumeRestart() }

// sysAlarm is alarm(unsigned seconds).
func sysAlarm(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	left, _ := t.Proc.SetItimer(proc.ItimerReal, int64(a.Uint(0))*linux.NsecPerSec, 0)
	sec, rest := left/linux.NsecPerSec, left%linux.NsecPerSec
	// Rounded, but never to 0 while the alarm is set.
	if rest >= linux.NsecPerSec/2 || sec == 0 && rest > 0 {
		sec++
	}
	return uint64(sec), 0
}

// timevals are struct itimerval as nanoseconds, in memory's order.
func writeItimer(t *proc.Thread, addr uio.Addr, left, interval int64) linux.Errno {
	i, v := linux.NsecToTimeval(interval), linux.NsecToTimeval(left)
	return writeWords(t, addr, i.Sec, i.Usec, v.Sec, v.Usec)
}

// sysGetitimer is getitimer(int which, struct itimerval *value).
func sysGetitimer(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	which := a.Int(0)
	if which < proc.ItimerReal || which > proc.ItimerProf {
		return 0, linux.EINVAL
	}
	left, interval := t.Proc.Itimer(int(which))
	return 0, writeItimer(t, a.Addr(1), left, interval)
}

// sysSetitimer is setitimer(int which, const struct itimerval *new, struct itimerval *old).
func sysSetitimer(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	which := a.Int(0)
	var v [4]int64
	if addr := a.Addr(1); addr != 0 {
		b, e := readUser(t, addr, 32)
		if e != 0 {
			return 0, e
		}
		for i := range v {
			v[i] = int64(le64(b[8*i:]))
		}
	}
	interval, e := timevalNano(v[0], v[1])
	if e != 0 {
		return 0, e
	}
	value, e := timevalNano(v[2], v[3])
	if e != 0 {
		return 0, e
	}
	if which < proc.ItimerReal || which > proc.ItimerProf {
		return 0, linux.EINVAL
	}
	left, old := t.Proc.SetItimer(int(which), value, interval)
	if addr := a.Addr(2); addr != 0 {
		return 0, writeItimer(t, addr, left, old)
	}
	return 0, 0
}

func timevalNano(sec, usec int64) (int64, linux.Errno) {
	if sec < 0 || usec < 0 || usec >= 1_000_000 {
		return 0, linux.EINVAL
	}
	return linux.Timespec{Sec: sec, Nsec: usec * 1000}.Nano(), 0
}
