package procfs

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/process/program"
)

// clockTicks is how many ticks of /proc make a second (USER_HZ).
const clockTicks = 100

func ticksOf(ns int64) int64 { return ns / (1e9 / clockTicks) }

// Terminal is what /proc wants of a controlling terminal.
type Terminal interface {
	Device() uint64         // st_rdev
	ForegroundGroup() int32 // 0 for none
}

// facts are what stat and status tell of a process or thread.
type facts struct {
	x           *about
	p           *proc.Process
	t           *proc.Thread
	name        string
	state       byte
	tid         int32
	mem         vm.Stats
	threads     int
	cred        *creds.Cred
	user, sys   int64
	start       int64
	pend, shpnd linux.SigSet
	blocked     linux.SigSet
	ignored     linux.SigSet
	caught      linux.SigSet
}

func factsOf(x *about) *facts {
	p := x.process()
	f := &facts{x: x, p: p, t: x.thread(), name: x.comm(), tid: p.PID, cred: p.Cred(), threads: p.CountThreads()}
	if f.cred == nil {
		f.cred = &creds.Cred{}
	}
	if x.t != nil {
		f.tid = x.t.TID
		f.state = x.t.State().Letter()
		f.user, f.sys = x.t.CPUTime()
		f.start = x.t.StartTime()
		f.cred = x.t.Cred()
	} else {
		f.state = p.State().Letter()
		f.user, f.sys = p.CPUTime()
		f.start = p.StartTime()
	}
	if s := x.space(); s != nil {
		f.mem = s.Stats()
		s.EndLook()
	}
	f.ignored, f.caught = p.SignalSets()
	if f.t != nil {
		f.pend, f.shpnd = f.t.PendingSets()
		f.blocked = f.t.Blocked()
	}
	return f
}

func readStat(x *about) ([]byte, linux.Errno) {
	f := factsOf(x)
	p := f.p
	var sched proc.Sched
	cpu := uint64(0)
	if f.t != nil {
		sched, cpu = f.t.Sched(), uint64(f.t.LastCPU())
	}
	tty, foreground := uint64(0), int32(-1)
	if t, ok := p.Session().TTY().(Terminal); ok {
		tty, foreground = t.Device(), t.ForegroundGroup()
	}
	// Addresses and the exit status are nobody else's business.
	var img program.Image
	exit := uint64(0)
	if !x.mayLook(func(t *proc.Thread) {
		if i := p.Image(); t != nil && i != nil {
			img = *i
		}
	}) {
		if f.mem.Size != 0 {
			img.CodeStart, img.CodeEnd = 1, 1 // as Linux says it
		}
	} else {
		exit = uint64(p.ExitStatus())
	}
	priority := int64(20) + int64(sched.Nice)
	if sched.Priority > 0 {
		priority = -1 - int64(sched.Priority)
	}
	faults, childFaults := p.FaultCounts()
	childUser, childSys := p.ChildrenTime()
	b := make([]byte, 0, 384)
	b = strconv.AppendInt(b, int64(f.tid), 10)
	b = append(append(append(b, " ("...), f.name...), ") "...)
	b = append(b, f.state)
	for _, v := range [...]int64{int64(p.PPID()), int64(p.Group().ID), int64(p.Session().ID), int64(tty), int64(foreground), 0x400000,
		faults, childFaults, 0, 0, ticksOf(f.user), ticksOf(f.sys), ticksOf(childUser), ticksOf(childSys),
		priority, int64(sched.Nice), int64(f.threads), 0, ticksOf(f.start - bootTime)} {
		b = strconv.AppendInt(append(b, ' '), v, 10)
	}
	for _, v := range [...]uint64{f.mem.Size, f.mem.RSS / mem.PageSize, p.Rlimit(linux.RLIMIT_RSS).Cur,
		img.CodeStart, img.CodeEnd, img.StackTop, 0, 0,
		uint64(f.pend) & (1<<31 - 1), uint64(f.blocked) & (1<<31 - 1), uint64(f.ignored) & (1<<31 - 1), uint64(f.caught) & (1<<31 - 1),
		0, 0, 0, uint64(p.DeathSignal()), cpu, uint64(sched.Priority), uint64(sched.Policy &^ proc.SchedResetOnFork), 0, 0, 0,
		img.DataStart, img.DataEnd, img.DataEnd, img.ArgStart, img.ArgEnd, img.EnvStart, img.EnvEnd, exit} {
		b = strconv.AppendUint(append(b, ' '), v, 10)
	}
	return append(b, '\n'), 0
}

var stateNames = map[byte]string{'R': "running", 'S': "sleeping", 'D': "disk sleep", 'T': "stopped", 'Z': "zombie", 'X': "dead"}

func readStatus(x *about) ([]byte, linux.Errno) {
	f := factsOf(x)
	p, c := f.p, f.cred
	umask := uint32(0o22)
	fds := 0
	if f.t != nil {
		if _, m, ok := f.t.Dirs(); ok {
			umask = m
		}
		fds = f.t.FDSize()
	}
	b := fmt.Appendf(nil, "Name:\t%s\nUmask:\t%04o\nState:\t%c (%s)\nTgid:\t%d\nNgid:\t0\nPid:\t%d\nPPid:\t%d\nTracerPid:\t0\n",
		escapeName(f.name), umask, f.state, stateNames[f.state], p.PID, f.tid, p.PPID())
	b = fmt.Appendf(b, "Uid:\t%d\t%d\t%d\t%d\nGid:\t%d\t%d\t%d\t%d\nFDSize:\t%d\nGroups:\t",
		c.UID, c.EUID, c.SUID, c.FSUID, c.GID, c.EGID, c.SGID, c.FSGID, fds)
	for _, g := range c.Groups {
		b = fmt.Appendf(b, "%d ", g)
	}
	b = fmt.Appendf(b, "\nNStgid:\t%d\nNSpid:\t%d\nNSpgid:\t%d\nNSsid:\t%d\n", p.PID, f.tid, p.Group().ID, p.Session().ID)
	if f.mem.Size != 0 {
		for _, r := range []struct {
			name string
			v    uint64
		}{{"VmPeak", f.mem.Peak}, {"VmSize", f.mem.Size}, {"VmLck", f.mem.Locked}, {"VmPin", 0}, {"VmHWM", f.mem.HWM}, {"VmRSS", f.mem.RSS},
			{"RssAnon", f.mem.RSSAnon}, {"RssFile", f.mem.RSSFile}, {"RssShmem", f.mem.RSSShmem}, {"VmData", f.mem.Data}, {"VmStk", f.mem.Stack},
			{"VmExe", f.mem.Exec}, {"VmLib", f.mem.Lib}, {"VmPTE", f.mem.Tables}, {"VmSwap", 0}, {"HugetlbPages", 0}} {
			b = fmt.Appendf(b, "%s:\t%8d kB\n", r.name, r.v>>10)
		}
	}
	if f.mem.Size != 0 {
		sum := p.Ledger()
		b = fmt.Appendf(b, "VmKernel:\t%8d kB\n", sum.Kernel()>>10)
		b = append(b, "CoreDumping:\t0\nTHP_enabled:\t0\n"...)
	}
	limit, queued := p.Rlimit(linux.RLIMIT_SIGPENDING).Cur, int64(0)
	if c.User != nil {
		queued = c.User.Signals.Load()
	}
	b = fmt.Appendf(b, "Threads:\t%d\nSigQ:\t%d/%d\nSigPnd:\t%016x\nShdPnd:\t%016x\nSigBlk:\t%016x\nSigIgn:\t%016x\nSigCgt:\t%016x\n",
		f.threads, queued, limit, uint64(f.pend), uint64(f.shpnd), uint64(f.blocked), uint64(f.ignored), uint64(f.caught))
	b = fmt.Appendf(b, "CapInh:\t%016x\nCapPrm:\t%016x\nCapEff:\t%016x\nCapBnd:\t%016x\nCapAmb:\t%016x\n",
		c.Inheritable, c.Permitted, c.Effective, c.Bounding, c.Ambient)
	n, _ := proc.CPUs.Call()
	var voluntary, preempted int64
	allowed := allOf(n)
	if f.t != nil {
		if cpus := f.t.CPUs(); cpus != 0 {
			allowed = cpus
		}
		voluntary, preempted = f.t.Switches()
	}
	b = fmt.Appendf(b, "NoNewPrivs:\t%d\nSeccomp:\t0\nSeccomp_filters:\t0\nCpus_allowed:\t%s\nCpus_allowed_list:\t%s\nMems_allowed:\t1\nMems_allowed_list:\t0\nvoluntary_ctxt_switches:\t%d\nnonvoluntary_ctxt_switches:\t%d\n",
		btoi(c.NoNewPrivs), hexCPUs(n, allowed), listCPUs(allowed), voluntary, preempted)
	return b, 0
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// allOf is the set of n CPUs.
func allOf(n int) uint64 { return 1<<uint(n) - 1 }

// hexCPUs is a set of CPUs as hexadecimal words, where there are n CPUs.
func hexCPUs(n int, m uint64) string {
	if n > 32 {
		return fmt.Sprintf("%0*x,%08x", (n-32+3)/4, m>>32, uint32(m))
	}
	return fmt.Sprintf("%0*x", (n+3)/4, m)
}

// listCPUs is a set of CPUs as a list of numbers and ranges.
func listCPUs(m uint64) string {
	var b []byte
	for m != 0 {
		from := bits.TrailingZeros64(m)
		to := from + bits.TrailingZeros64(^(m >> from)) - 1
		if len(b) > 0 {
			b = append(b, ',')
		}
		if b = strconv.AppendInt(b, int64(from), 10); to > from {
			b = strconv.AppendInt(append(b, '-'), int64(to), 10)
		}
		m &^= (2<<(to-from) - 1) << from
	}
	return string(b)
}

// CPUSet is a set of CPUs as hexadecimal words, and as a list, where there are n CPUs.
func CPUSet(n int, m uint64) (words, list string) { return hexCPUs(n, m), listCPUs(m) }

// CPUMaskOf is CPU i as such a set where there are n.
func CPUMaskOf(n, i int) string {
	if n > 32 {
		return fmt.Sprintf("%08x,%08x", uint64(1)<<i>>32, uint32(uint64(1)<<i))
	}
	return fmt.Sprintf("%x", uint64(1)<<i)
}

// CPURange is the set of n CPUs as a list: "0" or "0-3".
func CPURange(n int) string {
	if n <= 1 {
		return "0"
	}
	return fmt.Sprintf("0-%d", n-1)
}

var nameEscapes = strings.NewReplacer("\n", "\\n", "\\", "\\\\")

// escapeName keeps a name on one line.
func escapeName(s string) string { return nameEscapes.Replace(s) }

func readStatm(x *about) ([]byte, linux.Errno) {
	var m vm.Stats
	if s := x.space(); s != nil {
		m = s.Stats()
		s.EndLook()
	}
	return fmt.Appendf(nil, "%d %d %d %d 0 %d 0\n", m.Size/mem.PageSize, m.RSS/mem.PageSize,
		(m.RSSFile+m.RSSShmem)/mem.PageSize, m.Exec/mem.PageSize, (m.Data+m.Stack)/mem.PageSize), 0
}
