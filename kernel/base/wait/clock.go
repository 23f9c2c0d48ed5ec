package wait

import "math/bits"

// clock is how the time-stamp counter becomes nanoseconds; set at boot, before there
// are programs. Zero (host tests): Go's runtime says what time it is.
var clock struct {
	base, mult uint64
	perNsec    uint64 // ticks a nanosecond, tickPlaces binary places
}

const tickPlaces = 20

// SetClock lets Now read the time-stamp counter itself, by the rule that Go's runtime
// has, too: (counter - base) * mult, with 32 binary places. The way through the runtime
// goes by the vDSO's convention and a division, and takes three times as long.
func SetClock(base, mult uint64) {
	clock.base, clock.mult, clock.perNsec = base, mult, 0
	if mult != 0 {
		clock.perNsec = 1 << (32 + tickPlaces) / mult
	}
}

// At returns what Now returned when the time-stamp counter had a value.
func At(ticks int64) int64 {
	if clock.mult != 0 {
		return sinceBoot(ticks)
	}
	return ticks
}

// sinceBoot is Now with a clock that was set.
func sinceBoot(ticks int64) int64 {
	hi, lo := bits.Mul64(uint64(ticks)-clock.base, clock.mult)
	return int64(hi<<32 | lo>>32)
}

// mostAhead is how far ahead ticksAt looks, in nanoseconds.
const mostAhead = 1 << 40

// ticksAt returns what the time-stamp counter will be at a time of nanotime, or a little
// less: no more than a millionth of the way there, and never later than mostAhead.
func ticksAt(when int64) int64 {
	now := cputicks()
	if clock.perNsec == 0 {
		return now
	}
	return now + int64(uint64(min(max(when-sinceBoot(now), 0), mostAhead))*clock.perNsec>>tickPlaces)
}
