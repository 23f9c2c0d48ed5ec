package syscall

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/process/proc"
)

var schedAttrCalls = []Call{
	{linux.SYS_sched_setattr, "sched_setattr", sysSchedSetattr, "works except SCHED_DEADLINE (EINVAL) and utilisation clamps (EOPNOTSUPP)"},
	{linux.SYS_sched_getattr, "sched_getattr", sysSchedGetattr, "works"},
	{linux.SYS_ioprio_set, "ioprio_set", sysIoprioSet, "works except that the priority has no effect on disks"},
	{linux.SYS_ioprio_get, "ioprio_get", sysIoprioGet, "works"},
}

// struct sched_attr: size, policy, flags (8), nice, priority, three times of
// SCHED_DEADLINE; its second version adds two utilisation clamps.
const (
	schedAttrMin  = 48
	schedAttrSize = 56
)

// Flags of sched_attr.
const (
	schedFlagResetOnFork = 1
	schedFlagKeepPolicy  = 8
	schedFlagKeepParams  = 16
	schedFlagClamps      = 32 | 64
	schedFlagAll         = 127 // also those of SCHED_DEADLINE alone
)

// schedAttr is what sched_setattr honours of its argument.
type schedAttr struct {
	policy         int32
	flags          uint64
	nice, priority int32
}

// readSchedAttr reads a struct sched_attr. Where its size is not known, ours is
// written there.
func readSchedAttr(t *proc.Thread, addr uio.Addr) (x schedAttr, e linux.Errno) {
	le := binary.LittleEndian
	b, e := readUser(t, addr, 4)
	if e != 0 {
		return x, e
	}
	size := uint64(le.Uint32(b))
	if size == 0 {
		size = schedAttrMin
	}
	var attr [schedAttrSize]byte
	if e := readExtensible(t, attr[:], addr, size, schedAttrMin); e != 0 {
		if e == linux.EINVAL || e == linux.E2BIG {
			if e := writeU32(t, addr, schedAttrSize); e != 0 {
				return x, e
			}
			e = linux.E2BIG
		}
		return x, e
	}
	x = schedAttr{
		policy: int32(le.Uint32(attr[4:])), flags: le.Uint64(attr[8:]),
		nice: min(max(int32(le.Uint32(attr[16:])), -20), 19), priority: int32(le.Uint32(attr[20:])),
	}
	if x.policy < 0 || x.flags&schedFlagClamps != 0 && size < schedAttrSize {
		return x, linux.EINVAL
	}
	return x, 0
}

// sysSchedSetattr is sched_setattr(pid_t pid, struct sched_attr *attr, unsigned flags).
func sysSchedSetattr(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a.Addr(1) == 0 || a.Int(0) < 0 || a.Uint(2) != 0 {
		return 0, linux.EINVAL
	}
	x, e := readSchedAttr(t, a.Addr(1))
	if e != 0 {
		return 0, e
	}
	u, e := threadOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	if x.flags&^schedFlagAll != 0 {
		return 0, linux.EINVAL
	}
	s := u.Sched()
	if x.flags&schedFlagKeepParams != 0 {
		if _, high, _ := priorities(s.Policy &^ schedResetOnFork); high > 0 {
			x.priority = s.Priority
		} else {
			x.nice = keepNice
		}
	}
	if x.flags&schedFlagKeepPolicy != 0 {
		x.policy = s.Policy
	} else if x.policy&schedResetOnFork != 0 {
		return 0, linux.EINVAL // here it is a flag of its own
	} else if x.flags&schedFlagResetOnFork != 0 {
		x.policy |= schedResetOnFork
	}
	if e := mayHavePolicy(t, u, x.policy, x.priority); e != 0 {
		return 0, e
	}
	switch {
	case x.flags&schedFlagClamps != 0:
		return 0, linux.EOPNOTSUPP
	case x.flags&schedFlagKeepParams != 0:
		// Linux keeps the policy with them, except for its flag.
		x.policy = s.Policy&^schedResetOnFork | x.policy&schedResetOnFork
		x.priority, x.nice = s.Priority, keepNice
	}
	return 0, setPolicy(t, u, x.policy, x.priority, x.nice)
}

// maySetNice reports whether RLIMIT_NICE allows a nice value; it counts from 20 (nice
// 0) upwards to 40 (nice -20).
func maySetNice(p *proc.Process, nice int32) bool {
	return uint64(20-nice) <= p.Rlimit(linux.RLIMIT_NICE).Cur
}

// renice sets a thread's nice value with the rights of the caller.
func renice(t, u *proc.Thread, nice int32) linux.Errno {
	nice = min(max(nice, -20), 19)
	may := t.Cred().Has(creds.CapSysNice) || maySetNice(u.Proc, nice)
	return u.SetSched(func(s *proc.Sched) linux.Errno {
		if nice < s.Nice && !may {
			return linux.EACCES
		}
		s.Nice = nice
		return 0
	})
}

// sysSchedGetattr is sched_getattr(pid_t pid, struct sched_attr *attr, unsigned size, unsigned flags).
func sysSchedGetattr(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	size := a.Uint(2)
	if a.Addr(1) == 0 || a.Int(0) < 0 || size < schedAttrMin || size > 4096 || a.Uint(3) != 0 {
		return 0, linux.EINVAL
	}
	u, e := threadOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	s := u.Sched()
	b := t.Scratch[:min(size, schedAttrSize)]
	clear(b)
	le := binary.LittleEndian
	le.PutUint32(b, uint32(len(b)))
	le.PutUint32(b[4:], uint32(s.Policy&^schedResetOnFork))
	if s.Policy&schedResetOnFork != 0 {
		le.PutUint64(b[8:], schedFlagResetOnFork)
	}
	if s.Priority != 0 {
		le.PutUint32(b[20:], uint32(s.Priority))
	} else {
		le.PutUint32(b[16:], uint32(s.Nice))
	}
	_, e = t.Mem.CopyOut(a.Addr(1), b)
	return 0, e
}

// Classes of an I/O priority, whose number is class<<13 | hint<<3 | level.
const (
	ioprioNone      = 0
	ioprioRealtime  = 1
	ioprioBest      = 2
	ioprioIdle      = 3
	ioprioClassBits = 13
)

// ioprioTargets lists whom ioprio_get and ioprio_set mean; their kinds are one
// more than those of getpriority.
func ioprioTargets(t *proc.Thread, which, who int32) ([]*proc.Thread, linux.Errno) {
	if which < 1 || which > 3 {
		return nil, linux.EINVAL
	}
	return priorityTargets(t, which-1, who)
}

// sysIoprioSet is ioprio_set(int which, int who, int ioprio).
func sysIoprioSet(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	class, level := a.Uint(2)>>ioprioClassBits&7, a.Uint(2)&7
	c := t.Cred()
	switch class {
	case ioprioRealtime:
		if !c.Has(creds.CapSysAdmin) && !c.Has(creds.CapSysNice) {
			return 0, linux.EPERM
		}
		fallthrough
	case ioprioBest, ioprioIdle:
	case ioprioNone:
		if level != 0 {
			return 0, linux.EINVAL
		}
	default:
		return 0, linux.EINVAL
	}
	list, e := ioprioTargets(t, a.Int(0), a.Int(1))
	if e != 0 {
		return 0, e
	}
	if a.Int(0) == 3 && a.Int(1) == 0 {
		list = userThreads(0) // root's, as on Linux; to ioprio_get they are the caller's
	}
	for _, u := range list {
		o := u.Cred()
		if (o.UID != c.EUID && o.UID != c.UID || o.Permitted&^c.Permitted != 0) && !c.Has(creds.CapSysNice) {
			return 0, linux.EPERM
		}
		u.SetSched(func(s *proc.Sched) linux.Errno {
			s.IOPriority = int32(uint16(a.Uint(2)))
			return 0
		})
	}
	return 0, 0
}

// effectiveIOPriority is a thread's I/O priority; by default it follows from its
// scheduling.
func effectiveIOPriority(s proc.Sched) int32 {
	if s.IOPriority>>ioprioClassBits&7 != ioprioNone {
		return s.IOPriority
	}
	level := (s.Nice + 20) / 5
	switch s.Policy &^ schedResetOnFork {
	case schedIdle:
		return ioprioIdle<<ioprioClassBits | level
	case schedFIFO, schedRR:
		return ioprioRealtime<<ioprioClassBits | level
	}
	return ioprioBest<<ioprioClassBits | level
}

// sysIoprioGet is ioprio_get(int which, int who): that of a thread, or the best of
// those that are meant.
func sysIoprioGet(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	list, e := ioprioTargets(t, a.Int(0), a.Int(1))
	if e != 0 {
		return 0, e
	}
	if a.Int(0) == 1 {
		return uint64(list[0].Sched().IOPriority), 0
	}
	best := int32(-1)
	for _, u := range list {
		v := effectiveIOPriority(u.Sched())
		if best < 0 || v < best {
			best = v
		}
	}
	return uint64(best), 0
}
