package syscall_test

import (
	"fmt"

	"golang.org/x/sys/unix"

	"hardtack/abi/linux"
)

func signals(p *prog) {
	pid, tid := p.must(linux.SYS_getpid), p.must(linux.SYS_gettid)
	old := p.room(64)
	for _, sig := range []uint64{0, 1, 9, 12, 19, 33, 64, 65, neg(1)} {
		act := p.words(1, 0x04000000, 0x1000, 0xff) // SIG_IGN
		p.do(fmt.Sprintf("sigaction %d", int64(sig)), linux.SYS_rt_sigaction, sig, act, 0, 8)
		p.do("old", linux.SYS_rt_sigaction, sig, p.words(0, 0, 0, 0), old, 8)
		if sig == 12 || sig == 64 {
			p.show("action", old, 32)
		}
		p.do("bad size", linux.SYS_rt_sigaction, sig, act, 0, 4)
		p.do("from nowhere", linux.SYS_rt_sigaction, sig, 8, 0, 8)
		p.do("tgkill", linux.SYS_tgkill, pid, tid, sig*b2u(sig != 9 && sig != 19 && sig != neg(1)))
		p.do("tgkill another", linux.SYS_tgkill, 1<<29, tid, 0)
	}
	for how := range uint64(5) {
		set := uint64(1 << 50)
		if how == unix.SIG_SETMASK {
			set = ^uint64(0)
		}
		p.do("sigprocmask", linux.SYS_rt_sigprocmask, how, p.words(set), old, 8)
		p.must(linux.SYS_rt_sigprocmask, unix.SIG_SETMASK, p.words(^uint64(0)), 0, 8)
	}
	p.show("mask", old, 8)
	p.do("sigprocmask size", linux.SYS_rt_sigprocmask, 0, 0, old, 4)
	p.do("sigprocmask nowhere", linux.SYS_rt_sigprocmask, 0, 8, old, 8)
	p.do("tkill 0", linux.SYS_tkill, 0, 0)
	p.do("tkill none", linux.SYS_tkill, 1<<29, 0)
	p.do("kill none", linux.SYS_kill, 1<<29, 0)
	p.do("kill bad", linux.SYS_kill, pid, 65)
	p.do("kill 0", linux.SYS_kill, pid, 0)
	// Queued signals come in order, others once.
	for _, sig := range []uint64{40, 40, 12, 12, 35} {
		p.do("tgkill", linux.SYS_tgkill, pid, tid, sig)
	}
	info := make([]byte, 128)
	copy(info, []byte{40, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	p.do("queue", linux.SYS_rt_tgsigqueueinfo, pid, tid, 40, p.give(info))
	info[8], info[9], info[10], info[11] = 5, 0, 0, 0
	p.do("queue to oneself as the kernel", linux.SYS_rt_tgsigqueueinfo, pid, tid, 41, p.give(info))
	p.do("queue to none", linux.SYS_rt_sigqueueinfo, 1<<29, 41, p.give(info))
	p.do("pending", linux.SYS_rt_sigpending, old, 8)
	p.show("set", old, 8)
	p.do("pending nowhere", linux.SYS_rt_sigpending, 8, 8)
	p.do("pending size", linux.SYS_rt_sigpending, old, 9)
	si := p.room(128)
	fd := p.must(linux.SYS_signalfd4, neg(1), p.words(1<<34), 8, unix.SFD_NONBLOCK)
	p.do("signalfd", linux.SYS_read, fd, p.room(256), 256)
	p.do("signalfd again", linux.SYS_read, fd, p.room(256), 256)
	p.do("signalfd short", linux.SYS_read, fd, p.room(256), 100)
	p.do("signalfd other set", linux.SYS_signalfd4, fd, p.words(1<<35), 8, 0)
	p.do("signalfd of a pipe", linux.SYS_signalfd4, 0, p.words(1<<35), 8, 0)
	p.do("signalfd size", linux.SYS_signalfd4, fd, p.words(1<<35), 4, 0)
	p.do("signalfd flags", linux.SYS_signalfd4, neg(1), p.words(1<<35), 8, 1)
	for range 6 {
		v := p.do("sigtimedwait", linux.SYS_rt_sigtimedwait, p.words(1<<39|1<<11|1<<40|1<<34), si, p.words(0, 0), 8)
		if _, bad := failed(v); !bad {
			p.note("signal %d code %d", p.u32(si), int32(p.u32(si+8)))
		}
	}
	p.do("sigtimedwait bad time", linux.SYS_rt_sigtimedwait, p.words(1<<50), si, p.words(0, 1e9), 8)
	p.do("sigtimedwait size", linux.SYS_rt_sigtimedwait, p.words(1<<50), si, p.words(0, 0), 7)
	p.do("sigtimedwait nowhere", linux.SYS_rt_sigtimedwait, 8, si, p.words(0, 0), 8)
	p.do("sigsuspend size", linux.SYS_rt_sigsuspend, old, 7)
	for _, s := range [][3]uint64{{arena, 0, 8192}, {arena, 2, 0}, {arena, 0, 100}, {arena, 9, 8192}, {arena, 0x80000000, 8192}} {
		p.do(fmt.Sprint("sigaltstack ", s), linux.SYS_sigaltstack, p.words(s[0], s[1], s[2]), 0)
		p.do("get", linux.SYS_sigaltstack, 0, old)
		p.note("flags %#x size %d", p.u32(old+8), p.u64(old+16))
	}
	p.do("sigaltstack nowhere", linux.SYS_sigaltstack, 8, 0)
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
