package linux

// Clocks (include/uapi/linux/time.h).
const (
	CLOCK_REALTIME           = 0
	CLOCK_MONOTONIC          = 1
	CLOCK_PROCESS_CPUTIME_ID = 2
	CLOCK_THREAD_CPUTIME_ID  = 3
	CLOCK_MONOTONIC_RAW      = 4
	CLOCK_REALTIME_COARSE    = 5
	CLOCK_MONOTONIC_COARSE   = 6
	CLOCK_BOOTTIME           = 7
	CLOCK_REALTIME_ALARM     = 8
	CLOCK_BOOTTIME_ALARM     = 9
	CLOCK_TAI                = 11
)

// TIMER_ABSTIME marks an absolute time in clock_nanosleep and timer_settime.
const TIMER_ABSTIME = 1

// Flags of timerfd_create and timerfd_settime (include/linux/timerfd.h).
const (
	TFD_CLOEXEC             = O_CLOEXEC
	TFD_NONBLOCK            = O_NONBLOCK
	TFD_TIMER_ABSTIME       = 1
	TFD_TIMER_CANCEL_ON_SET = 2
	TFD_IOC_SET_TICKS       = 0x40085400
)

// Flags of eventfd2 and signalfd4.
const (
	EFD_SEMAPHORE = 1
	EFD_CLOEXEC   = O_CLOEXEC
	EFD_NONBLOCK  = O_NONBLOCK
	SFD_CLOEXEC   = O_CLOEXEC
	SFD_NONBLOCK  = O_NONBLOCK
)

// Sizes of time structures in user memory.
const (
	SizeofTimespec   = 16
	SizeofTimeval    = 16
	SizeofItimerspec = 32
	SizeofTimex      = 208
)

// NsecPerSec is nanoseconds in a second.
const NsecPerSec = 1_000_000_000

// Itimerspec is struct itimerspec: period and time of the first expiration.
type Itimerspec struct{ Interval, Value Timespec }

// Valid reports whether ts is a time that the kernel accepts.
func (ts Timespec) Valid() bool {
	return ts.Sec >= 0 && ts.Nsec >= 0 && ts.Nsec < NsecPerSec
}

// maxNsec is the longest time the kernel counts (292 years), less a second so
// that sums of it and a clock can be checked.
const maxNsec = 1<<63 - 1 - NsecPerSec

// Nano returns a valid ts in nanoseconds, cut to what an int64 holds.
func (ts Timespec) Nano() int64 {
	if ts.Sec >= maxNsec/NsecPerSec {
		return maxNsec
	}
	return ts.Sec*NsecPerSec + ts.Nsec
}

// NsecToTimespec splits nanoseconds; negative times round down.
func NsecToTimespec(ns int64) Timespec {
	s, n := ns/NsecPerSec, ns%NsecPerSec
	if n < 0 {
		s, n = s-1, n+NsecPerSec
	}
	return Timespec{s, n}
}

// NsecToTimeval splits nanoseconds, cut to microseconds.
func NsecToTimeval(ns int64) Timeval {
	ts := NsecToTimespec(ns)
	return Timeval{ts.Sec, ts.Nsec / 1000}
}

// SIGEV notification methods of timer_create (include/uapi/asm-generic/siginfo.h).
const (
	SIGEV_SIGNAL    = 0
	SIGEV_NONE      = 1
	SIGEV_THREAD    = 2
	SIGEV_THREAD_ID = 4
	SizeofSigevent  = 64
)

// Modes of adjtimex (include/uapi/linux/timex.h).
const (
	ADJ_OFFSET    = 0x0001
	ADJ_FREQUENCY = 0x0002
	ADJ_MAXERROR  = 0x0004
	ADJ_ESTERROR  = 0x0008
	ADJ_STATUS    = 0x0010
	ADJ_TIMECONST = 0x0020
	ADJ_TAI       = 0x0080
	ADJ_SETOFFSET = 0x0100
	ADJ_MICRO     = 0x1000
	ADJ_NANO      = 0x2000
	ADJ_TICK      = 0x4000
	ADJ_ADJTIME   = 0x8000
)

// Bits of the status and states of adjtimex.
const (
	STA_PLL       = 0x0001
	STA_PPSFREQ   = 0x0002
	STA_PPSTIME   = 0x0004
	STA_FLL       = 0x0008
	STA_INS       = 0x0010
	STA_DEL       = 0x0020
	STA_UNSYNC    = 0x0040
	STA_FREQHOLD  = 0x0080
	STA_PPSSIGNAL = 0x0100
	STA_PPSJITTER = 0x0200
	STA_PPSWANDER = 0x0400
	STA_PPSERROR  = 0x0800
	STA_CLOCKERR  = 0x1000
	STA_NANO      = 0x2000
	STA_MODE      = 0x4000

	TIME_OK    = 0
	TIME_INS   = 1
	TIME_DEL   = 2
	TIME_OOP   = 3
	TIME_WAIT  = 4
	TIME_ERROR = 5
)
