package procfs

import (
	"fmt"
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/process/posixtimer"
	"hardtack/kernel/process/proc"
)

// niceWeights are the weights of the nice values -20 … 19, as Linux's scheduler has
// them.
var niceWeights = [40]int{88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121, 2501,
	1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15}

// readSched tells how the thread is scheduled: what of Linux's figures there is here.
func readSched(x *about) ([]byte, linux.Errno) {
	t := x.thread()
	s := t.Sched()
	ran, _, _ := t.Queue()
	v, n := t.Switches()
	b := fmt.Appendf(nil, "%s (%d, #threads: %d)\n%s\n", t.Name(), t.TID, x.process().CountThreads(), strings.Repeat("-", 67))
	nano := func(name string, v int64) { b = fmt.Appendf(b, "%-45s:%14d.%06d\n", name, v/1e6, v%1e6) }
	count := func(name string, v int64) { b = fmt.Appendf(b, "%-45s:%21d\n", name, v) }
	now := clocks.Monotonic()
	nano("se.exec_start", now)
	nano("se.sum_exec_runtime", ran)
	count("nr_switches", v+n)
	count("nr_voluntary_switches", v)
	count("nr_involuntary_switches", n)
	count("se.load.weight", int64(niceWeights[min(max(s.Nice+20, 0), 39)])<<10)
	const fifo, roundRobin = 1, 2
	policy := s.Policy &^ proc.SchedResetOnFork
	count("policy", int64(policy))
	priority := int64(120 + s.Nice)
	if policy == fifo || policy == roundRobin {
		priority = 99 - int64(s.Priority)
	}
	count("prio", priority)
	count("clock-delta", clocks.Monotonic()-now)
	return b, 0
}

// writeSched resets figures that are not kept here.
func writeSched(*about, []byte) linux.Errno { return 0 }

// defaultCoreFilter dumps anonymous memory, ELF headers and private huge pages.
const defaultCoreFilter = 0x33

// coreFilterBits are those that there are.
const coreFilterBits = 1<<9 - 1

func readCoreFilter(x *about) ([]byte, linux.Errno) {
	t := x.thread()
	if t.State() >= proc.StateZombie {
		return nil, 0
	}
	return fmt.Appendf(nil, "%08x\n", t.Sched().CoreFilter^defaultCoreFilter), 0
}

// writeCoreFilter sets it for all threads: it is the address space's.
func writeCoreFilter(x *about, b []byte) linux.Errno {
	n, e := parseUint(b, 0, 32)
	if e != 0 {
		return e
	}
	if x.thread().State() >= proc.StateZombie {
		return linux.ESRCH
	}
	for _, t := range x.process().Threads() {
		t.SetSched(func(s *proc.Sched) linux.Errno {
			s.CoreFilter = uint16(n&coreFilterBits) ^ defaultCoreFilter
			return 0
		})
	}
	return 0
}

// readTimers lists the POSIX timers.
func readTimers(x *about) ([]byte, linux.Errno) {
	var b []byte
	for _, t := range posixtimer.Each(x.process()) {
		how, kind, id := "signal", "pid", x.process().PID
		switch t.How {
		case linux.SIGEV_NONE:
			how = "none"
		case linux.SIGEV_THREAD:
			how = "thread"
		case linux.SIGEV_THREAD_ID:
			kind, id = "tid", t.Thread.TID
		}
		b = fmt.Appendf(b, "ID: %d\nsignal: %d/%016x\nnotify: %s/%s.%d\nClockID: %d\n", t.ID, t.Signal, t.Value, how, kind, id, t.Clock)
	}
	return b, 0
}

// oom_adj is what there was before oom_score_adj: -17 … 15.
const oomDisable, oomMost = -17, 15

func readOOMOld(x *about) ([]byte, linux.Errno) {
	n := x.process().OOMScoreAdj()
	v := n * -oomDisable / 1000
	if n == 1000 {
		v = oomMost
	}
	return fmt.Appendf(nil, "%d\n", min(v, oomMost)), 0
}

func writeOOMOld(x *about, b []byte) linux.Errno {
	n, e := parseInt([]byte(strings.TrimSpace(cstring(b[:min(len(b), 12)]))), 0, 32)
	switch {
	case e != 0:
		return e
	case n < oomDisable || n > oomMost:
		return linux.EINVAL
	case n == oomMost:
		n = 1000
	default:
		n = n * 1000 / -oomDisable
	}
	p, privileged := x.process(), x.c.Cred().Has(creds.CapSysResource)
	if int32(n) < p.OOMScoreAdj() && !privileged {
		return linux.EACCES
	}
	return p.SetOOMScoreAdj(int32(n), privileged)
}
