package syscall

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/kern"
	"hardtack/kernel/proc"
)

var schedAttrCalls = []Call{
	{linux.SYS_sched_setattr, "sched_setattr", sysSchedSetattr, "works except SCHED_DEADLINE and utilisation clamps (EINVAL); the policy has no effect"},
	{linux.SYS_sched_getattr, "sched_getattr", sysSchedGetattr, "works"},
	{linux.SYS_ioprio_set, "ioprio_set", sysIoprioSet, "works except that the priority has no effect on disks"},
	{linux.SYS_ioprio_get, "ioprio_get", sysIoprioGet, "works"},
}

// struct sched_attr: size, policy, flags (8), nice, priority, and three times
// of SCHED_DEADLINE; its first version.
const schedAttrSize = 48

// Flags of sched_attr.
const (
	schedFlagResetOnFork = 1
	schedFlagKeepPolicy  = 8
	schedFlagKeepParams  = 16
)

// sysSchedSetattr is sched_setattr(pid_t pid, struct sched_attr *attr, unsigned flags).
func sysSchedSetattr(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a.Addr(1) == 0 || a.Int(0) < 0 || a.Uint(2) != 0 {
		return 0, linux.EINVAL
	}
	le := binary.LittleEndian
	b, e := readUser(t, a.Addr(1), 4)
	if e != 0 {
		return 0, e
	}
	size := uint64(le.Uint32(b))
	if size == 0 {
		size = schedAttrSize
	}
	var attr [schedAttrSize]byte
	if e := readExtensible(t, attr[:], a.Addr(1), size, schedAttrSize); e != 0 {
		if e == linux.EINVAL || e == linux.E2BIG {
			if e := writeU32(t, a.Addr(1), schedAttrSize); e != 0 {
				return 0, e
			}
			e = linux.E2BIG
		}
		return 0, e
	}
	policy, flags := int32(le.Uint32(attr[4:])), le.Uint64(attr[8:])
	nice, priority := int32(le.Uint32(attr[16:])), int32(le.Uint32(attr[20:]))
	u, e := threadOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	if flags&^(schedFlagResetOnFork|schedFlagKeepPolicy|schedFlagKeepParams) != 0 || policy < 0 {
		return 0, linux.EINVAL
	}
	s := u.Sched()
	if flags&schedFlagKeepPolicy != 0 {
		policy = s.Policy &^ schedResetOnFork
	}
	if flags&schedFlagKeepParams != 0 {
		priority, nice = s.Priority, s.Nice
	}
	if flags&schedFlagResetOnFork != 0 {
		policy |= schedResetOnFork
	}
	if e := setPolicy(t, u, policy, priority); e != 0 {
		return 0, e
	}
	if _, high, _ := priorities(policy &^ schedResetOnFork); high > 0 || nice == s.Nice {
		return 0, 0
	}
	return 0, renice(t, u, nice)
}

// maySetNice reports whether RLIMIT_NICE allows a nice value; it counts from 20 (nice
// 0) upwards to 40 (nice -20).
func maySetNice(p *proc.Process, nice int32) bool {
	return uint64(20-nice) <= p.Rlimit(linux.RLIMIT_NICE).Cur
}

// renice sets a thread's nice value with the rights of the caller.
func renice(t, u *proc.Thread, nice int32) linux.Errno {
	nice = min(max(nice, -20), 19)
	may := t.Cred().Has(kern.CapSysNice) || maySetNice(u.Proc, nice)
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
	if a.Addr(1) == 0 || a.Int(0) < 0 || size < schedAttrSize || size > 4096 || a.Uint(3) != 0 {
		return 0, linux.EINVAL
	}
	u, e := threadOf(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	s := u.Sched()
	b := t.Scratch[:schedAttrSize]
	clear(b)
	le := binary.LittleEndian
	le.PutUint32(b, schedAttrSize)
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

// Classes of an I/O priority, whose number is class<<13 | level.
const (
	ioprioNone      = 0
	ioprioRealtime  = 1
	ioprioBest      = 2
	ioprioIdle      = 3
	ioprioDefault   = 4 // level
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
	class, level := a.Uint(2)>>ioprioClassBits, a.Uint(2)&(1<<ioprioClassBits-1)
	c := t.Cred()
	switch class {
	case ioprioRealtime:
		if !c.Has(kern.CapSysAdmin) && !c.Has(kern.CapSysNice) {
			return 0, linux.EPERM
		}
		fallthrough
	case ioprioBest:
		if level >= 8 {
			return 0, linux.EINVAL
		}
	case ioprioIdle:
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
	for _, u := range list {
		o := u.Cred()
		if (o.UID != c.EUID && o.UID != c.UID || o.Permitted&^c.Permitted != 0) && !c.Has(kern.CapSysNice) {
			return 0, linux.EPERM
		}
		u.SetSched(func(s *proc.Sched) linux.Errno {
			s.IOPriority = int32(a.Uint(2))
			return 0
		})
	}
	return 0, 0
}

// sysIoprioGet is ioprio_get(int which, int who): the best of those that are meant.
func sysIoprioGet(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	list, e := ioprioTargets(t, a.Int(0), a.Int(1))
	if e != 0 {
		return 0, e
	}
	best := int32(-1)
	for _, u := range list {
		v := u.Sched().IOPriority
		if v>>ioprioClassBits == ioprioNone {
			v = ioprioBest<<ioprioClassBits | ioprioDefault
		}
		if best < 0 || v < best {
			best = v
		}
	}
	return uint64(best), 0
}
