package proc

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/wait"
)

// A thread's CPU time is the time since it began, less what its goroutine did not
// run: blocked, by whatever it was, or waiting for its turn. The Go scheduler keeps
// that clock (wait.Clock), which the thread takes when a goroutine takes it up and
// leaves when that becomes another's. What a thread waits inside the nucleus, the
// nucleus counts. How much of the time was spent in the kernel is measured at every
// sampleEvery-th system call only: reading the time at each would cost more than the
// call.

// SampleEvery is how many calls pass between two that are measured.
const SampleEvery = 16

// clockTimes are user and system time in nanoseconds, kept under Process.mu or
// treeMu as their owner says.
type clockTimes struct{ user, system int64 }

func (c *clockTimes) add(user, system int64) {
	c.user += user
	c.system += system
}

// tickOrigin and nanoOrigin let ticks be converted: both clocks since boot.
var tickOrigin, nanoOrigin = ticks(), clocks.Monotonic()

// TicksToNsec converts a difference of ticks to nanoseconds.
func TicksToNsec(d int64) int64 {
	if d <= 0 {
		return 0
	}
	return int64(float64(d) * nsecPerTick())
}

func nsecPerTick() float64 {
	t, n := ticks()-tickOrigin, clocks.Monotonic()-nanoOrigin
	if t <= 0 || n <= 0 {
		return 0
	}
	return float64(n) / float64(t)
}

// Ticks reads the time-stamp counter.
func Ticks() int64 { return ticks() }

// Sampled adds a measured call, which stands for SampleEvery of them.
func (t *Thread) Sampled(d int64) { t.kernelTicks += d * SampleEvery }

// SampledBytes adds what a measured call allocated on the kernel's heap.
func (t *Thread) SampledBytes(n uint64) { t.kernelBytes += n * SampleEvery }

// Allocated estimates what the thread's system calls have allocated on the kernel's
// heap, in bytes; 0 where checks.CountsAllocated is false.
func (t *Thread) Allocated() uint64 { return t.kernelBytes }

// takeClock begins the thread's time on a goroutine, which calls it. A thread that
// waited inside the nucleus may be on this one before its last one has noticed.
func (t *Thread) takeClock(c *wait.Clock) {
	p := t.Proc
	p.mu.Lock()
	now := ticks()
	t.away += t.clock.Off(now) - t.clockBase
	t.stops += t.clock.Stops() - c.Stops()
	t.disk = t.clock.Since(t.diskBase, t.disk)
	t.clock, t.clockBase, t.diskBase = c, c.Off(now), c.Disk()
	p.mu.Unlock()
}

// leaveClock ends it.
func (t *Thread) leaveClock(c *wait.Clock) {
	p := t.Proc
	p.mu.Lock()
	if t.clock == c {
		t.away += c.Mine() - t.clockBase
		t.stops += c.Stops()
		t.disk = c.Since(t.diskBase, t.disk)
		t.clock, t.clockBase, t.diskBase = wait.Still, wait.Still.Mine(), wait.Still.Disk()
	}
	p.mu.Unlock()
}

// Off returns for how many ticks the thread has not been on a CPU, counted from any
// moment; it is for the thread itself.
func (t *Thread) Off() int64 { return t.clock.Mine() }

// ran returns for how many ticks the thread has run; called with Proc.mu held.
func (t *Thread) ran() int64 {
	if t.startTicks == 0 || t.State() >= StateZombie {
		return 0
	}
	now := ticks()
	waited, _ := t.waitedInside(now)
	off := t.clock.Off(now) - t.clockBase + t.Idle(now)
	return max(now-t.startTicks-t.away-off-waited, 0)
}

// demand returns for how many nanoseconds the thread ran or waited for its turn.
func (t *Thread) demand() int64 {
	t.Proc.mu.Lock()
	defer t.Proc.mu.Unlock()
	_, _, d := t.times()
	return d
}

// CPUTime returns the user and system time of a thread in nanoseconds.
func (t *Thread) CPUTime() (user, system int64) {
	t.Proc.mu.Lock()
	defer t.Proc.mu.Unlock()
	user, system, _ = t.times()
	t.told.advance(user, system)
	return t.told.user, t.told.system
}

// times measures the thread's times; called with Proc.mu held.
func (t *Thread) times() (user, system, demand int64) {
	total := t.ran()
	if total == 0 {
		return 0, 0, 0
	}
	sys, scale := min(t.kernelTicks, total), nsecPerTick()
	return int64(float64(total-sys) * scale), int64(float64(sys) * scale), int64(float64(total+t.turns) * scale)
}

// CPUTime returns the user and system time of a process in nanoseconds.
func (p *Process) CPUTime() (user, system int64) {
	if p.Zombie() {
		return p.told.user, p.told.system // since finish
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cpuTimeLocked()
}

func (p *Process) cpuTimeLocked() (user, system int64) {
	user, system = p.deadTime.user, p.deadTime.system
	for _, t := range p.threads {
		u, s, _ := t.times()
		user += u
		system += s
	}
	p.told.advance(user, system)
	return p.told.user, p.told.system
}

// Switches returns how often the thread gave up the CPU because it had to wait, and
// how often because others had their turn.
func (t *Thread) Switches() (voluntary, preempted int64) {
	t.Proc.mu.Lock()
	defer t.Proc.mu.Unlock()
	return t.switches()
}

// switches is Switches with Proc.mu held.
func (t *Thread) switches() (voluntary, preempted int64) {
	if t.startTicks == 0 {
		return 0, 0
	}
	preempted = int64(t.preempted)
	return max(int64(t.stops+t.clock.Stops())-preempted, 0), preempted
}

// Switches is that of all its threads.
func (p *Process) Switches() (voluntary, preempted int64) {
	if p.Zombie() {
		return p.deadSwitches[0], p.deadSwitches[1]
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	voluntary, preempted = p.deadSwitches[0], p.deadSwitches[1]
	for _, t := range p.threads {
		v, n := t.switches()
		voluntary += v
		preempted += n
	}
	return voluntary, preempted
}

// noteSwitches counts those of a thread that ends; called with mu held.
func (p *Process) noteSwitches(t *Thread) {
	v, n := t.switches()
	p.deadSwitches[0] += v
	p.deadSwitches[1] += n
	ended.switches.Add(v + n)
}

// TotalSwitches returns the switches of all threads since boot.
func TotalSwitches() int64 {
	n := ended.switches.Load()
	eachThread(func(t *Thread) {
		v, k := t.Switches()
		n += v + k
	})
	return n
}

// Queue returns for how many nanoseconds the thread ran, and waited for its turn.
func (t *Thread) Queue() (ran, waited int64) {
	t.Proc.mu.Lock()
	defer t.Proc.mu.Unlock()
	user, system, demand := t.times()
	return user + system, demand - user - system
}

// advance moves both times on to a new measure. The sum is exact, the share of the
// system is an estimate that may get smaller; neither time goes back.
func (c *clockTimes) advance(user, system int64) {
	total := user + system
	if total <= c.user+c.system {
		return
	}
	system = max(system, c.system)
	user = max(total-system, c.user)
	c.user, c.system = user, total-user
}

// ChildrenTime returns the time of the children waited for.
func (p *Process) ChildrenTime() (user, system int64) {
	return p.childTime.user, p.childTime.system
}

// usageOf fills in a struct rusage.
func usageOf(r *linux.Rusage, user, system int64, faults, maxRSS int64) {
	r.Utime, r.Stime = linux.NsecToTimeval(user), linux.NsecToTimeval(system)
	r.Minflt, r.Maxrss = faults, maxRSS
}

// fillUsage is the usage of a process, with that of the children it waited for.
func (p *Process) fillUsage(r *linux.Rusage, children bool) {
	u, s := p.CPUTime()
	f, rss := p.faults(), p.peakRSS()
	if children {
		cu, cs := p.ChildrenTime()
		u, s, f = u+cu, s+cs, f+p.childFaults.Load()
		rss = max(rss, p.childMaxRSS.Load())
	}
	usageOf(r, u, s, f, rss)
	r.Nvcsw, r.Nivcsw = p.Switches()
	if children {
		r.Nvcsw += p.childSwitches[0]
		r.Nivcsw += p.childSwitches[1]
	}
}

// Usage is getrusage(who).
func (t *Thread) Usage(who int32) (r linux.Rusage, e linux.Errno) {
	p := t.Proc
	switch who {
	case linux.RUSAGE_SELF:
		p.fillUsage(&r, false)
	case linux.RUSAGE_CHILDREN:
		treeMu.Lock()
		u, s := p.ChildrenTime()
		r.Nvcsw, r.Nivcsw = p.childSwitches[0], p.childSwitches[1]
		treeMu.Unlock()
		usageOf(&r, u, s, p.childFaults.Load(), p.childMaxRSS.Load())
	case linux.RUSAGE_THREAD:
		u, s := t.CPUTime()
		usageOf(&r, u, s, t.Faults, p.peakRSS())
		r.Nvcsw, r.Nivcsw = t.Switches()
	default:
		return r, linux.EINVAL
	}
	return r, 0
}

func (p *Process) faults() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.deadFaults
	for _, t := range p.threads {
		n += t.Faults
	}
	return n
}

// Faults returns how many page faults the process had, and its children.
func (p *Process) FaultCounts() (own, children int64) {
	return p.faults(), p.childFaults.Load()
}

// TotalFaults returns the page faults of all threads since boot.
func TotalFaults() int64 {
	n := ended.faults.Load()
	eachThread(func(t *Thread) { n += t.Faults })
	return n
}

// State returns what /proc shows of the thread.
func (t *Thread) State() State {
	s := State(t.state.Load())
	if s == StateRunning {
		if _, waits := t.waitedInside(0); waits || t.Parked() {
			return StateSleeping
		}
	}
	return s
}

// StartTime returns when the thread began, monotonic nanoseconds.
func (t *Thread) StartTime() int64 { return t.startTime }

// StartTime returns when the process began, monotonic nanoseconds.
func (p *Process) StartTime() int64 { return p.startTime }
