package syscall_test

import (
	"fmt"

	"golang.org/x/sys/unix"

	"hardtack/abi/linux"
)

func clocks(p *prog) {
	ts := p.room(64)
	for _, c := range []uint64{0, 1, 2, 3, 4, 5, 6, 7, 10, 12, 99, neg(6), neg(2)} {
		p.do(fmt.Sprintf("clock_gettime %d", int64(c)), linux.SYS_clock_gettime, c, ts)
		p.do("to nowhere", linux.SYS_clock_gettime, c, 8)
		p.do("getres", linux.SYS_clock_getres, c, 0)
		p.do("settime bad", linux.SYS_clock_settime, c, p.words(1, 1e9))
		p.do("settime nowhere", linux.SYS_clock_settime, c, 8)
		for _, t := range [][2]uint64{{0, 0}, {0, 1}, {0, 1e9}, {neg(1), 0}, {0, neg(1)}} {
			if c == 2 || c == 10 || c == neg(6) || c == neg(2) {
				continue // their sleeps take as long as they take
			}
			p.do(fmt.Sprintf("clock_nanosleep %d", int64(t[1])), linux.SYS_clock_nanosleep, c, 0, p.words(t[0], t[1]), 0)
			p.do("flags", linux.SYS_clock_nanosleep, c, 1, p.words(t[0], t[1]), 0)
		}
		for _, flags := range []uint64{0, unix.TFD_NONBLOCK, unix.TFD_CLOEXEC, 1} {
			fd := p.do("timerfd_create", linux.SYS_timerfd_create, c, flags|unix.TFD_NONBLOCK)
			if _, bad := failed(fd); bad {
				continue
			}
			p.do("read", linux.SYS_read, fd, ts, 8)
			for _, v := range [][4]uint64{{0, 0, 0, 0}, {0, 0, 1000, 0}, {5, 0, 1000, 0}, {0, 1e9, 1, 0}, {0, 0, neg(1), 0}, {0, 0, 0, 1}} {
				p.do(fmt.Sprint("timerfd_settime ", v[2:]), linux.SYS_timerfd_settime, fd, 0, p.words(v[:]...), ts)
				p.do("gettime", linux.SYS_timerfd_gettime, fd, ts)
				p.note("interval %d", p.u64(ts))
			}
			p.do("settime flags", linux.SYS_timerfd_settime, fd, 99, p.words(0, 0, 1, 0), 0)
			p.do("absolute, gone by", linux.SYS_timerfd_settime, fd, 1, p.words(0, 0, 1, 0), 0)
			p.do("wait", linux.SYS_poll, p.ints(uint32(fd), 1), 1, 5000)
			p.do("short read", linux.SYS_read, fd, ts, 7)
			p.do("read", linux.SYS_read, fd, ts, 8)
			p.note("expirations %d", p.u64(ts))
			p.close(fd)
		}
		id := p.room(8)
		for _, sev := range [][4]uint32{{0, 0, 12, 0}, {0, 0, 12, 1}, {0, 0, 99, 0}, {0, 0, 12, 7}, {0, 0, 12, 4}} {
			v := p.do(fmt.Sprint("timer_create ", sev), linux.SYS_timer_create, c, p.ints(sev[0], sev[1], sev[2], sev[3], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), id)
			if v != 0 {
				continue
			}
			tm := uint64(p.u32(id))
			for _, v := range [][4]uint64{{0, 0, 1000, 0}, {3, 0, 1000, 0}, {0, 1e9, 1, 0}, {0, 0, neg(1), 0}, {0, 0, 0, 0}} {
				p.do(fmt.Sprint("timer_settime ", v[2:]), linux.SYS_timer_settime, tm, 0, p.words(v[:]...), ts)
				p.do("timer_gettime", linux.SYS_timer_gettime, tm, ts)
				p.note("interval %d", p.u64(ts))
			}
			p.do("overrun", linux.SYS_timer_getoverrun, tm)
			p.do("delete", linux.SYS_timer_delete, tm)
			p.do("delete again", linux.SYS_timer_delete, tm)
			p.do("gettime of none", linux.SYS_timer_gettime, tm, ts)
		}
	}
	for which := range uint64(4) {
		for _, v := range [][4]uint64{{0, 0, 1000, 0}, {7, 5, 1000, 0}, {0, 1e6, 1, 0}, {0, 0, neg(1), 0}, {0, 0, 0, 0}} {
			p.do(fmt.Sprint("setitimer ", which, v), linux.SYS_setitimer, which, p.words(v[:]...), ts)
			p.do("getitimer", linux.SYS_getitimer, which, ts)
			p.note("interval %d", p.u64(ts))
		}
	}
	p.do("alarm", linux.SYS_alarm, 100)
	p.do("alarm", linux.SYS_alarm, 0)
	p.do("nanosleep bad", linux.SYS_nanosleep, p.words(0, 1e9), 0)
	p.do("nanosleep nowhere", linux.SYS_nanosleep, 8, 0)
	p.do("nanosleep", linux.SYS_nanosleep, p.words(0, 1000), ts)
	p.do("gettimeofday", linux.SYS_gettimeofday, ts, ts)
	p.do("gettimeofday nowhere", linux.SYS_gettimeofday, 8, 0)
	p.ok("time", linux.SYS_time, ts)
	p.do("time nowhere", linux.SYS_time, 8)
	p.ok("times", linux.SYS_times, ts)
	p.do("times nowhere", linux.SYS_times, 8)
	p.do("adjtimex nowhere", linux.SYS_adjtimex, 8)
	p.do("settimeofday bad", linux.SYS_settimeofday, p.words(1, 1e6), 0)
}
