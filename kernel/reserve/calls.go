package reserve

// What a call reserves if its most is not known: none was seen to have more alive at
// once (/proc/hardtack/allocated), but that is a measurement and no proof. Fork reserves
// what it copies besides.
const Default = 64 << 10

const (
	// points covers what a call with a static bound may need where it meets a page
	// fault or another point that has a bound of its own.
	points = 16 << 10
	// small is for calls and page faults of which measurements show that they allocate
	// nothing once what they work on is there.
	small = 4 << 10
)

// Fault is what a page fault reserves.
const Fault = small

// static has the static bounds of calls, in bytes, without the points that they reach
// (hardtack maxlive).
var static = map[string]uint32{
	"access":                  624,
	"adjtimex":                144,
	"alarm":                   136,
	"arch_prctl":              112,
	"capget":                  112,
	"capset":                  224,
	"chdir":                   624,
	"chroot":                  624,
	"clock_adjtime":           144,
	"clock_getres":            136,
	"clock_gettime":           136,
	"dup":                     112,
	"epoll_create":            1168,
	"epoll_create1":           1168,
	"eventfd":                 288,
	"eventfd2":                288,
	"exit":                    0,
	"exit_group":              112,
	"faccessat":               624,
	"faccessat2":              624,
	"fchdir":                  112,
	"fdatasync":               9520,
	"fstatfs":                 624,
	"fsync":                   9520,
	"futex_waitv":             15760,
	"get_robust_list":         128,
	"getcpu":                  112,
	"getdents":                42496,
	"getdents64":              42496,
	"getegid":                 0,
	"geteuid":                 0,
	"getgid":                  0,
	"getgroups":               262256,
	"getitimer":               112,
	"getpeername":             4864,
	"getpgid":                 0,
	"getpgrp":                 0,
	"getpid":                  0,
	"getppid":                 0,
	"getrandom":               112,
	"getresgid":               112,
	"getresuid":               112,
	"getrlimit":               112,
	"getrusage":               4976,
	"getsid":                  0,
	"getsockname":             4864,
	"gettid":                  0,
	"gettimeofday":            112,
	"getuid":                  0,
	"inotify_init":            384,
	"inotify_init1":           384,
	"inotify_rm_watch":        112,
	"lseek":                   9520,
	"mbind":                   41072,
	"mincore":                 112,
	"move_pages":              4976,
	"nanosleep":               136,
	"pause":                   0,
	"personality":             0,
	"pidfd_getfd":             144,
	"pidfd_open":              232,
	"pidfd_send_signal":       592,
	"pkey_alloc":              0,
	"pkey_free":               0,
	"prlimit64":               240,
	"process_mrelease":        112,
	"process_vm_readv":        37744,
	"process_vm_writev":       37744,
	"rt_sigaction":            2552,
	"rt_sigpending":           112,
	"rt_sigprocmask":          112,
	"rt_sigqueueinfo":         592,
	"rt_sigreturn":            3976,
	"rt_sigsuspend":           112,
	"rt_sigtimedwait":         384,
	"rt_tgsigqueueinfo":       592,
	"sched_get_priority_max":  0,
	"sched_get_priority_min":  0,
	"sched_getaffinity":       112,
	"sched_getattr":           112,
	"sched_getparam":          112,
	"sched_getscheduler":      112,
	"sched_rr_get_interval":   112,
	"sched_setaffinity":       128,
	"sched_setparam":          176,
	"sched_setscheduler":      176,
	"sched_yield":             0,
	"set_mempolicy":           41072,
	"set_mempolicy_home_node": 0,
	"set_robust_list":         0,
	"set_tid_address":         0,
	"setfsgid":                224,
	"setfsuid":                224,
	"setgid":                  224,
	"setitimer":               248,
	"setpgid":                 112,
	"setregid":                224,
	"setresgid":               224,
	"setresuid":               224,
	"setreuid":                224,
	"setrlimit":               128,
	"setsid":                  112,
	"setuid":                  224,
	"shmctl":                  224,
	"sigaltstack":             112,
	"signalfd":                248,
	"signalfd4":               248,
	"statfs":                  624,
	"sync_file_range":         9520,
	"tgkill":                  592,
	"time":                    112,
	"timer_delete":            248,
	"timer_getoverrun":        112,
	"timer_gettime":           112,
	"timerfd_create":          400,
	"timerfd_gettime":         112,
	"times":                   112,
	"tkill":                   592,
	"umask":                   0,
	"ustat":                   240,
}

// bounds is what each call reserves, by its number.
var bounds [512]uint32

// Bound returns what a call reserves. Numbers that are no system calls are message
// calls, which the nucleus carries out in its own memory.
func Bound(nr uint64) int64 {
	if nr >= uint64(len(bounds)) {
		return small
	}
	return int64(bounds[nr])
}

// SetName says which call a number is, before programs run.
func SetName(nr int, name string) { bounds[nr] = boundOf(name) }

func boundOf(name string) uint32 {
	switch name {
	// These give memory back or only wait. They never wait for memory: what they need is in
	// the part of the reserve that is not promised.
	case "close", "close_range", "exit", "exit_group", "munmap", "shmdt", "wait4", "waitid", "futex", "nanosleep",
		"clock_nanosleep", "pause", "rt_sigreturn", "sched_yield", "restart_syscall", "rt_sigsuspend":
		return 0
	// These allocate nothing in the long run (TestAllocated).
	case "read", "write", "pread64", "pwrite64", "lseek", "poll", "ppoll", "select", "pselect6",
		"epoll_wait", "epoll_pwait", "epoll_pwait2", "recvfrom", "sendto", "fstat", "newfstatat", "stat", "lstat", "ioctl":
		return small
	}
	b, ok := static[name]
	switch {
	case !ok:
		return Default
	case b == 0:
		return 0
	}
	return b + points
}
