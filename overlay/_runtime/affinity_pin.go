package runtime

import (
	"internal/goarch"
	"internal/runtime/atomic"
)

// The policies "process" and "node": while most channels vote for it, the
// threads of the process are bound to one core, or to the cores that share a
// last-level cache. "process" is the scheme of the paper.
//
// A thread takes part if its mask is the process's own; one that the program
// bound itself keeps its mask, even if that is the narrow one. Threads started
// meanwhile inherit the narrow mask and are freed with the rest. All state is the
// monitor thread's, which is never bound: its mask is what a cgroup leaves of the
// process's. A bound thread whose core a cgroup takes away gets that mask, while the
// kernel still remembers the narrow one for when the core is back: so a thread with
// the monitor's mask is freed too.
//
// A process that is bound and freed while a cgroup holds some of its cores back
// keeps to those that it had, until it is bound and freed again.

const affMaskWords = 128 // 8192 CPUs

type affMask [affMaskWords]uint64

var affPin struct {
	pinned      atomic.Bool
	yes, voters atomic.Uint32 // of the last vote

	base, narrow, scratch affMask
	left                  affMask // of base, by a cgroup: the monitor thread's own
	path                  affText
	buf                   [4096]byte
	own                   affMask // by M, those that kept their mask when the rest was bound
	refused               uint32  // periods to wait after the kernel refused
}

const (
	sysSchedSetaffinity = 203*goarch.IsAmd64 + 122*goarch.IsArm64
	sysGetcpu           = 309*goarch.IsAmd64 + 168*goarch.IsArm64
)

// affPinTick acts on a vote.
func affPinTick(policy uint32, now int64, yes, voters uint32) {
	affPin.yes.Store(yes)
	affPin.voters.Store(voters)
	want := (policy == affProcess || policy == affNode) && 2*yes > voters
	switch {
	case want && !affPin.pinned.Load():
		if affPin.refused > 0 {
			affPin.refused--
			return
		}
		affPinAll(policy, yes, voters)
	case !want && affPin.pinned.Load():
		affFreeAll()
		affPin.pinned.Store(false)
		affRecord(affEvUnpin, 0, uint64(yes), uint64(voters))
	}
}

func affPinAll(policy, yes, voters uint32) {
	if !affMaskOf(uintptr(getpid()), &affPin.base) {
		return
	}
	cpu := affCPU()
	affPin.narrow = affMask{}
	if policy == affProcess {
		affPin.narrow.set(cpu)
	} else {
		affCacheOf(cpu, &affPin.narrow)
	}
	some, same := false, true
	for i, w := range affPin.base {
		affPin.narrow[i] &= w
		some = some || affPin.narrow[i] != 0
		same = same && affPin.narrow[i] == w
	}
	if !some || same {
		return // one core only, or one cache: nothing to gain
	}
	if !affBindAll() {
		affFreeAll()
		affPin.refused = 8
		affRecord(affEvRefused, 0, uint64(yes), uint64(voters))
		return
	}
	affPin.pinned.Store(true)
	affRecord(affEvPin, 0, uint64(yes), uint64(voters))
}

func affBindAll() bool {
	affPin.own = affMask{}
	return affSetAll(&affPin.base, &affPin.narrow, true)
}

func affFreeAll() {
	if !affMaskOf(0, &affPin.left) {
		affPin.left = affPin.narrow
	}
	affSetAll(&affPin.narrow, &affPin.base, false)
}

// affSetAll gives the threads that have one mask another. Those that have another
// are noted as such, or those that were so are left out.
func affSetAll(from, to *affMask, note bool) bool {
	ok := true
	// An M leaves the list under this lock before its thread ends.
	lock(&sched.lock)
	for mp := allm; mp != nil; mp = mp.alllink {
		if mp.procid == 0 || mp == getg().m || !note && affPin.own.has(uint32(mp.id)) {
			continue
		}
		if !affMaskOf(uintptr(mp.procid), &affPin.scratch) || affPin.scratch != *from && (note || affPin.scratch != affPin.left) {
			if note {
				affPin.own.set(uint32(mp.id))
			}
			continue
		}
		ok = affBind(uintptr(mp.procid), to) && ok
	}
	unlock(&sched.lock)
	return ok
}

func (m *affMask) has(n uint32) bool { return n < affMaskWords*64 && m[n/64]>>(n%64)&1 != 0 }

func (m *affMask) set(cpu uint32) {
	if cpu < affMaskWords*64 {
		m[cpu/64] |= 1 << (cpu % 64)
	}
}

// affCacheOf sets the CPUs that share the last-level cache with cpu, by sysfs;
// without caches there, those of its NUMA node.
func affCacheOf(cpu uint32, m *affMask) {
	for index := uint32(5); index > 0; index-- {
		if affReadList(m, "/sys/devices/system/cpu/cpu", cpu, "/cache/index", index-1, "/shared_cpu_list") {
			return
		}
	}
	for node := uint32(0); node < 64; node++ {
		*m = affMask{}
		if affReadList(m, "/sys/devices/system/node/node", node, "", ^uint32(0), "/cpulist") && m[cpu/64%affMaskWords]>>(cpu%64)&1 != 0 {
			return
		}
	}
}

func affReadList(m *affMask, a string, n uint32, b string, k uint32, c string) bool {
	t := &affPin.path
	t.n = 0
	t.str(a)
	t.num(uint64(n))
	t.str(b)
	if k != ^uint32(0) {
		t.num(uint64(k))
	}
	t.str(c)
	t.str("\x00")
	fd := open(&t.b[0], 0, 0)
	if fd < 0 {
		return false
	}
	got := affRead(fd, affPin.buf[:])
	closefd(fd)
	return got > 0 && affParseList(m, affPin.buf[:got])
}

// affParseList reads "0-3,8,10-11". What is not of that form gives false.
func affParseList(m *affMask, s []byte) bool {
	from, num, digits, ranged := uint32(0), uint32(0), 0, false
	for i := 0; i <= len(s); i++ {
		c := byte(',')
		if i < len(s) && s[i] != '\n' {
			c = s[i]
		}
		switch {
		case c >= '0' && c <= '9':
			if num = num*10 + uint32(c-'0'); num >= affMaskWords*64 {
				return false
			}
			digits++
		case c == '-' && digits > 0 && !ranged:
			from, num, digits, ranged = num, 0, 0, true
		case c == ',' && digits > 0:
			if !ranged {
				from = num
			}
			for ; from <= num; from++ {
				m.set(from)
			}
			num, digits, ranged = 0, 0, false
		default:
			return false
		}
		if i == len(s) || s[i] == '\n' {
			return true
		}
	}
	return true
}

// affText is a line that is put together without allocating: sysmon has no P.
type affText struct {
	b [256]byte
	n int
}

func (t *affText) str(s string) { t.n += copy(t.b[t.n:], s) }

func (t *affText) num(n uint64) {
	var d [20]byte
	i := len(d)
	for {
		i--
		d[i] = byte('0' + n%10)
		if n /= 10; n == 0 {
			break
		}
	}
	t.n += copy(t.b[t.n:], d[i:])
}

// The log: lines for programs that draw. "s NANOSECONDS TOUCHES CROSS CONTENDED
// YES VOTERS PINNED TOGETHER" every 20 ms (counts since the start), and
// "e NANOSECONDS KIND GROUP A B" for each decision.

var affLog struct {
	line  affText
	event uint64
	start int64
}

func affOpenLog(name string) int32 {
	const writeOnly, create, appendTo, cloexec = 1, 0x40, 0x400, 0x80000
	var path [4097]byte
	if len(name) >= len(path) {
		return -1
	}
	copy(path[:], name)
	if n := len(name); n > 0 && name[n-1] == '%' {
		t := &affLog.line
		t.num(uint64(getpid()))
		if n-1+t.n >= len(path) {
			return -1
		}
		copy(path[n-1:], t.b[:t.n])
	}
	return open(&path[0], writeOnly|create|appendTo|cloexec, 0o644)
}

func affLogLine(now int64) {
	if affLog.start == 0 {
		affLog.start = now
	}
	for end := affEvents.n.Load(); affLog.event < end; affLog.event++ {
		if end > affLog.event+uint64(len(affEvents.ring)) {
			affLog.event = end - uint64(len(affEvents.ring))
		}
		e := &affEvents.ring[affLog.event%uint64(len(affEvents.ring))]
		affWriteLog("e", uint64(max(e.when-affLog.start, 0)), uint64(e.kind), uint64(e.group), e.a, e.b)
	}
	pinned := uint64(0)
	if affPin.pinned.Load() {
		pinned = 1
	}
	affWriteLog("s", uint64(now-affLog.start), aff.sumTouches.Load(), aff.sumCross.Load(), aff.sumContended.Load(),
		uint64(affPin.yes.Load()), uint64(affPin.voters.Load()), pinned, uint64(affTogether()))
}

func affWriteLog(kind string, fields ...uint64) {
	t := &affLog.line
	t.n = 0
	t.str(kind)
	for _, f := range fields {
		t.str(" ")
		t.num(f)
	}
	t.str("\n")
	affWrite(aff.logFD, t.b[:t.n])
}
