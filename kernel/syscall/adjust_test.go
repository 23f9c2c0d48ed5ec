package syscall_test

import (
	"fmt"

	"golang.org/x/sys/unix"

	"hardtack/abi/linux"
)

// timex asks for an adjustment and notes what is said of the clock then.
func (p *prog) timex(what string, modes uint64, fields map[int]uint64) {
	defer p.cut()()
	x := p.room(linux.SizeofTimex)
	words := make([]uint64, linux.SizeofTimex/8)
	words[0] = modes
	for off, v := range fields {
		words[off/8] = v
	}
	for i, w := range words {
		p.write(x+uint64(8*i), le.AppendUint64(nil, w))
	}
	if _, bad := failed(p.do(what, linux.SYS_adjtimex, x)); bad {
		return
	}
	line := fmt.Sprintf("modes %#x offset %d freq %d status %#x constant %d precision %d tolerance %d tick %d tai %d",
		p.u32(x), int64(p.u64(x+8)), int64(p.u64(x+16)), p.u32(x+40), p.u64(x+48), p.u64(x+56), p.u64(x+64), p.u64(x+88), p.u32(x+160))
	if modes&(linux.ADJ_MAXERROR|linux.ADJ_ESTERROR) != 0 {
		line += fmt.Sprintf(" errors %d %d", p.u64(x+24), p.u64(x+32))
	}
	p.note("%s", line)
}

const (
	txOffset, txFreq, txMaxError, txEstError, txStatus, txConstant = 8, 16, 24, 32, 40, 48
	txSec, txUsec, txTick                                          = 72, 80, 88
)

// adjustments are those of adjtimex, by root and by others.
func adjustments(p *prog) {
	p.must(linux.SYS_clock_settime, 0, p.words(1_800_000_000, 0))
	p.timex("nothing", 0, nil)
	steady := map[int]uint64{}
	for _, v := range []uint64{0, 1, 65536, 500 << 16, 501 << 16, neg(500 << 16), neg(600 << 16), neg(1), 140737488355, 140737488356, neg(140737488355), neg(140737488356), 1 << 62} {
		p.timex(fmt.Sprintf("frequency %d", int64(v)), linux.ADJ_FREQUENCY, map[int]uint64{txFreq: v})
	}
	p.timex("no frequency", linux.ADJ_FREQUENCY, steady)
	for _, v := range []uint64{0, 8999, 9000, 11000, 11001, neg(1), 10000} {
		p.timex(fmt.Sprintf("tick %d", int64(v)), linux.ADJ_TICK, map[int]uint64{txTick: v})
	}
	for _, v := range []uint64{0, 37, neg(1), 100000, 100001} {
		p.timex(fmt.Sprintf("TAI %d", int64(v)), linux.ADJ_TAI, map[int]uint64{txConstant: v})
	}
	for _, v := range []uint64{0, 1, 6, 10, 11, neg(1)} {
		p.timex(fmt.Sprintf("constant %d", int64(v)), linux.ADJ_TIMECONST, map[int]uint64{txConstant: v})
		p.timex("in nanoseconds", linux.ADJ_TIMECONST|linux.ADJ_NANO, map[int]uint64{txConstant: v})
		p.timex("in microseconds", linux.ADJ_MICRO, nil)
	}
	for _, v := range []uint64{0, 5, 16000000, 16000001, neg(1)} {
		p.timex(fmt.Sprintf("errors %d", int64(v)), linux.ADJ_MAXERROR|linux.ADJ_ESTERROR, map[int]uint64{txMaxError: v, txEstError: v})
	}
	adjustStatus(p)
	p.timex("old, none", linux.ADJ_ADJTIME, nil)
	p.timex("old, read", linux.ADJ_ADJTIME|linux.ADJ_NANO|linux.ADJ_OFFSET, nil)
	p.timex("old, set", linux.ADJ_ADJTIME|linux.ADJ_OFFSET, map[int]uint64{txOffset: 10_000_000})
	p.timex("old, with others", linux.ADJ_ADJTIME|linux.ADJ_OFFSET|linux.ADJ_TICK, map[int]uint64{txTick: 1, txOffset: 0})
	p.timex("old, read again", linux.ADJ_ADJTIME|linux.ADJ_NANO|linux.ADJ_OFFSET, nil)
	adjustTime(p)
	p.do("clock_adjtime", linux.SYS_clock_adjtime, unix.CLOCK_REALTIME, 8)
	for _, c := range []uint64{1, 2, 3, 4, 5, 7, 11, 99, neg(1), neg(2), neg(6)} {
		p.do(fmt.Sprintf("of clock %d", int64(c)), linux.SYS_clock_adjtime, c, p.room(linux.SizeofTimex))
	}
	p.timex("a mode that is none", 0x40, nil)
	p.timex("all modes but those", 0x40000000, nil)
	p.must(linux.SYS_setresuid, 1000, 1000, 1000)
	for _, m := range []uint64{0, linux.ADJ_OFFSET, linux.ADJ_FREQUENCY, linux.ADJ_STATUS, linux.ADJ_SETOFFSET, linux.ADJ_TICK, linux.ADJ_TAI, linux.ADJ_ADJTIME,
		linux.ADJ_ADJTIME | linux.ADJ_OFFSET, linux.ADJ_ADJTIME | linux.ADJ_NANO | linux.ADJ_OFFSET, linux.ADJ_ADJTIME | linux.ADJ_SETOFFSET | linux.ADJ_NANO | linux.ADJ_OFFSET, 0x40} {
		p.timex(fmt.Sprintf("a user, modes %#x", m), m, map[int]uint64{txTick: 10000})
	}
}

// adjustStatus changes the status, and the offset with and without the phase lock.
func adjustStatus(p *prog) {
	for i := range 16 {
		p.timex(fmt.Sprintf("status %#x", 1<<i), linux.ADJ_STATUS, map[int]uint64{txStatus: 1 << i})
	}
	p.timex("all of the status", linux.ADJ_STATUS, map[int]uint64{txStatus: 0xffff})
	p.timex("nothing of it", linux.ADJ_STATUS, nil)
	p.timex("an offset without a lock", linux.ADJ_OFFSET, map[int]uint64{txOffset: 1000})
	p.timex("the lock", linux.ADJ_STATUS, map[int]uint64{txStatus: linux.STA_PLL})
	for _, v := range []uint64{0, 1, 1000, neg(1000), 499_999, 500_001, 2_000_000, neg(2_000_000), neg(1)} {
		p.timex(fmt.Sprintf("offset %d", int64(v)), linux.ADJ_OFFSET, map[int]uint64{txOffset: v})
		p.timex("in nanoseconds", linux.ADJ_OFFSET|linux.ADJ_NANO, map[int]uint64{txOffset: v})
		p.timex("in microseconds", linux.ADJ_OFFSET|linux.ADJ_MICRO, map[int]uint64{txOffset: v})
	}
	p.timex("no offset, no frequency", linux.ADJ_OFFSET|linux.ADJ_FREQUENCY, nil)
	p.timex("no lock", linux.ADJ_STATUS, nil)
	p.timex("synchronised", linux.ADJ_STATUS|linux.ADJ_MAXERROR|linux.ADJ_ESTERROR, nil)
}

// adjustTime moves the clock.
func adjustTime(p *prog) {
	ts := p.room(16)
	for _, v := range [][3]uint64{{0, 0, 0}, {100, 0, 0}, {neg(100), 0, 0}, {0, 999_999, 0}, {0, 1_000_000, 0}, {0, neg(1), 0},
		{neg(2), 999_999_999, linux.ADJ_NANO}, {1, 0, linux.ADJ_NANO}, {0, 1_000_000_000, linux.ADJ_NANO}, {neg(1 << 62), 0, 0}, {1 << 62, 0, 0}, {neg(4_000_000_000), 0, 0}} {
		p.must(linux.SYS_clock_gettime, 0, ts)
		before := int64(p.u64(ts))
		p.timex(fmt.Sprintf("move %d %d", int64(v[0]), int64(v[1])), linux.ADJ_SETOFFSET|v[2], map[int]uint64{txSec: v[0], txUsec: v[1]})
		p.must(linux.SYS_clock_gettime, 0, ts)
		switch moved := int64(p.u64(ts)) - before; { // there may be half a minute between the calls
		case moved < -50:
			p.note("backwards")
		case moved > 50:
			p.note("forwards")
		}
	}
	p.timex("in microseconds", linux.ADJ_MICRO, nil)
	p.must(linux.SYS_clock_gettime, 0, ts)
	real := int64(p.u64(ts))
	p.timex("TAI", linux.ADJ_TAI, map[int]uint64{txConstant: 1000})
	p.must(linux.SYS_clock_gettime, 11, ts)
	p.note("TAI is ahead: %v", int64(p.u64(ts))-real >= 1000)
	p.timex("no TAI", linux.ADJ_TAI, nil)
	p.must(linux.SYS_clock_settime, 0, p.words(uint64(real), 0))
	p.timex("set", 0, nil)
}
