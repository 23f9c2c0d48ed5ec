package linux

// Flags of clone(2) (include/uapi/linux/sched.h); the low byte is the exit signal.
const (
	CSIGNAL              = 0xff
	CLONE_NEWTIME        = 0x80
	CLONE_VM             = 0x100
	CLONE_FS             = 0x200
	CLONE_FILES          = 0x400
	CLONE_SIGHAND        = 0x800
	CLONE_PIDFD          = 0x1000
	CLONE_PTRACE         = 0x2000
	CLONE_VFORK          = 0x4000
	CLONE_PARENT         = 0x8000
	CLONE_THREAD         = 0x10000
	CLONE_NEWNS          = 0x20000
	CLONE_SYSVSEM        = 0x40000
	CLONE_SETTLS         = 0x80000
	CLONE_PARENT_SETTID  = 0x100000
	CLONE_CHILD_CLEARTID = 0x200000
	CLONE_DETACHED       = 0x400000
	CLONE_UNTRACED       = 0x800000
	CLONE_CHILD_SETTID   = 0x1000000
	CLONE_NEWCGROUP      = 0x2000000
	CLONE_NEWUTS         = 0x4000000
	CLONE_NEWIPC         = 0x8000000
	CLONE_NEWUSER        = 0x10000000
	CLONE_NEWPID         = 0x20000000
	CLONE_NEWNET         = 0x40000000
	CLONE_IO             = 0x80000000
	CLONE_CLEAR_SIGHAND  = 0x100000000
	CLONE_INTO_CGROUP    = 0x200000000
)

// Options of wait4(2) and waitid(2) (include/uapi/linux/wait.h).
const (
	WNOHANG        = 0x1
	WUNTRACED      = 0x2
	WSTOPPED       = WUNTRACED
	WEXITED        = 0x4
	WCONTINUED     = 0x8
	WNOWAIT        = 0x1000000
	WNOTHREAD      = 0x20000000
	WALL           = 0x40000000
	WCLONE         = 0x80000000
	P_ALL          = 0
	P_PID          = 1
	P_PGID         = 2
	P_PIDFD        = 3
	PIDFD_NONBLOCK = O_NONBLOCK
)

// Resources of getrlimit(2) (include/uapi/asm-generic/resource.h).
const (
	RLIMIT_CPU        = 0
	RLIMIT_FSIZE      = 1
	RLIMIT_DATA       = 2
	RLIMIT_STACK      = 3
	RLIMIT_CORE       = 4
	RLIMIT_RSS        = 5
	RLIMIT_NPROC      = 6
	RLIMIT_NOFILE     = 7
	RLIMIT_MEMLOCK    = 8
	RLIMIT_AS         = 9
	RLIMIT_LOCKS      = 10
	RLIMIT_SIGPENDING = 11
	RLIMIT_MSGQUEUE   = 12
	RLIMIT_NICE       = 13
	RLIMIT_RTPRIO     = 14
	RLIMIT_RTTIME     = 15
	RLIM_NLIMITS      = 16

	RLIM_INFINITY = ^uint64(0)
)

// Rlimit is struct rlimit64.
type Rlimit struct{ Cur, Max uint64 }

// Rusage is struct rusage.
type Rusage struct {
	Utime, Stime                                Timeval
	Maxrss, Ixrss, Idrss, Isrss, Minflt, Majflt int64
	Nswap, Inblock, Oublock, Msgsnd, Msgrcv     int64
	Nsignals, Nvcsw, Nivcsw                     int64
}

// Whose resource usage.
const (
	RUSAGE_SELF     = 0
	RUSAGE_CHILDREN = -1
	RUSAGE_THREAD   = 1
)
