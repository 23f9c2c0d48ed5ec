// Package runtime, Hardtack's additions: channel-aware scheduling.
//
// This file holds the settings; affinity_touch.go counts what happens on channels;
// affinity_group.go keeps goroutines that meet on contended channels on one P;
// affinity_pin.go puts the whole process on fewer cores; affinity_unsafe.go reads
// raw memory for them. Small patches to Go's own files call them.
//
// Locks: a channel's lock is held in affTouch, which takes a group's lock below
// it. A group's lock is a leaf: nothing is locked below it. procresize takes it
// under sched.lock.
//
// Nothing here is allocated: slots and groups are static arrays of integers, so
// that the scheduler's code may touch them without write barriers.

package runtime

import (
	"internal/runtime/atomic"
	"internal/strconv"
)

// The policies, in the order of their numbers in hardtack/affinity.
const (
	affOff     = iota // counts only
	affProcess        // a vote of the channels puts the process on one core
	affNode           // the same vote, but the cores of one last-level cache
	affGroups         // goroutines of one conversation share a P
)

var affNames = [...]string{"off", "process", "node", "group"}

// Settings. policy is read on every slow path; the others are written before
// it and only read while it is not off.
var aff struct {
	policy  atomic.Uint32
	period  atomic.Int64 // nanoseconds between votes, and the shortest hold of a group's decision
	touches atomic.Int64 // how many touches a period make a channel vote for fewer cores
	epoch   atomic.Uint32
	next    int64 // when the period ends; sysmon's
	logNext int64 // when the next line of the log is due; sysmon's
	logFD   int32 // where the log goes, or -1

	// Since the start of the program, window by window.
	sumTouches, sumCross, sumContended atomic.Uint64
}

const (
	affPeriod  = 500 * 1000 * 1000 // ns, as in the paper
	affTouches = 800               // a period, as in the paper
	affLogStep = 20 * 1000 * 1000  // ns between lines of the log
)

// affinit reads the environment. The world has one M and no goroutine yet.
func affinit() {
	aff.period.Store(affPeriod)
	aff.touches.Store(affTouches)
	aff.logFD = -1
	policy := uint32(affDefault)
	if s := gogetenv("HARDTACK_AFFINITY"); s != "" {
		n := affPolicyOf(s)
		if n < 0 {
			affWarn("HARDTACK_AFFINITY", s, "want off, process, node or group")
			return
		}
		policy = uint32(n)
	}
	if s := gogetenv("HARDTACK_AFFINITY_PERIOD"); s != "" {
		ns := affDuration(s)
		if ns < 1000*1000 || ns > 3600*1000*1000*1000 {
			affWarn("HARDTACK_AFFINITY_PERIOD", s, "want 1ms to 3600s, as in 500ms")
			return
		}
		aff.period.Store(ns)
	}
	if s := gogetenv("HARDTACK_AFFINITY_TOUCHES"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			affWarn("HARDTACK_AFFINITY_TOUCHES", s, "want a positive number")
			return
		}
		aff.touches.Store(int64(n))
	}
	if s := gogetenv("HARDTACK_AFFINITY_LOG"); s != "" {
		if aff.logFD = affOpenLog(s); aff.logFD < 0 {
			affWarn("HARDTACK_AFFINITY_LOG", s, "cannot open it")
			return
		}
	}
	affSet(policy)
}

func affSet(policy uint32) {
	affBorn = 0
	if policy != affOff {
		affBorn = 255 * affOneLap
	}
	aff.policy.Store(policy)
	if policy != affGroups {
		affScatterAll()
	}
}

// affWarn is the one line that bad settings cost. The policy stays off.
func affWarn(name, value, why string) {
	if len(value) > 64 {
		value = value[:64]
	}
	print("hardtack: ", name, "=")
	for i := 0; i < len(value); i++ {
		if c := value[i]; c < ' ' || c > '~' {
			print("?")
		} else {
			print(value[i : i+1])
		}
	}
	print(": ", why, "; affinity is off\n")
}

func affPolicyOf(s string) int {
	for i, name := range affNames {
		if s == name {
			return i
		}
	}
	return -1
}

// affDuration is the nanoseconds of "500ms" or "2s", and -1 for anything else.
func affDuration(s string) int64 {
	unit := int64(0)
	switch n := len(s); {
	case n > 2 && s[n-2:] == "ms":
		s, unit = s[:n-2], 1000*1000
	case n > 1 && s[n-1] == 's':
		s, unit = s[:n-1], 1000*1000*1000
	default:
		return -1
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 1<<32 {
		return -1
	}
	return int64(n) * unit
}

// affSysmon runs on the monitor thread, without a P, every 20 µs to 10 ms.
func affSysmon(now int64) {
	policy := aff.policy.Load()
	if aff.next == 0 {
		aff.next = now + aff.period.Load()
	}
	if now >= aff.next {
		aff.next = now + aff.period.Load()
		aff.epoch.Add(1)
		yes, voters := affVote()
		affPinTick(policy, now, yes, voters)
		affExpire()
	}
	if aff.logFD >= 0 && now >= aff.logNext {
		aff.logNext = now + affLogStep
		affLogLine(now)
	}
}

// affEvent is a decision that was taken.
type affEvent struct {
	when  int64  // nanotime
	kind  uint32 // affEv…
	group uint32 // 0 for the process
	a, b  uint64 // probe: touches a second scattered and together; vote: yes and voters
}

const (
	affEvGroup   = 1 + iota // a group was formed and found better together
	affEvScatter            // a group was found better scattered
	affEvPin                // the vote passed
	affEvUnpin              // the vote failed
	affEvRefused            // the kernel refused the mask
)

var affEvents struct {
	n    atomic.Uint64
	ring [256]affEvent
}

func affRecord(kind, group uint32, a, b uint64) {
	n := affEvents.n.Add(1) - 1
	affEvents.ring[n%uint64(len(affEvents.ring))] = affEvent{nanotime(), kind, group, a, b}
}

// affChannel is what hardtack/affinity reads of one channel. It has the same
// fields there.
type affChannel struct {
	Addr, Site               uintptr
	Cap, Elem                uint64
	Touches, Cross, Contends uint64
	Group                    uint32 // 0 for none
	Together                 uint32 // 1 if the group is kept on one P now
}

// affHooks is how hardtack/affinity reaches the runtime: that package has a
// variable of this name and shape without a value, and the linker prefers the
// one that has a value. Without the overlay it stays nil. affinity_unsafe.go gives
// it its name.
var affHooks = struct {
	settings    func() (policy uint32, period, touches int64)
	setSettings func(policy uint32, period, touches int64)
	totals      func() (touches, cross, contended, decisions uint64)
	channels    func(buf []affChannel) int
	events      func(from uint64, buf []affEvent) (n int, next uint64)
	count       func(c *hchan) (touches, cross uint32, site uintptr)
	state       func() (pinned bool, groups uint32, yes, voters uint32)
}{
	settings: func() (uint32, int64, int64) {
		return aff.policy.Load(), aff.period.Load(), aff.touches.Load()
	},
	setSettings: func(policy uint32, period, touches int64) {
		aff.period.Store(period)
		aff.touches.Store(touches)
		affSet(policy)
	},
	totals: func() (uint64, uint64, uint64, uint64) {
		return aff.sumTouches.Load(), aff.sumCross.Load(), aff.sumContended.Load(), affEvents.n.Load()
	},
	channels: affChannels,
	events: func(from uint64, buf []affEvent) (int, uint64) {
		end := affEvents.n.Load()
		if end > from+uint64(len(affEvents.ring)) {
			from = end - uint64(len(affEvents.ring))
		}
		n := 0
		for ; n < len(buf) && from < end; n++ {
			buf[n] = affEvents.ring[from%uint64(len(affEvents.ring))]
			from++
		}
		return n, from
	},
	count: func(c *hchan) (uint32, uint32, uintptr) {
		lock(&c.lock)
		t, x := affCount(c)
		unlock(&c.lock)
		return uint32(t), uint32(x), affSite(c.site)
	},
	state: func() (bool, uint32, uint32, uint32) {
		return affPin.pinned.Load(), affTogether(), affPin.yes.Load(), affPin.voters.Load()
	},
}
