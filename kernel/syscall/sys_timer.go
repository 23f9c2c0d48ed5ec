package syscall

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/ktime"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fd/timerfd"
	"hardtack/kernel/process/posixtimer"
	"hardtack/kernel/process/proc"
)

var timerCalls = []Call{
	{linux.SYS_timerfd_create, "timerfd_create", sysTimerfdCreate, "works"},
	{linux.SYS_timerfd_settime, "timerfd_settime", sysTimerfdSettime, "works"},
	{linux.SYS_timerfd_gettime, "timerfd_gettime", sysTimerfdGettime, "works"},
	{linux.SYS_timer_create, "timer_create", sysTimerCreate, "works"},
	{linux.SYS_timer_settime, "timer_settime", sysTimerSettime, "works"},
	{linux.SYS_timer_gettime, "timer_gettime", sysTimerGettime, "works"},
	{linux.SYS_timer_getoverrun, "timer_getoverrun", sysTimerGetoverrun, "works"},
	{linux.SYS_timer_delete, "timer_delete", sysTimerDelete, "works"},
}

// readItimerspec copies a struct itimerspec in.
func readItimerspec(t *proc.Thread, addr uio.Addr) (s ktime.Setting, e linux.Errno) {
	b, e := readUser(t, addr, linux.SizeofItimerspec)
	if e != 0 {
		return s, e
	}
	word := func(i int) int64 { return int64(binary.LittleEndian.Uint64(b[8*i:])) }
	interval := linux.Timespec{Sec: word(0), Nsec: word(1)}
	value := linux.Timespec{Sec: word(2), Nsec: word(3)}
	if !interval.Valid() || !value.Valid() {
		return s, linux.EINVAL
	}
	return ktime.Setting{Value: value.Nano(), Interval: interval.Nano()}, 0
}

// writeItimerspec copies a struct itimerspec out, nowhere at address 0.
func writeItimerspec(t *proc.Thread, addr uio.Addr, s ktime.Setting) linux.Errno {
	if addr == 0 {
		return 0
	}
	i, v := linux.NsecToTimespec(s.Interval), linux.NsecToTimespec(s.Value)
	return writeWords(t, addr, i.Sec, i.Nsec, v.Sec, v.Nsec)
}

// mayUseAlarm reports whether the caller may set timers on a clock: the alarm clocks
// wake a machine that sleeps.
func mayUseAlarm(t *proc.Thread, clock int32) bool {
	return clock != linux.CLOCK_REALTIME_ALARM && clock != linux.CLOCK_BOOTTIME_ALARM || t.Cred().Has(creds.CapWakeAlarm)
}

// sysTimerfdCreate is timerfd_create(int clock, int flags).
func sysTimerfdCreate(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	flags := a.Uint(1)
	if flags&^(linux.TFD_CLOEXEC|linux.TFD_NONBLOCK) != 0 {
		return 0, linux.EINVAL
	}
	switch clock := a.Int(0); clock {
	case linux.CLOCK_REALTIME, linux.CLOCK_MONOTONIC, linux.CLOCK_BOOTTIME,
		linux.CLOCK_REALTIME_ALARM, linux.CLOCK_BOOTTIME_ALARM:
		if !mayUseAlarm(t, clock) {
			return 0, linux.EPERM
		}
		return addFile(t, timerfd.New(clock, flags), flags&linux.TFD_CLOEXEC != 0)
	}
	return 0, linux.EINVAL
}

// sysTimerfdSettime is timerfd_settime(int fd, int flags, struct itimerspec *new, *old).
func sysTimerfdSettime(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	s, e := readItimerspec(t, a.Addr(2))
	if e != 0 {
		return 0, e
	}
	flags := a.Uint(1)
	if flags&^(linux.TFD_TIMER_ABSTIME|linux.TFD_TIMER_CANCEL_ON_SET) != 0 {
		return 0, linux.EINVAL
	}
	f := t.FDs.Get(a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	x := timerfd.Of(f)
	if x == nil {
		return 0, linux.EINVAL
	}
	return 0, writeItimerspec(t, a.Addr(3), x.Set(s, flags))
}

// sysTimerfdGettime is timerfd_gettime(int fd, struct itimerspec *cur).
func sysTimerfdGettime(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f := t.FDs.Get(a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	x := timerfd.Of(f)
	if x == nil {
		return 0, linux.EINVAL
	}
	if a[1] == 0 {
		return 0, linux.EFAULT
	}
	return 0, writeItimerspec(t, a.Addr(1), x.Get())
}

// sysTimerCreate is timer_create(clockid_t clock, struct sigevent *ev, timer_t *id).
func sysTimerCreate(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	clock := ktime.Clock{ID: a.Int(0)}
	switch clock.ID {
	case linux.CLOCK_MONOTONIC_RAW, linux.CLOCK_REALTIME_COARSE, linux.CLOCK_MONOTONIC_COARSE:
		return 0, linux.EOPNOTSUPP
	}
	if fileClock(clock.ID) {
		return 0, linux.EOPNOTSUPP
	}
	if !mayUseAlarm(t, clock.ID) {
		return 0, linux.EPERM
	}
	if _, wall := ktime.Wall(clock.ID); !wall {
		var e linux.Errno
		if clock.Now, e = cpuClock(t, clock.ID); e != 0 {
			return 0, e
		}
	}
	n := posixtimer.Notify{How: linux.SIGEV_SIGNAL, Signal: linux.SIGALRM, ValueIsID: true}
	if a[1] != 0 {
		b, e := readUser(t, a.Addr(1), linux.SizeofSigevent)
		if e != 0 {
			return 0, e
		}
		n = posixtimer.Notify{
			Value:  binary.LittleEndian.Uint64(b),
			Signal: linux.Signal(binary.LittleEndian.Uint32(b[8:])),
			How:    int32(binary.LittleEndian.Uint32(b[12:])),
		}
		switch n.How {
		case linux.SIGEV_NONE:
		case linux.SIGEV_THREAD_ID:
			n.Thread = proc.ByTID(int32(binary.LittleEndian.Uint32(b[16:])))
			if n.Thread == nil || n.Thread.Proc != t.Proc || !n.Signal.Valid() {
				return 0, linux.EINVAL
			}
		case linux.SIGEV_SIGNAL, linux.SIGEV_THREAD: // the C library makes the thread
			if !n.Signal.Valid() {
				return 0, linux.EINVAL
			}
		default:
			return 0, linux.EINVAL
		}
	}
	id, e := posixtimer.Create(t.Proc, clock, n)
	if e != 0 {
		return 0, e
	}
	b := t.Scratch[:4]
	binary.LittleEndian.PutUint32(b, uint32(id))
	if _, e := t.Mem.CopyOut(a.Addr(2), b); e != 0 {
		posixtimer.Delete(t.Proc, id)
		return 0, e
	}
	return 0, 0
}

// sysTimerSettime is timer_settime(timer_t id, int flags, struct itimerspec *new, *old).
func sysTimerSettime(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a[2] == 0 {
		return 0, linux.EINVAL
	}
	s, e := readItimerspec(t, a.Addr(2))
	if e != 0 {
		return 0, e
	}
	x := posixtimer.Find(t.Proc, a.Int(0))
	if x == nil {
		return 0, linux.EINVAL
	}
	old := x.Set(s, a[1]&linux.TIMER_ABSTIME != 0)
	return 0, writeItimerspec(t, a.Addr(3), old)
}

// sysTimerGettime is timer_gettime(timer_t id, struct itimerspec *cur).
func sysTimerGettime(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	x := posixtimer.Find(t.Proc, a.Int(0))
	if x == nil {
		return 0, linux.EINVAL
	}
	if a[1] == 0 {
		return 0, linux.EFAULT
	}
	return 0, writeItimerspec(t, a.Addr(1), x.Get())
}

// sysTimerGetoverrun is timer_getoverrun(timer_t id).
func sysTimerGetoverrun(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	x := posixtimer.Find(t.Proc, a.Int(0))
	if x == nil {
		return 0, linux.EINVAL
	}
	return uint64(x.Overrun()), 0
}

// sysTimerDelete is timer_delete(timer_t id).
func sysTimerDelete(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if !posixtimer.Delete(t.Proc, a.Int(0)) {
		return 0, linux.EINVAL
	}
	return 0, 0
}
