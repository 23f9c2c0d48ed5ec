package ktime

import (
	"sync/atomic"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/vdso"
	"hardtack/kernel/base/wait"
)

// The discipline of CLOCK_REALTIME is Linux's, which follows RFC 5905: a frequency, a
// phase that is made good a part at a time, each second, and leap seconds.
// CLOCK_MONOTONIC keeps its speed.

// A phase and a frequency are nanoseconds, or nanoseconds a second, times 2³².
const (
	scale        = 32
	maxPhase     = 500_000_000      // ns
	maxFreq      = 500_000 << scale // ns a second: 500 ppm
	ppm          = 1000 << 16       // of struct timex's 2⁻¹⁶ ppm to a frequency
	phaseLimit   = 16_000_000       // µs; a maxerror beyond it is STA_UNSYNC
	maxAdjust    = 500              // µs that adjtime(3) makes good in a second
	pllShift     = 2
	fllShift     = 2
	maxConstant  = 10
	minInterval  = 256  // seconds, for the frequency lock
	maxInterval  = 2048 // seconds, for the phase lock
	maxTAI       = 100_000
	day          = 24 * 3600
	noLeap       = 1<<63 - 1
	readOnlyBits = 0xff00 // of the status
	hertz        = 250    // ticks of Debian's kernel in a second, which round an offset
)

// tai is what CLOCK_TAI is ahead of CLOCK_REALTIME, nanoseconds.
var tai atomic.Int64

// discipline is the state; all fields are guarded by setMu.
type discipline struct {
	offset   int64 // what is left of the phase, for each of a second's ticks
	freq     int64
	phase    int64 // what the present second makes good
	tick     int64 // µs that a tick of 10 ms has
	adjust   int64 // µs that are left of an adjtime(3)
	status   int32
	state    int32
	constant int64
	maxError int64 // µs
	estError int64 // µs
	ref      int64 // seconds; when the offset was set last
	leap     int64 // seconds; when the next leap second is
	second   int64 // that was dealt with last
	alarm    *time.Timer
	changes
}

var ntp = discipline{tick: 10_000, status: linux.STA_UNSYNC, constant: 2, maxError: phaseLimit, estError: phaseLimit, leap: noLeap}

// clear is for a clock that was set: nobody knows how well.
func (d *discipline) clear() {
	d.adjust, d.offset, d.phase = 0, 0, 0
	d.status |= linux.STA_UNSYNC
	d.maxError, d.estError = phaseLimit, phaseLimit
	d.leap, d.state = noLeap, linux.TIME_OK
	d.second = clocks.Realtime() / linux.NsecPerSec
	d.run()
}

// base is what the clock gains in a second without a phase.
func (d *discipline) base() int64 { return (d.tick-10_000)*1000*100<<scale + d.freq }

// run makes the clock as fast as the state says, and has each second looked at while
// there is something to do.
func (d *discipline) run() {
	// The frequency is in nanoseconds a second: a part of 10⁹.
	rate := (d.base() + d.phase) / linux.NsecPerSec
	if rate != clocks.Running().Rate {
		vdso.SetSlew(clocks.SetRate(rate))
		d.sped = true
	}
	if rate == 0 && d.offset == 0 && d.adjust == 0 && d.state == linux.TIME_OK && d.status&(linux.STA_INS|linux.STA_DEL) == 0 {
		return
	}
	left := time.Duration(linux.NsecPerSec - clocks.Realtime()%linux.NsecPerSec)
	if d.alarm == nil {
		d.alarm = time.AfterFunc(left, nextSecond)
	} else {
		d.alarm.Reset(left)
	}
}

func nextSecond() {
	setMu.Lock()
	ntp.advance()
	ntp.run()
	c := ntp.take()
	setMu.Unlock()
	c.announce()
}

// changes are what absolute timers and sleepers are to be told of their clocks.
type changes struct{ jumped, sped bool }

// take returns what has happened since the last call; setMu is held.
func (d *discipline) take() changes {
	c := d.changes
	d.changes = changes{}
	return c
}

// announce tells of it, with setMu given back.
func (c changes) announce() {
	if !c.jumped && !c.sped {
		return
	}
	for _, t := range realTimers() {
		t.clockSet(c.jumped)
	}
	Changed.Notify(wait.In)
}

// advance deals with the seconds since the last time.
func (d *discipline) advance() {
	now := clocks.Realtime() / linux.NsecPerSec
	if late := now - d.second; late > 64 { // nothing but the error has changed
		d.maxError = min(d.maxError+(late-64)*500, phaseLimit)
		d.second = now - 64
	}
	//maxlive:loop 1 because the clock leaps once a day at most
	for d.second < now {
		d.second++
		if by := d.overflow(d.second); by != 0 {
			jump(clocks.Realtime() + by*linux.NsecPerSec)
			tai.Add(-by * linux.NsecPerSec)
			d.second, now = d.second+by, now+by
		}
	}
}

// overflow is the beginning of a second; it returns by how many the clock leaps.
func (d *discipline) overflow(second int64) (leap int64) {
	switch d.state {
	case linux.TIME_OK:
		if d.status&linux.STA_INS != 0 {
			d.state = linux.TIME_INS
			d.leap = second + day - second%day
		} else if d.status&linux.STA_DEL != 0 {
			d.state = linux.TIME_DEL
			d.leap = second + day - (second+1)%day
		}
	case linux.TIME_INS:
		if d.status&linux.STA_INS == 0 {
			d.leap, d.state = noLeap, linux.TIME_OK
		} else if second == d.leap {
			leap, d.state = -1, linux.TIME_OOP
		}
	case linux.TIME_DEL:
		if d.status&linux.STA_DEL == 0 {
			d.leap, d.state = noLeap, linux.TIME_OK
		} else if second == d.leap {
			leap, d.leap, d.state = 1, noLeap, linux.TIME_WAIT
		}
	case linux.TIME_OOP:
		d.leap, d.state = noLeap, linux.TIME_WAIT
	case linux.TIME_WAIT:
		if d.status&(linux.STA_INS|linux.STA_DEL) == 0 {
			d.state = linux.TIME_OK
		}
	}
	if d.maxError += 500; d.maxError > phaseLimit {
		d.maxError = phaseLimit
		d.status |= linux.STA_UNSYNC
	}
	part := towardsZero(d.offset, pllShift+d.constant)
	d.offset -= part
	d.phase = part * hertz
	now := min(max(d.adjust, -maxAdjust), maxAdjust)
	d.adjust -= now
	d.phase += now * 1000 << scale
	return leap
}

// towardsZero is a division by a power of two.
func towardsZero(v, shift int64) int64 {
	if v < 0 {
		return -(-v >> shift)
	}
	return v >> shift
}

// setOffset begins to make a phase good, in nanoseconds or microseconds.
func (d *discipline) setOffset(v int64) {
	if d.status&linux.STA_PLL == 0 {
		return
	}
	if d.status&linux.STA_NANO == 0 {
		v = min(max(v, -1_000_000), 1_000_000) * 1000
	}
	v = min(max(v, -maxPhase), maxPhase)
	now := clocks.Realtime() / linux.NsecPerSec
	secs := now - d.ref
	if d.status&linux.STA_FREQHOLD != 0 {
		secs = 0
	}
	d.ref = now
	freq := d.lockFrequency(v, secs)
	secs = min(secs, 1<<(pllShift+1+d.constant))
	freq += v * secs << (scale - 2*(pllShift+2+d.constant))
	d.freq = min(max(freq+d.freq, -maxFreq), maxFreq)
	d.offset = v << scale / hertz
}

// lockFrequency is the part of the frequency lock, for offsets that are set seldom.
func (d *discipline) lockFrequency(v, secs int64) int64 {
	d.status &^= linux.STA_MODE
	if secs < minInterval || d.status&linux.STA_FLL == 0 && secs <= maxInterval {
		return 0
	}
	d.status |= linux.STA_MODE
	return v << (scale - fllShift) / secs
}

// setStatus changes what of the status may be changed.
func (d *discipline) setStatus(v int32) {
	if d.status&linux.STA_PLL != 0 && v&linux.STA_PLL == 0 {
		d.state, d.leap, d.status = linux.TIME_OK, noLeap, linux.STA_UNSYNC
	}
	if d.status&linux.STA_PLL == 0 && v&linux.STA_PLL != 0 {
		d.ref = clocks.Realtime() / linux.NsecPerSec
	}
	d.status = d.status&readOnlyBits | v&^readOnlyBits
}

// wrong reports whether the status says that the time is not to be relied on.
func (d *discipline) wrong() bool { return d.status&(linux.STA_UNSYNC|linux.STA_CLOCKERR) != 0 }
