package syscall_test

import (
	"fmt"

	"golang.org/x/sys/unix"

	"hardtack/abi/linux"
)

func prctls(p *prog) {
	buf := p.room(64)
	for _, op := range []uint64{unix.PR_SET_PDEATHSIG, unix.PR_SET_DUMPABLE, unix.PR_SET_KEEPCAPS, unix.PR_SET_TIMING,
		unix.PR_SET_NAME, unix.PR_SET_CHILD_SUBREAPER, unix.PR_SET_THP_DISABLE,
		unix.PR_CAPBSET_READ, unix.PR_MCE_KILL, unix.PR_SET_SECUREBITS, unix.PR_SET_NO_NEW_PRIVS, unix.PR_SET_FPEMU, unix.PR_SET_ENDIAN, 999} {
		for _, v := range []uint64{0, 1, 2, 65, neg(1)} {
			if op == unix.PR_SET_NAME {
				continue
			}
			p.do(fmt.Sprintf("prctl(%d, %d)", op, int64(v)), linux.SYS_prctl, op, v, 0, 0, 0)
			p.do("with more", linux.SYS_prctl, op, v, 1, 0, 0)
		}
	}
	for _, op := range []uint64{unix.PR_GET_PDEATHSIG, unix.PR_GET_DUMPABLE, unix.PR_GET_KEEPCAPS, unix.PR_GET_TIMING,
		unix.PR_GET_NAME, unix.PR_GET_TSC, unix.PR_GET_CHILD_SUBREAPER, unix.PR_GET_THP_DISABLE,
		unix.PR_MCE_KILL_GET, unix.PR_GET_SECUREBITS, unix.PR_GET_NO_NEW_PRIVS, unix.PR_GET_SECCOMP, unix.PR_GET_TID_ADDRESS, unix.PR_GET_FPEMU, unix.PR_GET_ENDIAN} {
		p.ok(fmt.Sprintf("prctl(%d)", op), linux.SYS_prctl, op, buf, 0, 0, 0)
		p.do("to nowhere", linux.SYS_prctl, op, 8, 0, 0, 0)
		p.do("with more", linux.SYS_prctl, op, buf, 1, 0, 0)
	}
	p.do("name", linux.SYS_prctl, unix.PR_SET_NAME, p.str("a name that is too long"))
	p.do("get name", linux.SYS_prctl, unix.PR_GET_NAME, buf)
	p.show("it", buf, 16)
	p.do("name nowhere", linux.SYS_prctl, unix.PR_SET_NAME, 8)
	for _, op := range []uint64{unix.PR_CAP_AMBIENT_IS_SET, unix.PR_CAP_AMBIENT_RAISE, unix.PR_CAP_AMBIENT_LOWER, unix.PR_CAP_AMBIENT_CLEAR_ALL, 9} {
		for _, c := range []uint64{0, 10, 40, 41, neg(1)} {
			p.do(fmt.Sprintf("ambient %d %d", op, int64(c)), linux.SYS_prctl, unix.PR_CAP_AMBIENT, op, c, 0, 0)
		}
	}
	for _, c := range []uint64{0, 40, 41, neg(1)} {
		p.do("drop", linux.SYS_prctl, unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		p.do("has", linux.SYS_prctl, unix.PR_CAPBSET_READ, c, 0, 0, 0)
	}
	for _, op := range []uint64{0x1001, 0x1002, 0x1003, 0x1004, 0x9999} {
		p.do(fmt.Sprintf("arch_prctl %#x to nowhere", op), linux.SYS_arch_prctl, op, 1<<63)
	}
}

func limits(p *prog) {
	pid := p.must(linux.SYS_getpid)
	old := p.room(16)
	for res := range uint64(17) {
		if res == unix.RLIMIT_CPU || res == unix.RLIMIT_NPROC || res == unix.RLIMIT_AS || res == unix.RLIMIT_DATA || res == unix.RLIMIT_STACK || res == unix.RLIMIT_CORE {
			continue // they would end the script, or had their end from enter
		}
		// Only downwards: who may raise limits differs from host to host.
		for _, v := range [][2]uint64{{100000, 200000}, {5000, 6000}, {6001, 6000}, {100, 6000}, {6000, 6000}, {1000, 2000}} {
			if res == 11 || res == unix.RLIMIT_NICE || res == unix.RLIMIT_RTPRIO || res == unix.RLIMIT_MEMLOCK {
				v[0], v[1] = 0, 0
			}
			p.do(fmt.Sprintf("setrlimit(%d, %d, %d)", res, int64(v[0]), int64(v[1])), linux.SYS_setrlimit, res, p.words(v[0], v[1]))
			p.do("getrlimit", linux.SYS_getrlimit, res, old)
			p.show("it", old, 16)
		}
		p.do("prlimit64 both", linux.SYS_prlimit64, pid, res, p.words(1000, 1500), old)
		p.show("old", old, 16)
		p.do("nowhere", linux.SYS_prlimit64, 0, res, 8, 0)
		p.do("to nowhere", linux.SYS_prlimit64, 0, res, 0, 8)
	}
	p.do("no such limit", linux.SYS_getrlimit, 16, old)
	p.do("no such process", linux.SYS_prlimit64, 1<<22+1, 7, 0, old)
	p.must(linux.SYS_prlimit64, 0, unix.RLIMIT_FSIZE, p.words(100, 200), 0)
	f := p.file("/f", "x")
	p.do("write up to the limit", linux.SYS_pwrite64, f, arena, 200, 0)
	p.do("and beyond", linux.SYS_pwrite64, f, arena, 10, 100)
	p.do("ftruncate", linux.SYS_ftruncate, f, 101)
	p.do("fallocate", linux.SYS_fallocate, f, 0, 0, 101)
	p.do("SIGXFSZ", linux.SYS_rt_sigpending, old, 8)
	p.show("pending", old, 8)
}

func identity(p *prog) {
	three := p.room(12)
	ids := func(what string) {
		p.must(linux.SYS_getresuid, three, three+4, three+8)
		p.show(what+" uids", three, 12)
		p.must(linux.SYS_getresgid, three, three+4, three+8)
		p.show(what+" gids", three, 12)
		h := p.ints(unix.LINUX_CAPABILITY_VERSION_3, 0)
		d := p.room(24)
		p.do("capget", linux.SYS_capget, h, d)
		p.show("capabilities", d, 24)
	}
	ids("first")
	for _, v := range []uint32{unix.LINUX_CAPABILITY_VERSION_3, 0x19980330, 0x20071026, 0} {
		h := p.ints(v, 0)
		p.do("capget", linux.SYS_capget, h, p.room(24))
		p.note("version %#x", p.u32(h))
		p.do("capget without data", linux.SYS_capget, h, 0)
	}
	p.do("capget of none", linux.SYS_capget, p.ints(unix.LINUX_CAPABILITY_VERSION_3, 1<<29), p.room(24))
	p.do("capget negative", linux.SYS_capget, p.ints(unix.LINUX_CAPABILITY_VERSION_3, ^uint32(0)), p.room(24))
	p.do("capset of another", linux.SYS_capset, p.ints(unix.LINUX_CAPABILITY_VERSION_3, 1), p.room(24))
	for _, n := range []uint64{0, 3, 65537, neg(1)} {
		p.do(fmt.Sprintf("setgroups %d", int64(n)), linux.SYS_setgroups, n, p.ints(9, 5, 7))
		g := p.room(64)
		p.do("getgroups", linux.SYS_getgroups, 16, g)
		p.show("groups", g, 12)
		p.do("getgroups 0", linux.SYS_getgroups, 0, 0)
		p.do("getgroups 1", linux.SYS_getgroups, 1, g)
		p.do("getgroups -1", linux.SYS_getgroups, neg(1), g)
	}
	p.do("setgroups with a bad one", linux.SYS_setgroups, 1, p.ints(^uint32(0)))
	p.do("setfsuid", linux.SYS_setfsuid, 44)
	p.do("setfsuid", linux.SYS_setfsuid, neg(1))
	p.do("setfsgid", linux.SYS_setfsgid, 45)
	p.do("setfsgid", linux.SYS_setfsgid, 0)
	for _, c := range [][3]uint64{{linux.SYS_setregid, 100, 200}, {linux.SYS_setregid, neg(1), 300}, {linux.SYS_setgid, 400, 0}, {linux.SYS_setgid, neg(1), 0}} {
		p.do(fmt.Sprintf("call %d %d %d", c[0], int64(c[1]), int64(c[2])), c[0], c[1], c[2])
		ids("then")
	}
	p.do("setresgid", linux.SYS_setresgid, 1, 2, 3)
	p.do("keep", linux.SYS_prctl, unix.PR_SET_KEEPCAPS, 1)
	p.do("setresuid", linux.SYS_setresuid, 1000, neg(1), 2000)
	ids("half root")
	p.do("setreuid", linux.SYS_setreuid, neg(1), 2000)
	ids("user")
	for _, c := range [][4]uint64{{linux.SYS_setuid, 0}, {linux.SYS_setuid, 1000}, {linux.SYS_setgid, 0}, {linux.SYS_setgid, 3}, {linux.SYS_setresuid, 5, neg(1), neg(1)},
		{linux.SYS_setresuid, neg(1), 2000, neg(1)}, {linux.SYS_setreuid, 2000, 1000}, {linux.SYS_setresgid, 9, 9, 9}, {linux.SYS_setregid, 1, 3}, {linux.SYS_setgroups, 0, 0},
		{linux.SYS_chroot, p.str("/")}, {linux.SYS_sethostname, p.str("x"), 1}, {linux.SYS_setpriority, 0, 0, neg(5)}, {linux.SYS_mount, p.str("x"), p.str("/tmp"), p.str("tmpfs")},
		{linux.SYS_chown, p.str("/tmp"), 1, 1}, {linux.SYS_setfsuid, 0}, {linux.SYS_iopl, 3}, {linux.SYS_ioperm, 0, 10, 1},
		{linux.SYS_settimeofday, p.words(1, 1), 0}, {linux.SYS_clock_settime, 0, p.words(1, 1)}, {linux.SYS_setdomainname, p.str("x"), 1}, {linux.SYS_umount2, p.str("/proc"), 0},
		{linux.SYS_swapon, p.str("/tmp"), 0}, {linux.SYS_acct, 0}, {linux.SYS_vhangup}, {linux.SYS_reboot, 1, 2, 3}, {linux.SYS_setns, 0, 0}, {linux.SYS_mknod, p.str("/tmp/dev"), linux.S_IFCHR, 0x103}} {
		p.do(fmt.Sprintf("as a user: call %d %d %d", c[0], int64(c[1])&0xff, int64(c[2])&0xff), c[0], c[1], c[2], c[3])
	}
	ids("last")
}

func groups(p *prog) {
	pid := p.must(linux.SYS_getpid)
	for _, v := range []uint64{1 << 29, neg(1)} {
		p.do("getpgid", linux.SYS_getpgid, v)
		p.do("getsid", linux.SYS_getsid, v)
		p.do("setpgid", linux.SYS_setpgid, v, 0)
		p.do("setpgid to", linux.SYS_setpgid, 0, v)
	}
	p.ok("setsid", linux.SYS_setsid)
	p.do("setsid again", linux.SYS_setsid)
	p.note("leader: %v %v", p.must(linux.SYS_getsid, 0) == pid, p.must(linux.SYS_getpgid, 0) == pid)
	p.do("setpgid of a leader", linux.SYS_setpgid, 0, 0)
	p.note("group %v thread %v", p.must(linux.SYS_getpgrp) == pid, p.must(linux.SYS_gettid) > 0)
	for _, which := range []uint64{0, 1, 3} {
		p.do("getpriority", linux.SYS_getpriority, which, 0)
		p.do("getpriority of none", linux.SYS_getpriority, which, 1<<29)
		for _, n := range []uint64{5, 100, neg(100), 0} {
			p.do("setpriority", linux.SYS_setpriority, which, 0, n)
			p.do("getpriority", linux.SYS_getpriority, which, 0)
		}
	}
	for _, o := range []uint64{0, 1, 2, 4, 8, 1 << 30, 64} {
		p.do(fmt.Sprintf("wait4 options %d", o), linux.SYS_wait4, 1<<22-1, 0, o, 0)
		for kind := range uint64(5) {
			p.do(fmt.Sprintf("waitid %d options %d", kind, o), linux.SYS_waitid, kind, 1<<22-1, 0, o|1, 0)
		}
	}
	for _, flags := range []uint64{0, 1, unix.O_NONBLOCK} {
		p.do("pidfd_open", linux.SYS_pidfd_open, pid, flags)
		p.do("pidfd_open none", linux.SYS_pidfd_open, 1<<29, flags)
		p.do("pidfd_open 0", linux.SYS_pidfd_open, 0, flags)
	}
	fd := p.must(linux.SYS_pidfd_open, pid, 0)
	p.do("pidfd_send_signal", linux.SYS_pidfd_send_signal, fd, 0, 0, 0)
	p.do("pidfd_send_signal bad", linux.SYS_pidfd_send_signal, fd, 65, 0, 0)
	p.do("pidfd_send_signal flags", linux.SYS_pidfd_send_signal, fd, 0, 0, 99)
	p.do("pidfd_send_signal no pidfd", linux.SYS_pidfd_send_signal, 0, 0, 0, 0)
	p.do("pidfd_getfd", linux.SYS_pidfd_getfd, fd, 0, 0)
	p.do("pidfd_getfd none", linux.SYS_pidfd_getfd, fd, 277, 0)
	p.do("pidfd_getfd flags", linux.SYS_pidfd_getfd, fd, 0, 1)
	for typ := range uint64(10) {
		p.ok("kcmp", linux.SYS_kcmp, pid, pid, typ, 0, 0)
		p.do("kcmp none", linux.SYS_kcmp, pid, 1<<29, typ, 0, 0)
	}
}

func scheduling(p *prog) {
	param := p.ints(0)
	for policy := range uint64(7) {
		p.do("max", linux.SYS_sched_get_priority_max, policy)
		p.do("min", linux.SYS_sched_get_priority_min, policy)
	}
	for _, policy := range []uint64{0, 3, 5, 4, 99, neg(1)} {
		for _, prio := range []uint32{0, 1, 100} {
			p.do(fmt.Sprintf("sched_setscheduler(%d, %d)", int64(policy), int32(prio)), linux.SYS_sched_setscheduler, 0, policy, p.ints(prio))
			p.do("sched_getscheduler", linux.SYS_sched_getscheduler, 0)
			p.do("sched_setparam", linux.SYS_sched_setparam, 0, p.ints(prio))
			p.do("sched_getparam", linux.SYS_sched_getparam, 0, param)
		}
	}
	p.do("none", linux.SYS_sched_getscheduler, 1<<29)
	p.do("negative", linux.SYS_sched_getscheduler, neg(1))
	p.do("param nowhere", linux.SYS_sched_getparam, 0, 0)
	attr := p.room(64)
	for _, size := range []uint64{0, 47, 48, 56, 64, 5000} {
		p.do(fmt.Sprintf("sched_getattr %d", size), linux.SYS_sched_getattr, 0, attr, size, 0)
	}
	p.do("sched_getattr flags", linux.SYS_sched_getattr, 0, attr, 48, 1)
	for _, a := range [][3]uint32{{48, 0, 0}, {48, 3, 0}, {48, 99, 0}, {20, 0, 0}, {56, 0, 0}, {48, 0, 1 << 20}} {
		p.do(fmt.Sprint("sched_setattr ", a), linux.SYS_sched_setattr, 0, p.ints(a[0], a[1], a[2], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), 0)
	}
	p.do("sched_rr_get_interval none", linux.SYS_sched_rr_get_interval, 1<<29, attr)
	p.do("affinity nothing", linux.SYS_sched_setaffinity, 0, 8, p.words(0))
	p.do("affinity nowhere", linux.SYS_sched_setaffinity, 0, 8, 8)
	p.do("affinity short", linux.SYS_sched_getaffinity, 0, 1, attr)
	p.do("affinity of none", linux.SYS_sched_getaffinity, 1<<29, 128, attr)
	p.do("affinity", linux.SYS_sched_setaffinity, 0, 8, p.words(1))
	p.do("yield", linux.SYS_sched_yield)
	for _, which := range []uint64{0, 1, 4} {
		p.ok("ioprio_get", linux.SYS_ioprio_get, which, 0)
		for _, v := range []uint64{0, 2<<13 | 4, 3 << 13, 2<<13 | 8, 9 << 13} {
			p.do(fmt.Sprintf("ioprio_set(%d, %#x)", which, v), linux.SYS_ioprio_set, which, 0, v)
			p.do("ioprio_get", linux.SYS_ioprio_get, which, 0)
		}
	}
	p.do("getcpu", linux.SYS_getcpu, 0, 0, 0)
	p.do("getcpu nowhere", linux.SYS_getcpu, 8, 0, 0)
	for _, who := range []uint64{0, neg(1), 1, 2} {
		p.do("getrusage", linux.SYS_getrusage, who, p.room(144))
		p.do("getrusage nowhere", linux.SYS_getrusage, who, 8)
	}
	p.do("membarrier flags", linux.SYS_membarrier, 0, 5, 0)
	p.do("membarrier unknown", linux.SYS_membarrier, 1<<30, 0, 0)
	p.do("membarrier unregistered", linux.SYS_membarrier, 8, 0, 0)
}
