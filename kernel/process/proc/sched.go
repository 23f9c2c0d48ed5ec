package proc

import "hardtack/abi/linux"

// Sched is what sched_setscheduler and sched_setaffinity set. Nice and SCHED_IDLE give the
// thread its weight (turn.go), Priority its place among real-time threads (realtime.go),
// Affinity the processors it runs on (cpus.go); the rest is kept and reported.
type Sched struct {
	Policy   int32
	Priority int32
	Nice     int32 // -20 … 19
	// IOPriority is ioprio_set's.
	IOPriority   int32
	Affinity     uint64 // 0: all CPUs
	Slack        uint64 // PR_SET_TIMERSLACK; 0: DefaultSlack
	DefaultSlack uint64 // the parent's; 0: the first process's
	IOFlusher    bool   // PR_SET_IO_FLUSHER
	CoreFilter   uint16 // /proc/PID/coredump_filter, in what it differs from the default
	MachineCheck uint32 // PR_MCE_KILL
	// MemPolicy and MemNodes are set_mempolicy's.
	MemPolicy uint32
	MemNodes  uint64
}

// DefaultSlack is a timer slack of 0, in nanoseconds.
const DefaultSlack = 50_000

// SchedResetOnFork in Policy makes children start with the default.
const SchedResetOnFork = 0x40000000

// forChild returns a child's settings.
func (s Sched) forChild() Sched {
	if s.Policy&SchedResetOnFork != 0 {
		s.Policy &^= SchedResetOnFork
		s.Nice = max(s.Nice, 0)
		if s.Priority > 0 {
			s.Policy, s.Priority, s.Nice = 0, 0, 0
		}
	}
	if s.Slack != 0 {
		s.DefaultSlack, s.Slack = s.Slack, 0
	}
	return s
}

// Sched returns the thread's settings.
func (t *Thread) Sched() Sched {
	t.Proc.mu.Lock()
	defer t.Proc.mu.Unlock()
	return t.sched
}

// SetSched changes the thread's settings.
func (t *Thread) SetSched(fn func(s *Sched) linux.Errno) linux.Errno {
	t.Proc.mu.Lock()
	defer t.Proc.mu.Unlock()
	before := t.sched
	errno := fn(&t.sched)
	t.weigh()
	if s := &t.sched; s.Priority < before.Priority || s.Nice > before.Nice {
		t.User.Kick() // others may come first now
	}
	return errno
}
