package syscall

import (
	"cmp"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/process/proc"
)

var prctlCalls = []Call{
	{linux.SYS_prctl, "prctl", sysPrctl, "works for SET/GET of PDEATHSIG, DUMPABLE, NAME, KEEPCAPS, NO_NEW_PRIVS, CHILD_SUBREAPER, SECUREBITS, TIMERSLACK, TSC (enabled only), THP_DISABLE, and CAPBSET_READ, CAPBSET_DROP, CAP_AMBIENT, SET_VMA, GET_TID_ADDRESS; MCE_KILL and IO_FLUSHER are stored without effect, TASK_PERF_EVENTS has no events to act on, SPECULATION_CTRL has no mitigations to switch; others are EINVAL"},
}

// Operations of prctl (include/uapi/linux/prctl.h).
const (
	prSetPdeathsig      = 1
	prGetPdeathsig      = 2
	prGetDumpable       = 3
	prSetDumpable       = 4
	prGetKeepcaps       = 7
	prSetKeepcaps       = 8
	prGetTiming         = 13
	prSetTiming         = 14
	prSetName           = 15
	prGetName           = 16
	prGetSeccomp        = 21
	prCapbsetRead       = 23
	prCapbsetDrop       = 24
	prGetTSC            = 25
	prSetTSC            = 26
	prGetSecurebits     = 27
	prSetSecurebits     = 28
	prSetTimerslack     = 29
	prGetTimerslack     = 30
	prPerfDisable       = 31
	prPerfEnable        = 32
	prMCEKill           = 33
	prMCEKillGet        = 34
	prSetChildSubreaper = 36
	prGetChildSubreaper = 37
	prSetNoNewPrivs     = 38
	prGetNoNewPrivs     = 39
	prGetTIDAddress     = 40
	prSetTHPDisable     = 41
	prGetTHPDisable     = 42
	prCapAmbient        = 47
	prGetSpeculation    = 52
	prSetSpeculation    = 53
	prSetIOFlusher      = 57
	prGetIOFlusher      = 58
	prSetDispatch       = 59
	prSetVMA            = 0x53564d41
	prSetVMAAnonName    = 0
	capAmbientIsSet     = 1
	capAmbientRaise     = 2
	capAmbientLower     = 3
	capAmbientClearAll  = 4
	lastCap             = 40
	tscEnabled          = 1
	prctlNameSize       = 16
	maxVMAName          = 80
)

// sysPrctl is prctl(int op, arg2, arg3, arg4, arg5).
func sysPrctl(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	p := t.Proc
	switch a.Int(0) {
	case prSetPdeathsig:
		if a[1] > uint64(linux.NSIG) {
			return 0, linux.EINVAL
		}
		p.SetDeathSignal(int32(a[1]))
	case prGetPdeathsig:
		return 0, writeU32(t, a.Addr(1), uint32(p.DeathSignal()))
	case prGetDumpable:
		return uint64(t.Space.Dumpable()), 0
	case prSetDumpable:
		if a[1] > 1 {
			return 0, linux.EINVAL
		}
		t.Space.SetDumpable(int32(a[1]))
	case prSetName:
		name, e := readCommName(t, a.Addr(1))
		if e != 0 {
			return 0, e
		}
		t.SetName(name)
	case prGetName:
		b := t.Scratch[:prctlNameSize]
		clear(b)
		copy(b, t.Name())
		_, e := t.Mem.CopyOut(a.Addr(1), b)
		return 0, e
	case prGetTiming:
		return 0, 0
	case prSetTiming:
		if a[1] != 0 {
			return 0, linux.EINVAL
		}
	case prGetSeccomp:
		return 0, 0
	case prGetTSC:
		return 0, writeU32(t, a.Addr(1), tscEnabled)
	case prSetTSC:
		if a[1] != tscEnabled {
			return 0, linux.EINVAL
		}
	case prSetTimerslack:
		return 0, t.SetSched(func(s *proc.Sched) linux.Errno {
			s.Slack = a[1]
			if int64(a[1]) <= 0 {
				s.Slack = 0
			}
			return 0
		})
	case prGetTimerslack:
		s := t.Sched()
		return cmp.Or(s.Slack, s.DefaultSlack, proc.DefaultSlack), 0
	case prSetChildSubreaper:
		p.SetSubreaper(a[1] != 0)
	case prGetChildSubreaper:
		return 0, writeU32(t, a.Addr(1), boolWord(p.Subreaper()))
	case prGetTIDAddress:
		return 0, writeWords(t, a.Addr(1), int64(t.Futex.ClearTID))
	case prSetVMA:
		return 0, nameMapping(t, a)
	default:
		return prctlRare(t, a)
	}
	return 0, 0
}

// prctlRare is prctl for what has no effect here.
func prctlRare(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	switch a.Int(0) {
	case prGetSpeculation, prSetSpeculation:
		return speculation(a)
	case prSetDispatch: // only off: there is no dispatch of calls to the program
		if a[1]|a[2]|a[3]|a[4] != 0 {
			return 0, linux.EINVAL
		}
		return 0, 0
	}
	return prctlCreds(t, a)
}

// Ways to speculate, and what is told about them.
const (
	speculateStoreBypass = 0
	speculateIndirect    = 1
	speculateL1DFlush    = 2
	specEnable           = 2
	specDisable          = 4
	specForceDisable     = 8
)

// speculation is PR_GET_SPECULATION_CTRL and PR_SET_SPECULATION_CTRL. As on a Linux
// without mitigations the CPU speculates, no thread can have it otherwise, and the first
// cache is not flushed.
func speculation(a *Args) (uint64, linux.Errno) {
	get := a.Int(0) == prGetSpeculation
	switch {
	case a[3]|a[4] != 0 || get && a[2] != 0:
		return 0, linux.EINVAL
	case a[1] > speculateL1DFlush:
		return 0, linux.ENODEV
	case get && a[1] == speculateL1DFlush:
		return specForceDisable, 0
	case get:
		return specEnable, 0
	case a[1] == speculateStoreBypass:
		return 0, linux.ENXIO
	case a[1] == speculateIndirect && a[2] == specEnable:
		return 0, 0
	case a[1] == speculateIndirect && a[2] != specDisable && a[2] != specForceDisable:
		return 0, linux.ERANGE
	}
	return 0, linux.EPERM
}

func boolWord(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// readCommName reads a thread's new name, of which 15 bytes count.
func readCommName(t *proc.Thread, addr uio.Addr) (string, linux.Errno) {
	s, e := t.Space.ReadString(addr, prctlNameSize)
	if e == linux.ENAMETOOLONG {
		b, e := readUser(t, addr, prctlNameSize-1)
		//maxlive:len 15 because so many bytes were read
		return string(b), e
	}
	return s, e
}

// nameMapping is PR_SET_VMA_ANON_NAME: the address range is checked, the name,
// which only /proc/PID/maps would show, is not kept.
func nameMapping(t *proc.Thread, a *Args) linux.Errno {
	if a[1] != prSetVMAAnonName || a[2]&4095 != 0 {
		return linux.EINVAL
	}
	if a[4] == 0 {
		return 0
	}
	s, e := t.Space.ReadString(a.Addr(4), maxVMAName)
	if e == linux.ENAMETOOLONG {
		return linux.EINVAL
	}
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c > 0x7e || c == '\\' || c == '`' || c == '$' || c == '[' || c == ']' {
			return linux.EINVAL
		}
	}
	return e
}

// prctlCreds are the operations on credentials.
func prctlCreds(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	c := t.Cred()
	n := *c
	switch a.Int(0) {
	case prGetKeepcaps:
		return uint64(boolWord(c.Secure(creds.SecureKeepCaps))), 0
	case prSetKeepcaps:
		if a[1] > 1 {
			return 0, linux.EINVAL
		}
		if c.Secure(creds.SecureKeepCaps << 1) {
			return 0, linux.EPERM
		}
		n.SecureBits &^= creds.SecureKeepCaps
		if a[1] == 1 {
			n.SecureBits |= creds.SecureKeepCaps
		}
	case prSetNoNewPrivs:
		if a[1] != 1 || a[2]|a[3]|a[4] != 0 {
			return 0, linux.EINVAL
		}
		n.NoNewPrivs = true
	case prGetNoNewPrivs:
		if a[1]|a[2]|a[3]|a[4] != 0 {
			return 0, linux.EINVAL
		}
		return uint64(boolWord(c.NoNewPrivs)), 0
	case prCapbsetRead:
		if a[1] > lastCap {
			return 0, linux.EINVAL
		}
		return c.Bounding >> a[1] & 1, 0
	case prCapbsetDrop:
		if !c.Has(creds.CapSetpcap) {
			return 0, linux.EPERM
		}
		if a[1] > lastCap {
			return 0, linux.EINVAL
		}
		n.Bounding &^= 1 << a[1]
	case prGetSecurebits:
		return uint64(c.SecureBits), 0
	case prSetSecurebits:
		n, e := creds.SetSecureBits(c, a[1])
		if e == 0 {
			t.SetCred(n)
		}
		return 0, e
	case prCapAmbient:
		return ambient(t, a, n)
	default:
		return prctlKept(t, a)
	}
	t.SetCred(&n)
	return 0, 0
}

// ambient is PR_CAP_AMBIENT.
func ambient(t *proc.Thread, a *Args, n creds.Cred) (uint64, linux.Errno) {
	if a[1] == capAmbientClearAll {
		if a[2]|a[3]|a[4] != 0 {
			return 0, linux.EINVAL
		}
		n.Ambient = 0
		t.SetCred(&n)
		return 0, 0
	}
	if a[3]|a[4] != 0 || a[2] > lastCap {
		return 0, linux.EINVAL
	}
	bit := uint64(1) << a[2]
	switch a[1] {
	case capAmbientIsSet:
		return n.Ambient >> a[2] & 1, 0
	case capAmbientRaise:
		if n.Permitted&n.Inheritable&bit == 0 || n.Secure(creds.SecureNoAmbientRaise) {
			return 0, linux.EPERM
		}
		n.Ambient |= bit
	case capAmbientLower:
		n.Ambient &^= bit
	default:
		return 0, linux.EINVAL
	}
	t.SetCred(&n)
	return 0, 0
}

// Values of PR_MCE_KILL.
const (
	mceKillClear   = 0
	mceKillSet     = 1
	mceKillDefault = 2 // 1 is early, 0 late
)

// prctlKept are settings that are kept and reported but change nothing: there are
// no huge pages, no events to count, and no memory that reports its errors.
func prctlKept(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	p, rest := t.Proc, a[2]|a[3]|a[4]
	switch a.Int(0) {
	case prSetTHPDisable:
		if rest == 0 {
			p.THPDisable.Store(a[1] != 0)
			return 0, 0
		}
	case prGetTHPDisable:
		if a[1]|rest == 0 {
			return uint64(boolWord(p.THPDisable.Load())), 0
		}
	case prPerfDisable, prPerfEnable:
		return 0, 0
	case prMCEKill:
		return 0, setMachineCheck(t, a)
	case prMCEKillGet:
		if a[1]|rest == 0 {
			return uint64(t.Sched().MachineCheck+mceKillDefault) % 3, 0
		}
	case prSetIOFlusher:
		if !t.Cred().Has(creds.CapSysResource) {
			return 0, linux.EPERM
		}
		if rest == 0 && a[1] <= 1 {
			return 0, t.SetSched(func(s *proc.Sched) linux.Errno {
				s.IOFlusher = a[1] == 1
				return 0
			})
		}
	case prGetIOFlusher:
		if !t.Cred().Has(creds.CapSysResource) {
			return 0, linux.EPERM
		}
		if a[1]|rest == 0 {
			return uint64(boolWord(t.Sched().IOFlusher)), 0
		}
	}
	return 0, linux.EINVAL
}

// setMachineCheck is PR_MCE_KILL. What is kept counts from the default.
func setMachineCheck(t *proc.Thread, a *Args) linux.Errno {
	v := a[2]
	switch {
	case a[3]|a[4] != 0, a[1] == mceKillClear && v != 0, a[1] == mceKillSet && v > mceKillDefault, a[1] > mceKillSet:
		return linux.EINVAL
	case a[1] == mceKillClear:
		v = mceKillDefault
	}
	return t.SetSched(func(s *proc.Sched) linux.Errno {
		s.MachineCheck = (uint32(v) + 3 - mceKillDefault) % 3
		return 0
	})
}
