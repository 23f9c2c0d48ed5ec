package ktime

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/clocks"
)

// Timex is what adjtimex(2) exchanges, but for what belongs to a signal each second.
type Timex struct {
	Modes              uint32
	Offset, Freq       int64
	MaxError, EstError int64
	Status             int32
	Constant           int64
	Precision          int64
	Tolerance          int64
	Sec, Usec          int64
	Tick               int64
	TAI                int32
}

// Adjust is adjtimex(2); may says whether the caller may change anything.
func Adjust(x *Timex, may bool) (state int32, e linux.Errno) {
	if e := x.check(may); e != 0 {
		return 0, e
	}
	setMu.Lock()
	ntp.advance()
	if x.Modes&linux.ADJ_SETOFFSET != 0 {
		e = ntp.inject(x)
	}
	if e == 0 {
		state = ntp.exchange(x)
		if x.Modes != 0 {
			ntp.run()
		}
	}
	c := ntp.take()
	setMu.Unlock()
	c.announce()
	return state, e
}

// check is what Linux looks at first.
func (x *Timex) check(may bool) linux.Errno {
	switch {
	case x.Modes&linux.ADJ_ADJTIME != 0:
		if x.Modes&linux.ADJ_OFFSET == 0 {
			return linux.EINVAL
		}
		if x.Modes&linux.ADJ_NANO == 0 && !may { // as part of ADJ_OFFSET_SS_READ it changes nothing
			return linux.EPERM
		}
	case x.Modes != 0 && !may:
		return linux.EPERM
	case x.Modes&linux.ADJ_TICK != 0 && (x.Tick < 9000 || x.Tick > 11000):
		return linux.EINVAL
	}
	if x.Modes&linux.ADJ_SETOFFSET != 0 {
		most := int64(1_000_000)
		if x.Modes&linux.ADJ_NANO != 0 {
			most = linux.NsecPerSec
		}
		if !may {
			return linux.EPERM
		}
		if x.Usec < 0 || x.Usec >= most {
			return linux.EINVAL
		}
	}
	if x.Modes&linux.ADJ_FREQUENCY != 0 && (x.Freq < -1<<63/ppm || x.Freq > (1<<63-1)/ppm) {
		return linux.EINVAL
	}
	return 0
}

// MaxRealtime bounds what CLOCK_REALTIME may be set to, in seconds (TIME_SETTOD_SEC_MAX:
// thirty years before the end of time).
const MaxRealtime = 9223372036 - 30*365*24*3600

// inject moves the clock by an amount.
func (d *discipline) inject(x *Timex) linux.Errno {
	by := linux.Timespec{Sec: x.Sec, Nsec: x.Usec}
	if x.Modes&linux.ADJ_NANO == 0 {
		by.Nsec *= 1000
	}
	if by.Sec > MaxRealtime || by.Sec < -MaxRealtime {
		return linux.EINVAL
	}
	to := clocks.Realtime() + by.Sec*linux.NsecPerSec + by.Nsec
	if to < clocks.Monotonic() || to/linux.NsecPerSec > MaxRealtime {
		return linux.EINVAL
	}
	jump(to)
	d.clear()
	return 0
}

// exchange changes what modes say, and tells all.
func (d *discipline) exchange(x *Timex) int32 {
	if x.Modes&linux.ADJ_ADJTIME != 0 {
		old := d.adjust
		if x.Modes&linux.ADJ_NANO == 0 {
			d.adjust = x.Offset
		}
		x.Offset = old
	} else {
		d.change(x)
		if x.Offset = towardsZero(d.offset*hertz, scale); d.status&linux.STA_NANO == 0 {
			x.Offset /= 1000
		}
	}
	state := d.state
	if d.wrong() {
		state = linux.TIME_ERROR
	}
	const inverseShift = 19
	const inverse = 1<<(inverseShift+scale)/ppm + 1
	x.Freq = towardsZero((d.freq>>inverseShift)*inverse, scale)
	x.MaxError, x.EstError, x.Status, x.Constant = d.maxError, d.estError, d.status, d.constant
	x.Precision, x.Tolerance, x.Tick, x.TAI = 1, maxFreq/ppm, d.tick, int32(tai.Load()/linux.NsecPerSec)
	now := clocks.Realtime()
	x.Sec, x.Usec = now/linux.NsecPerSec, now%linux.NsecPerSec
	if d.status&linux.STA_NANO == 0 {
		x.Usec /= 1000
	}
	return state
}

func (d *discipline) change(x *Timex) {
	on := func(mode uint32) bool { return x.Modes&mode != 0 }
	if on(linux.ADJ_STATUS) {
		d.setStatus(x.Status)
	}
	if on(linux.ADJ_NANO) {
		d.status |= linux.STA_NANO
	}
	if on(linux.ADJ_MICRO) {
		d.status &^= linux.STA_NANO
	}
	if on(linux.ADJ_FREQUENCY) {
		d.freq = min(max(x.Freq*ppm, -maxFreq), maxFreq)
	}
	if on(linux.ADJ_MAXERROR) {
		d.maxError = min(max(x.MaxError, 0), phaseLimit)
	}
	if on(linux.ADJ_ESTERROR) {
		d.estError = min(max(x.EstError, 0), phaseLimit)
	}
	if on(linux.ADJ_TIMECONST) {
		d.constant = min(max(x.Constant, 0), maxConstant)
		if d.status&linux.STA_NANO == 0 {
			d.constant = min(d.constant+4, maxConstant)
		}
	}
	if on(linux.ADJ_TAI) && x.Constant >= 0 && x.Constant <= maxTAI {
		d.jumped = d.jumped || tai.Swap(x.Constant*linux.NsecPerSec) != x.Constant*linux.NsecPerSec
	}
	if on(linux.ADJ_OFFSET) {
		d.setOffset(x.Offset)
	}
	if on(linux.ADJ_TICK) {
		d.tick = x.Tick
	}
}
