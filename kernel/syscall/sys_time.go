package syscall

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/ktime"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/process/proc"
)

var timeCalls = []Call{
	{linux.SYS_clock_gettime, "clock_gettime", sysClockGettime, "works except dynamic (file) clocks; coarse clocks have the resolution of the others"},
	{linux.SYS_clock_getres, "clock_getres", sysClockGetres, "works"},
	{linux.SYS_clock_settime, "clock_settime", sysClockSettime, "works"},
	{linux.SYS_clock_nanosleep, "clock_nanosleep", sysClockNanosleep, "works"},
	{linux.SYS_nanosleep, "nanosleep", sysNanosleep, "works"},
	{linux.SYS_gettimeofday, "gettimeofday", sysGettimeofday, "works; the time zone is always UTC"},
	{linux.SYS_settimeofday, "settimeofday", sysSettimeofday, "works except the time zone, which is ignored"},
	{linux.SYS_time, "time", sysTime, "works"},
	{linux.SYS_adjtimex, "adjtimex", sysAdjtimex, "works; CLOCK_MONOTONIC keeps its speed"},
	{linux.SYS_clock_adjtime, "clock_adjtime", sysClockAdjtime, "as adjtimex, for CLOCK_REALTIME"},
}

// A negative clock is a process's or thread's number, inverted, and these bits.
const (
	clockPerThread = 4
	clockKind      = 3 // mask of the kinds:
	clockVirtual   = 1 // user time
	clockSched     = 2 // what clock_getcpuclockid makes
	clockFile      = 3 // without clockPerThread: a file's clock
)

// fileClock reports a clock made of a file descriptor; there is no such file.
func fileClock(clock int32) bool { return clock < 0 && clock&7 == clockFile }

// cpuClock returns how to read a CPU-time clock: one of the caller's, or one
// that clock_getcpuclockid made of a process's or thread's number. EINVAL for
// what is none.
func cpuClock(t *proc.Thread, clock int32) (func() int64, linux.Errno) {
	sum := func(user, system int64) int64 { return user + system }
	p, th, kind := t.Proc, t, int32(0)
	switch {
	case clock == linux.CLOCK_PROCESS_CPUTIME_ID:
		th = nil
	case clock == linux.CLOCK_THREAD_CPUTIME_ID:
	case clock < 0:
		id := ^(clock >> 3)
		if kind = clock & clockKind; kind == clockFile {
			return nil, linux.EINVAL
		}
		if clock&clockPerThread != 0 {
			if id != 0 {
				th = proc.ByTID(id)
			}
			if th == nil || th.Proc != t.Proc {
				return nil, linux.EINVAL
			}
		} else {
			th = nil
			if id != 0 {
				p = proc.Lookup(id)
			}
			if p == nil {
				return nil, linux.EINVAL
			}
		}
	default:
		return nil, linux.EINVAL
	}
	if kind == clockVirtual {
		sum = func(user, _ int64) int64 { return user }
	}
	if th != nil {
		return func() int64 { return sum(th.CPUTime()) }, 0
	}
	return func() int64 { return sum(p.CPUTime()) }, 0
}

// readClock returns the time of any clock.
func readClock(t *proc.Thread, clock int32) (int64, linux.Errno) {
	if ns, ok := ktime.Wall(clock); ok {
		return ns, 0
	}
	now, e := cpuClock(t, clock)
	if e != 0 {
		return 0, e
	}
	return now(), 0
}

// sysClockGettime is clock_gettime(clockid_t clock, struct timespec *ts).
func sysClockGettime(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	ns, e := readClock(t, a.Int(0))
	if e != 0 {
		return 0, e
	}
	return 0, writeTimespec(t, a.Addr(1), linux.NsecToTimespec(ns))
}

// sysClockGetres is clock_getres(clockid_t clock, struct timespec *res).
func sysClockGetres(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if _, e := readClock(t, a.Int(0)); e != 0 {
		return 0, e
	}
	if a[1] == 0 {
		return 0, 0
	}
	return 0, writeTimespec(t, a.Addr(1), linux.Timespec{Nsec: resolution(a.Int(0))})
}

// tickLength is the resolution that Debian's kernel names for clocks that run by ticks.
const tickLength = 4_000_000

// resolution is what clock_getres answers: a tick for the coarse clocks and for those
// that count user time, though they run as finely as the others.
func resolution(clock int32) int64 {
	switch {
	case clock == linux.CLOCK_REALTIME_COARSE, clock == linux.CLOCK_MONOTONIC_COARSE,
		clock < 0 && clock&clockKind < clockSched:
		return tickLength
	}
	return 1
}

// setRealtime is the common part of clock_settime and settimeofday.
func setRealtime(t *proc.Thread, ts linux.Timespec) linux.Errno {
	if !ts.Valid() || ts.Sec > ktime.MaxRealtime {
		return linux.EINVAL
	}
	if !t.Cred().Has(creds.CapSysTime) {
		return linux.EPERM
	}
	if ts.Nano() < clocks.Monotonic() {
		return linux.EINVAL
	}
	ktime.SetRealtime(ts.Nano())
	return 0
}

// sysClockSettime is clock_settime(clockid_t clock, const struct timespec *ts).
func sysClockSettime(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	clock := a.Int(0)
	if clock > linux.CLOCK_REALTIME {
		return 0, linux.EINVAL
	}
	ts, e := readTimespec(t, a.Addr(1))
	if e != 0 {
		return 0, e
	}
	if clock < 0 {
		if _, e := cpuClock(t, clock); e != 0 {
			return 0, e
		}
		return 0, linux.EPERM
	}
	return 0, setRealtime(t, ts)
}

// sysGettimeofday is gettimeofday(struct timeval *tv, struct timezone *tz).
func sysGettimeofday(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a[0] != 0 {
		tv := linux.NsecToTimeval(clocks.Realtime())
		if e := writeWords(t, a.Addr(0), tv.Sec, tv.Usec); e != 0 {
			return 0, e
		}
	}
	if a[1] != 0 {
		return 0, writeWords(t, a.Addr(1), 0)
	}
	return 0, 0
}

// sysSettimeofday is settimeofday(const struct timeval *tv, const struct timezone *tz).
func sysSettimeofday(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a[0] != 0 {
		tv, e := readTimespec(t, a.Addr(0)) // of the same shape
		if e != 0 {
			return 0, e
		}
		if tv.Nsec < 0 || tv.Nsec > 1e6 || tv.Sec < 0 {
			return 0, linux.EINVAL
		}
		if e := checkZone(t, a.Addr(1)); e != 0 {
			return 0, e
		}
		return 0, setRealtime(t, linux.Timespec{Sec: tv.Sec + tv.Nsec/1e6, Nsec: tv.Nsec % 1e6 * 1000})
	}
	return 0, checkZone(t, a.Addr(1))
}

// checkZone reads a struct timezone, which is not kept.
func checkZone(t *proc.Thread, addr uio.Addr) linux.Errno {
	west := int32(0)
	if addr != 0 {
		b, e := readUser(t, addr, 8)
		if e != 0 {
			return e
		}
		west = int32(binary.LittleEndian.Uint32(b))
	}
	switch {
	case !t.Cred().Has(creds.CapSysTime):
		return linux.EPERM
	case west < -15*60 || west > 15*60:
		return linux.EINVAL
	}
	return 0
}

// sysTime is time(time_t *t).
func sysTime(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	sec := clocks.Realtime() / linux.NsecPerSec
	if a[0] != 0 {
		if e := writeWords(t, a.Addr(0), sec); e != 0 {
			return 0, e
		}
	}
	return uint64(sec), 0
}

// sysAdjtimex is adjtimex(struct timex *buf).
func sysAdjtimex(t *proc.Thread, a *Args) (uint64, linux.Errno) { return adjtime(t, a.Addr(0)) }

// sysClockAdjtime is clock_adjtime(clockid_t clock, struct timex *buf).
func sysClockAdjtime(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	clock := a.Int(0)
	if clock == linux.CLOCK_REALTIME {
		return adjtime(t, a.Addr(1))
	}
	if _, e := readUser(t, a.Addr(1), linux.SizeofTimex); e != 0 {
		return 0, e
	}
	if clock < 0 && !fileClock(clock) {
		return 0, linux.EOPNOTSUPP
	}
	if _, e := readClock(t, clock); e != 0 {
		return 0, e
	}
	return 0, linux.EOPNOTSUPP
}

// adjtime changes the discipline of CLOCK_REALTIME and tells its state.
func adjtime(t *proc.Thread, addr uio.Addr) (uint64, linux.Errno) {
	b, e := readUser(t, addr, linux.SizeofTimex)
	if e != 0 {
		return 0, e
	}
	le := binary.LittleEndian
	get := func(off int) int64 { return int64(le.Uint64(b[off:])) }
	x := ktime.Timex{
		Modes: le.Uint32(b), Offset: get(8), Freq: get(16), MaxError: get(24), EstError: get(32), Status: int32(le.Uint32(b[40:])),
		Constant: get(48), Sec: get(72), Usec: get(80), Tick: get(88),
	}
	state, e := ktime.Adjust(&x, t.Cred().Has(creds.CapSysTime))
	if e != 0 {
		return 0, e
	}
	for i, v := range []int64{x.Offset, x.Freq, x.MaxError, x.EstError} {
		le.PutUint64(b[8+8*i:], uint64(v))
	}
	le.PutUint32(b[40:], uint32(x.Status))
	for i, v := range []int64{x.Constant, x.Precision, x.Tolerance, x.Sec, x.Usec, x.Tick, 0, 0} {
		le.PutUint64(b[48+8*i:], uint64(v))
	}
	le.PutUint32(b[112:], 0)
	clear(b[120:160])
	le.PutUint32(b[160:], uint32(x.TAI))
	if _, e := t.Mem.CopyOut(addr, b); e != 0 {
		return 0, e
	}
	return uint64(state), 0
}

// sysNanosleep is nanosleep(const struct timespec *req, struct timespec *rem).
func sysNanosleep(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	ts, e := readTimespec(t, a.Addr(0))
	if e != 0 {
		return 0, e
	}
	if !ts.Valid() {
		return 0, linux.EINVAL
	}
	return sleepUntil(t, addTime(clocks.Monotonic(), ts.Nano()), a.Addr(1))
}

// addTime adds without passing the end of time.
func addTime(now, ns int64) int64 {
	if s := now + ns; s >= 0 {
		return s
	}
	return 1<<63 - 1
}

// sleepUntil is a relative sleep, as a monotonic time; when a signal ends it,
// the time left goes to rem and the call can go on.
func sleepUntil(t *proc.Thread, when int64, rem uio.Addr) (uint64, linux.Errno) {
	if ktime.Sleep(&t.Ctx, linux.CLOCK_MONOTONIC, when) == wait.TimedOut {
		return 0, 0
	}
	return 0, sleepInterrupted(t, when-clocks.Monotonic(), rem, func(t *proc.Thread) (uint64, linux.Errno) {
		return sleepUntil(t, when, rem)
	})
}

// sleepInterrupted ends a relative sleep that a signal cut short.
func sleepInterrupted(t *proc.Thread, left int64, rem uio.Addr, again func(*proc.Thread) (uint64, linux.Errno)) linux.Errno {
	if left <= 0 {
		return 0
	}
	if rem != 0 {
		if e := writeTimespec(t, rem, linux.NsecToTimespec(left)); e != 0 {
			return e
		}
	}
	return t.SetRestart(again)
}

// sysClockNanosleep is clock_nanosleep(clock, int flags, struct timespec *req, *rem).
func sysClockNanosleep(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	clock := a.Int(0)
	switch clock {
	case linux.CLOCK_MONOTONIC_RAW, linux.CLOCK_REALTIME_COARSE, linux.CLOCK_MONOTONIC_COARSE:
		return 0, linux.EOPNOTSUPP
	case linux.CLOCK_THREAD_CPUTIME_ID:
		return 0, linux.EOPNOTSUPP
	}
	if fileClock(clock) {
		return 0, linux.EOPNOTSUPP
	}
	if clock >= 0 {
		if _, e := readClock(t, clock); e != 0 {
			return 0, e
		}
	}
	ts, e := readTimespec(t, a.Addr(2))
	if e != 0 {
		return 0, e
	}
	if !ts.Valid() {
		return 0, linux.EINVAL
	}
	if self := ^(clock >> 3); clock < 0 && clock&clockPerThread != 0 && (self == 0 || self == t.TID) {
		return 0, linux.EINVAL // it does not run while it waits
	}
	absolute := a[1]&linux.TIMER_ABSTIME != 0
	if _, wall := ktime.Wall(clock); !wall {
		return sleepCPU(t, clock, ts.Nano(), absolute, a.Addr(3))
	}
	if !absolute {
		return sleepUntil(t, addTime(clocks.Monotonic(), ts.Nano()), a.Addr(3))
	}
	if ktime.Sleep(&t.Ctx, clock, ts.Nano()) != wait.TimedOut {
		return 0, linux.ERESTARTNOHAND
	}
	return 0, 0
}

// sleepCPU sleeps until a CPU-time clock shows a time.
func sleepCPU(t *proc.Thread, clock int32, ns int64, absolute bool, rem uio.Addr) (uint64, linux.Errno) {
	now, e := cpuClock(t, clock)
	if e != 0 {
		return 0, e
	}
	when := ns
	if !absolute {
		when = addTime(now(), ns)
	}
	var expired wait.Queue
	var timer ktime.Timer
	timer.Init(ktime.Clock{Now: now, ID: clock}, func() { expired.Notify(wait.In) }, nil)
	expired.Add(&t.Entry, &t.Sleeper, wait.In)
	defer expired.Remove(&t.Entry)
	timer.Set(ktime.Setting{Value: max(when, 1)}, true)
	defer timer.Stop()
	for {
		t.Arm()
		if timer.Expired() > 0 {
			return 0, 0
		}
		if t.Sleep(wait.NoDeadline) != wait.Interrupted {
			continue
		}
		if absolute {
			return 0, linux.ERESTARTNOHAND
		}
		return 0, sleepInterrupted(t, when-now(), rem, func(t *proc.Thread) (uint64, linux.Errno) {
			return sleepCPU(t, clock, when, true, 0)
		})
	}
}
