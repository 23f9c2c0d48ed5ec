package proc

import (
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/process/signals"
)

// Timers of setitimer.
const (
	ItimerReal = iota
	ItimerVirtual
	ItimerProf
	numItimers
)

var itimerSignals = [numItimers]linux.Signal{linux.SIGALRM, linux.SIGVTALRM, linux.SIGPROF}

// itimers are the timers of setitimer and the CPU-time limit; guarded by
// Process.mu. The real one counts on the monotonic clock, the others on the
// process's CPU time.
type itimers struct {
	t      [numItimers]itimer
	real   *time.Timer
	gen    uint64 // of the real timer: an old expiry is void
	held   bool   // the real timer waits for its last signal to be taken
	ticker *time.Timer
}

// itimer is one timer: when it expires next (0: not armed), and the period.
type itimer struct{ when, interval int64 }

// cpuTick is how often CPU-time timers are looked at while a process runs.
const cpuTick = 10 * time.Millisecond

func (p *Process) itimerClock(which int) int64 {
	switch which {
	case ItimerReal:
		return clocks.Monotonic()
	case ItimerVirtual:
		u, _ := p.cpuTimeLocked()
		return u
	}
	u, s := p.cpuTimeLocked()
	return u + s
}

// Itimer returns a timer's remaining time and period.
func (p *Process) Itimer(which int) (left, interval int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.itimerLocked(which)
}

func (p *Process) itimerLocked(which int) (left, interval int64) {
	t := &p.itimers.t[which]
	if t.when != 0 {
		left = max(t.when-p.itimerClock(which), 1000)
	}
	return left, t.interval
}

// SetItimer arms a timer (value 0 disarms) and returns what it was.
func (p *Process) SetItimer(which int, value, interval int64) (left, oldInterval int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left, oldInterval = p.itimerLocked(which)
	x := &p.itimers
	x.t[which] = itimer{interval: interval}
	if value != 0 {
		now := p.itimerClock(which)
		if x.t[which].when = now + value; x.t[which].when < now {
			x.t[which].when = 1<<63 - 1
		}
	}
	if which == ItimerReal {
		p.armReal(0)
	} else {
		p.armTimers()
	}
	return left, oldInterval
}

// armReal sets the real timer going, for a while at least; called with mu held.
func (p *Process) armReal(least time.Duration) {
	x := &p.itimers
	x.gen++
	x.held = false
	if x.real != nil {
		x.real.Stop()
		x.real = nil
	}
	when := x.t[ItimerReal].when
	if when == 0 || len(p.threads) == 0 {
		return
	}
	gen := x.gen
	x.real = time.AfterFunc(max(time.Duration(when-clocks.Monotonic()), least), func() { p.realExpired(gen) })
}

func (p *Process) realExpired(gen uint64) {
	p.mu.Lock()
	x := &p.itimers
	if x.gen != gen || len(p.threads) == 0 {
		p.mu.Unlock()
		return
	}
	t := &x.t[ItimerReal]
	t.next(clocks.Monotonic())
	var after notice
	info := kernelInfo(linux.SIGALRM)
	p.sendLocked(nil, &info, &after)
	if p.sig.pending.Set.Has(linux.SIGALRM) {
		x.held = true
	} else {
		p.armReal(signals.TimerDelay(p.sig.user))
	}
	p.mu.Unlock()
}

// alarmTaken is told that no SIGALRM is pending any more: the real timer goes on. A
// period of a microsecond would otherwise take the machine without the process ever
// running. Called with mu held.
func (p *Process) alarmTaken() {
	x := &p.itimers
	if !x.held {
		return
	}
	if t, now := &x.t[ItimerReal], clocks.Monotonic(); t.when <= now {
		t.next(now)
	}
	p.armReal(0)
}

// next moves an expired timer to its next time after now.
func (t *itimer) next(now int64) {
	if t.interval == 0 {
		t.when = 0
		return
	}
	t.when += (max(now-t.when, 0)/t.interval + 1) * t.interval
}

// needTicks reports whether CPU time must be watched; called with mu held.
func (p *Process) needTicks() bool {
	return p.itimers.t[ItimerVirtual].when != 0 || p.itimers.t[ItimerProf].when != 0 ||
		p.limits.get(linux.RLIMIT_CPU) != linux.RLIM_INFINITY
}

// armTimers starts the watch over CPU time, which tick ends; called with mu held. A thread
// that has the bit looks once in vain where there is nothing to watch any more: to take the bit
// from it would let it pass by a Hold.
func (p *Process) armTimers() {
	x := &p.itimers
	if !p.needTicks() {
		return
	}
	for _, t := range p.threads {
		t.User.Work.Or(workTimer)
	}
	if x.ticker == nil {
		x.ticker = time.AfterFunc(cpuTick, p.tick)
	}
}

// tick brings threads that run in user mode to look at the clock. It goes on
// while the process lives and something is to be watched.
func (p *Process) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.threads) == 0 || !p.needTicks() {
		p.itimers.ticker = nil
		return
	}
	for _, t := range p.threads {
		t.User.Work.Or(workTimer)
		if !t.Parked() {
			t.User.Kick()
		}
	}
	p.itimers.ticker.Reset(cpuTick)
}

// timerDue looks at the CPU-time timers and the limit; it reports that it sent
// a signal. The bit is set again by tick.
func (t *Thread) timerDue() bool {
	p := t.Proc
	t.User.Work.And(^workTimer)
	p.mu.Lock()
	defer p.mu.Unlock()
	sent := false
	var after notice // these signals neither stop nor continue
	send := func(sig linux.Signal) {
		info := kernelInfo(sig)
		p.sendLocked(nil, &info, &after)
		sent = true
	}
	user, system := p.cpuTimeLocked()
	for which, now := range [...]int64{ItimerVirtual: user, ItimerProf: user + system} {
		if x := &p.itimers.t[which]; which != ItimerReal && x.when != 0 && now >= x.when {
			x.next(now)
			send(itimerSignals[which])
		}
	}
	if sig := p.limits.cpuTime(uint64((user + system) / linux.NsecPerSec)); sig != 0 {
		send(sig)
	}
	return sent
}

// stop ends all timers; called with mu held.
func (x *itimers) stop() {
	x.gen++
	if x.real != nil {
		x.real.Stop()
		x.real = nil
	}
	x.t = [numItimers]itimer{}
}
