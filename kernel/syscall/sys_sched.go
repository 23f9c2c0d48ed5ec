package syscall

import (
	"encoding/binary"
	"math/bits"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/process/proc"
)

var schedCalls = []Call{
	{linux.SYS_sched_yield, "sched_yield", sysSchedYield, "works"},
	{linux.SYS_sched_getaffinity, "sched_getaffinity", sysSchedGetaffinity, "works"},
	{linux.SYS_sched_setaffinity, "sched_setaffinity", sysSchedSetaffinity, "works"},
	{linux.SYS_sched_getscheduler, "sched_getscheduler", sysSchedGetscheduler, "works"},
	{linux.SYS_sched_setscheduler, "sched_setscheduler", sysSchedSetscheduler, "works; SCHED_DEADLINE gives EINVAL"},
	{linux.SYS_sched_getparam, "sched_getparam", sysSchedGetparam, "works"},
	{linux.SYS_sched_setparam, "sched_setparam", sysSchedSetparam, "works"},
	{linux.SYS_sched_get_priority_max, "sched_get_priority_max", sysSchedPriorityMax, "works"},
	{linux.SYS_sched_get_priority_min, "sched_get_priority_min", sysSchedPriorityMin, "works"},
	{linux.SYS_sched_rr_get_interval, "sched_rr_get_interval", sysSchedRRInterval, "works"},
	{linux.SYS_getpriority, "getpriority", sysGetpriority, "works"},
	{linux.SYS_setpriority, "setpriority", sysSetpriority, "works"},
	{linux.SYS_getcpu, "getcpu", sysGetcpu, "works"},
}

// sysSchedYield is sched_yield().
func sysSchedYield(t *proc.Thread, _ *Args) (uint64, linux.Errno) {
	t.Yield()
	return 0, 0
}

// threadOf returns the thread with a number; 0 is the caller.
func threadOf(t *proc.Thread, tid int32) (*proc.Thread, linux.Errno) {
	if tid < 0 {
		return nil, linux.EINVAL
	}
	if tid == 0 {
		return t, 0
	}
	if u := proc.Task(tid); u != nil {
		return u, 0
	}
	return nil, linux.ESRCH
}

// affinityOf is threadOf for the affinity calls, to which no number is invalid.
func affinityOf(t *proc.Thread, tid int32) (*proc.Thread, linux.Errno) {
	if tid < 0 {
		return nil, linux.ESRCH
	}
	return threadOf(t, tid)
}

// mayRenice is the rule who may change another's scheduling: who has one of its user
// ids, and no capability less.
func mayRenice(c *creds.Cred, u *proc.Thread) bool {
	o := u.Cred()
	return (c.EUID == o.EUID || c.EUID == o.UID) && o.Permitted&^c.Permitted == 0 || c.Has(creds.CapSysNice)
}

// sysSchedGetaffinity is sched_getaffinity(pid_t pid, size_t size, mask); it
// returns how many bytes it wrote.
func sysSchedGetaffinity(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a.Uint(1)*8 < uint32(bits.Len64(proc.AllCPUs())) || a[1]&7 != 0 {
		return 0, linux.EINVAL
	}
	u, e := affinityOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	m := proc.OnlineCPUs()
	if own := u.Sched().Affinity; own != 0 {
		m &= own
	}
	return 8, writeWords(t, a.Addr(2), int64(m))
}

// sysSchedSetaffinity is sched_setaffinity(pid_t pid, size_t size, mask).
func sysSchedSetaffinity(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	b := t.Scratch[:8]
	clear(b)
	if _, e := t.Mem.CopyIn(b[:min(a.Uint(1), 8)], a.Addr(2)); e != 0 {
		return 0, e
	}
	u, e := affinityOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	if u.Proc != t.Proc && !mayRenice(t.Cred(), u) {
		return 0, linux.EPERM
	}
	m := binary.LittleEndian.Uint64(b) & proc.OnlineCPUs()
	if m == 0 {
		return 0, linux.EINVAL
	}
	if m == proc.PresentCPUs() {
		m = 0
	}
	u.SetCPUs(m)
	return 0, 0
}

// Policies of sched_setscheduler.
const (
	schedOther       = 0
	schedFIFO        = 1
	schedRR          = 2
	schedBatch       = 3
	schedIdle        = 5
	schedResetOnFork = 0x40000000
)

// priorities returns the range of a policy's priorities.
func priorities(policy int32) (low, high int32, ok bool) {
	switch policy {
	case schedFIFO, schedRR:
		return 1, 99, true
	case schedOther, schedBatch, schedIdle, 6:
		return 0, 0, true
	}
	return 0, 0, false
}

// mayHavePolicy reports whether a policy and a priority go together, and whether the
// caller may change the thread's.
func mayHavePolicy(t, u *proc.Thread, policy, priority int32) linux.Errno {
	policy &^= schedResetOnFork
	low, high, ok := priorities(policy)
	switch {
	case !ok || policy == 6 || priority < low || priority > high:
		return linux.EINVAL
	case u != t && !mayRenice(t.Cred(), u):
		return linux.EPERM
	}
	return 0
}

// keepNice, in place of a nice value, leaves the thread's.
const keepNice = 127

// setPolicy sets a thread's policy and priority, and for the ordinary policies its nice
// value, with the rights of the caller: all of it, or nothing.
func setPolicy(t, u *proc.Thread, policy, priority, nice int32) linux.Errno {
	if e := mayHavePolicy(t, u, policy, priority); e != 0 {
		return e
	}
	reset := policy & schedResetOnFork
	policy &^= schedResetOnFork
	_, high, _ := priorities(policy)
	c := t.Cred()
	realtime := uint64(0)
	if high > 0 {
		realtime = u.Proc.Rlimit(linux.RLIMIT_RTPRIO).Cur
	}
	if policy != schedOther && policy != schedBatch {
		nice = keepNice
	}
	return u.SetSched(func(s *proc.Sched) linux.Errno {
		old := s.Policy &^ schedResetOnFork
		if !c.Has(creds.CapSysNice) {
			switch {
			case high > 0 && (policy != old && realtime == 0 || priority > s.Priority && uint64(priority) > realtime),
				nice < s.Nice && !maySetNice(u.Proc, nice),
				old == schedIdle && policy != schedIdle && !maySetNice(u.Proc, s.Nice),
				s.Policy&schedResetOnFork != 0 && reset == 0:
				return linux.EPERM
			}
		}
		s.Policy, s.Priority = policy|reset, priority
		if nice != keepNice {
			s.Nice = nice
		}
		return 0
	})
}

// sysSchedGetscheduler is sched_getscheduler(pid_t pid).
func sysSchedGetscheduler(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	u, e := threadOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	return uint64(u.Sched().Policy), 0
}

// readPriority reads a struct sched_param.
func readPriority(t *proc.Thread, a *Args, i int) (int32, linux.Errno) {
	if a.Addr(i) == 0 {
		return 0, linux.EINVAL
	}
	b, e := readUser(t, a.Addr(i), 4)
	if e != 0 {
		return 0, e
	}
	return int32(binary.LittleEndian.Uint32(b)), 0
}

// sysSchedSetscheduler is sched_setscheduler(pid_t pid, int policy, const struct sched_param *param).
func sysSchedSetscheduler(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a.Int(1) < 0 {
		return 0, linux.EINVAL
	}
	priority, e := readPriority(t, a, 2)
	if e != 0 {
		return 0, e
	}
	u, e := threadOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	return 0, setPolicy(t, u, a.Int(1), priority, keepNice)
}

// sysSchedGetparam is sched_getparam(pid_t pid, struct sched_param *param).
func sysSchedGetparam(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a.Addr(1) == 0 {
		return 0, linux.EINVAL
	}
	u, e := threadOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	return 0, writeU32(t, a.Addr(1), uint32(u.Sched().Priority))
}

// sysSchedSetparam is sched_setparam(pid_t pid, const struct sched_param *param).
func sysSchedSetparam(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	priority, e := readPriority(t, a, 1)
	if e != 0 {
		return 0, e
	}
	u, e := threadOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	return 0, setPolicy(t, u, u.Sched().Policy, priority, keepNice)
}

// sysSchedPriorityMax is sched_get_priority_max(int policy).
func sysSchedPriorityMax(_ *proc.Thread, a *Args) (uint64, linux.Errno) {
	_, high, ok := priorities(a.Int(0))
	if !ok {
		return 0, linux.EINVAL
	}
	return uint64(high), 0
}

// sysSchedPriorityMin is sched_get_priority_min(int policy).
func sysSchedPriorityMin(_ *proc.Thread, a *Args) (uint64, linux.Errno) {
	low, _, ok := priorities(a.Int(0))
	if !ok {
		return 0, linux.EINVAL
	}
	return uint64(low), 0
}

// fairSlice is what sched_rr_get_interval answers for threads that are not real-time: the
// nucleus's slice.
const fairSlice = 4_000_000

// sysSchedRRInterval is sched_rr_get_interval(pid_t pid, struct timespec *interval).
func sysSchedRRInterval(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	u, e := threadOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	ts := linux.Timespec{Nsec: fairSlice}
	switch u.Sched().Policy &^ schedResetOnFork {
	case schedFIFO:
		ts.Nsec = 0
	case schedRR:
		ts = linux.NsecToTimespec(proc.RealTimeSlice())
	}
	return 0, writeTimespec(t, a.Addr(1), ts)
}

// Kinds of getpriority.
const (
	prioProcess = 0
	prioPgrp    = 1
	prioUser    = 2
)

// appendThreads adds the threads of a process; of one that has ended, the first.
func appendThreads(list []*proc.Thread, p *proc.Process) []*proc.Thread {
	if p.Zombie() {
		return append(list, p.First())
	}
	return append(list, p.Threads()...)
}

// userThreads lists the threads of a user.
func userThreads(uid uint32) (list []*proc.Thread) {
	proc.Each(func(p *proc.Process) bool {
		for _, u := range p.Threads() {
			if u.Cred().UID == uid {
				list = append(list, u)
			}
		}
		return true
	})
	return list
}

// priorityTargets lists the threads that getpriority and setpriority mean.
func priorityTargets(t *proc.Thread, which, who int32) ([]*proc.Thread, linux.Errno) {
	var list []*proc.Thread
	switch which {
	case prioProcess:
		if who == 0 {
			list = append(list, t)
		} else if u := proc.Task(who); u != nil {
			list = append(list, u)
		}
	case prioPgrp:
		if who == 0 {
			who = t.Proc.Group().ID
		}
		for _, p := range proc.GroupMembers(who) {
			list = appendThreads(list, p)
		}
	case prioUser:
		uid := uint32(who)
		if who == 0 {
			uid = t.Cred().UID
		}
		list = userThreads(uid)
	default:
		return nil, linux.EINVAL
	}
	if len(list) == 0 {
		return nil, linux.ESRCH
	}
	return list, 0
}

// sysGetpriority is getpriority(int which, id_t who): 20 minus the nice value.
func sysGetpriority(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	list, e := priorityTargets(t, a.Int(0), a.Int(1))
	if e != 0 {
		return 0, e
	}
	best := int32(1)
	for _, u := range list {
		best = max(best, 20-u.Sched().Nice)
	}
	return uint64(best), 0
}

// sysSetpriority is setpriority(int which, id_t who, int prio).
func sysSetpriority(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	list, e := priorityTargets(t, a.Int(0), a.Int(1))
	if e != 0 {
		return 0, e
	}
	nice := a.Int(2)
	c := t.Cred()
	for _, u := range list {
		if !mayRenice(c, u) {
			e = linux.EPERM
			continue
		}
		if denied := renice(t, u, nice); denied != 0 {
			e = denied
		}
	}
	return 0, e
}

// sysGetcpu is getcpu(unsigned *cpu, unsigned *node, void *unused).
func sysGetcpu(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	cpu := t.LastCPU() // where it made the call
	if addr := a.Addr(0); addr != 0 {
		if e := writeU32(t, addr, uint32(cpu)); e != 0 {
			return 0, e
		}
	}
	if addr := a.Addr(1); addr != 0 {
		return 0, writeU32(t, addr, 0)
	}
	return 0, 0
}
