package proc

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/checks"
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
const SampleEvery = checks.SampleEvery

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

// cpuClock counts a thread's time on a CPU; guarded by Process.mu. What counts turns and
// samples is written by the thread alone, and read by others for an estimate.
type cpuClock struct {
	startTicks  int64       // when its goroutine took the thread up; 0: not yet
	clock       *wait.Clock // of the goroutine that the thread is on; its own goroutine reads it without the lock
	clockBase   int64       // what clock told when it was taken
	disk        wait.Disk   // moved before the clock was taken
	diskBase    wait.Disk   // what clock told of disks then
	away        int64       // ticks not on a CPU before
	stops       uint64      // how often the thread gave up the CPU, less clock's
	told        clockTimes  // what was last told of the thread
	turns       int64       // ticks spent waiting for a turn, or for a goroutine
	launched    int64       // when it was given to a goroutine
	queue       [2]int64    // for how many nanoseconds it ran and waited, as was last told
	preempted   uint64      // how often others had their turn first
	kernelTicks int64       // estimate of the ticks spent in system calls
	kernelBytes uint64      // estimate of the heap that system calls allocated
}

// Sampled adds a measured call, which stands for SampleEvery of them.
func (c *cpuClock) Sampled(d int64) { c.kernelTicks += d * SampleEvery }

// SampledBytes adds what a measured call allocated on the kernel's heap.
func (c *cpuClock) SampledBytes(n uint64) { c.kernelBytes += n * SampleEvery }

// Allocated estimates what the thread's system calls have allocated on the kernel's
// heap, in bytes; 0 where checks.CountsAllocated is false.
func (c *cpuClock) Allocated() uint64 { return c.kernelBytes }

// Off returns for how many ticks the thread has not been on a CPU, counted from any
// moment; it is for the thread itself.
func (c *cpuClock) Off() int64 { return c.clock.Mine() }

// waitedForGoroutine is called when a goroutine takes the thread up.
func (c *cpuClock) waitedForGoroutine() { c.turns += ticks() - c.launched }

// waitTurn counts a turn of others that began when Off was before.
func (c *cpuClock) waitTurn(before int64) { c.turns += c.clock.Mine() - before }

// begin starts the clock of a new thread on its first goroutine, which calls it.
func (c *cpuClock) begin(w *wait.Clock) {
	c.clock, c.clockBase, c.stops = w, w.Mine(), -w.Stops()
	c.diskBase = w.Disk()
	c.startTicks = ticks()
}

// take begins the thread's time on a goroutine, which calls it. A thread that waited
// inside the nucleus may be on this one before its last one has noticed. Called with
// Process.mu held, as the following.
func (c *cpuClock) take(w *wait.Clock) {
	now := ticks()
	c.away += c.clock.Off(now) - c.clockBase
	c.stops += c.clock.Stops() - w.Stops()
	c.disk = c.clock.Since(c.diskBase, c.disk)
	c.clock, c.clockBase, c.diskBase = w, w.Off(now), w.Disk()
}

// leave ends it.
func (c *cpuClock) leave(w *wait.Clock) {
	if c.clock == w {
		c.away += w.Mine() - c.clockBase
		c.stops += w.Stops()
		c.disk = w.Since(c.diskBase, c.disk)
		c.clock, c.clockBase, c.diskBase = wait.Still, wait.Still.Mine(), wait.Still.Disk()
	}
}

// ran returns for how many ticks the thread has run until now, if it waited for so many
// beside what its goroutine's clock counts.
func (c *cpuClock) ran(now, waited int64) int64 {
	off := c.clock.Off(now) - c.clockBase + waited
	return max(now-c.startTicks-c.away-off, 0)
}

// split divides the ticks that a thread ran into user and system time, in nanoseconds;
// demand is both and for how long it waited for its turn.
func (c *cpuClock) split(total, waited int64) (user, system, demand int64) {
	if total == 0 {
		return 0, 0, 0
	}
	sys, scale := min(c.kernelTicks, total), nsecPerTick()
	return int64(float64(total-sys) * scale), int64(float64(sys) * scale), int64(float64(total+waited) * scale)
}

// switches returns how often the thread gave up the CPU because it had to wait, and how
// often because others had their turn.
func (c *cpuClock) switches() (voluntary, preempted int64) {
	if c.startTicks == 0 {
		return 0, 0
	}
	preempted = int64(c.preempted)
	return max(int64(c.stops+c.clock.Stops())-preempted, 0), preempted
}

// times measures the thread's times; called with Proc.mu held.
func (t *Thread) times() (user, system, demand int64) {
	if t.startTicks == 0 || t.State() >= StateZombie {
		return 0, 0, 0
	}
	now := ticks()
	waited, _ := t.waitedInside(now)
	return t.split(t.ran(now, waited+t.Idle(now)), t.turns+t.Delayed())
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

// CPUTime returns the user and system time of a process in nanoseconds.
func (g *threadGroup) CPUTime() (user, system int64) {
	if g.Zombie() {
		return g.told.user, g.told.system // since finish
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cpuTimeLocked()
}

func (g *threadGroup) cpuTimeLocked() (user, system int64) {
	user, system = g.deadTime.user, g.deadTime.system
	for _, t := range g.threads {
		u, s, _ := t.times()
		user += u
		system += s
	}
	g.told.advance(user, system)
	return g.told.user, g.told.system
}

// Switches returns how often the thread gave up the CPU because it had to wait, and
// how often because others had their turn.
func (t *Thread) Switches() (voluntary, preempted int64) {
	t.Proc.mu.Lock()
	defer t.Proc.mu.Unlock()
	return t.switches()
}

// Switches is that of all its threads.
func (g *threadGroup) Switches() (voluntary, preempted int64) {
	if g.Zombie() {
		return g.deadSwitches[0], g.deadSwitches[1]
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	voluntary, preempted = g.deadSwitches[0], g.deadSwitches[1]
	for _, t := range g.threads {
		v, n := t.switches()
		voluntary += v
		preempted += n
	}
	return voluntary, preempted
}

// noteSwitches counts those of a thread that ends; called with mu held.
func (g *threadGroup) noteSwitches(t *Thread) {
	v, n := t.switches()
	g.deadSwitches[0] += v
	g.deadSwitches[1] += n
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

// Queue returns for how many nanoseconds the thread ran, and waited for its turn, and how
// often it had one.
func (t *Thread) Queue() (ran, waited, turns int64) {
	t.Proc.mu.Lock()
	defer t.Proc.mu.Unlock()
	v, n := t.switches()
	turns = v + n
	if t.startTicks != 0 && t.clock.Runs() {
		turns++ // the one that goes on
	}
	t.noteQueue(t.times())
	return t.queue[0], t.queue[1], turns
}

// noteQueue keeps what Queue tells; called with Proc.mu held. Of a thread that has ended
// the times are 0.
func (t *Thread) noteQueue(user, system, demand int64) {
	t.queue[0] = max(t.queue[0], user+system)
	t.queue[1] = max(t.queue[1], demand-user-system)
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
func (k *kinship) ChildrenTime() (user, system int64) {
	return k.childTime.user, k.childTime.system
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

func (g *threadGroup) faults() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.deadFaults
	for _, t := range g.threads {
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
