// Package settings holds the numbers in /proc/sys that the kernel obeys.
package settings

import "sync/atomic"

// Setting is a number under /proc/sys that the kernel obeys.
type Setting struct {
	value int64 // atomic; not an atomic.Int64, which has no literals for Default
}

// Default makes a setting that has a value from the start.
func Default(v int64) Setting { return Setting{value: v} }

// Get returns the value in force.
func (s *Setting) Get() int64 { return atomic.LoadInt64(&s.value) }

// Set replaces it.
func (s *Setting) Set(v int64) { atomic.StoreInt64(&s.value, v) }

// The settings that keep users apart, with the defaults of Debian.
var (
	DmesgRestrict      = Default(1)     // kernel.dmesg_restrict
	ProtectedHardlinks = Default(1)     // fs.protected_hardlinks
	ProtectedSymlinks  = Default(1)     // fs.protected_symlinks
	ProtectedFifos     = Default(1)     // fs.protected_fifos
	ProtectedRegular   = Default(2)     // fs.protected_regular
	SuidDumpable       Setting          // fs.suid_dumpable
	RandomizeVA        = Default(2)     // kernel.randomize_va_space
	MmapMinAddr        = Default(65536) // vm.mmap_min_addr

	// A panic on the way of a system call ends the machine if PanicOnOops is set, or
	// when there were OopsLimit of them: each may have left references behind that
	// nobody gives back.
	PanicOnOops Setting          // kernel.panic_on_oops
	OopsLimit   = Default(10000) // kernel.oops_limit
)

// Bounds of what programs may have.
var (
	NrOpen           = Default(1 << 20) // fs.nr_open
	MountMax         = Default(100000)  // fs.mount-max
	PipeMaxSize      = Default(1 << 20) // fs.pipe-max-size
	PipePagesSoft    = Default(16384)   // fs.pipe-user-pages-soft
	PipePagesHard    Setting            // fs.pipe-user-pages-hard; 0: none
	InotifyQueue     = Default(16384)   // fs.inotify.max_queued_events
	InotifyInstances = Default(128)     // fs.inotify.max_user_instances
	InotifyWatches   = Default(65536)   // fs.inotify.max_user_watches
	MaxMapCount      = Default(65530)   // vm.max_map_count
	PtyMax           = Default(4096)    // kernel.pty.max

	MsgMax          = Default(8192)          // kernel.msgmax
	MsgMnb          = Default(16384)         // kernel.msgmnb
	MsgMni          = Default(32000)         // kernel.msgmni
	LeasesEnable    = Default(1)             // fs.leases-enable
	LeaseBreakTime  = Default(45)            // fs.lease-break-time, seconds
	DirNotifyEnable = Default(1)             // fs.dir-notify-enable
	SemMsl          = Default(32000)         // kernel.sem
	SemMns          = Default(32000 * 32000) // kernel.sem
	SemOpm          = Default(500)           // kernel.sem
	SemMni          = Default(32000)         // kernel.sem
	ShmMax          = Default(-1 - 1<<24)    // kernel.shmmax, unsigned
	ShmAll          = Default(-1 - 1<<24)    // kernel.shmall, unsigned
	ShmMni          = Default(4096)          // kernel.shmmni
)

// Memory.
var (
	OvercommitMemory Setting           // vm.overcommit_memory
	OvercommitRatio  = Default(50)     // vm.overcommit_ratio
	OvercommitKbytes Setting           // vm.overcommit_kbytes
	UserReserve      = Default(131072) // vm.user_reserve_kbytes
	OOMKillAllocator Setting           // vm.oom_kill_allocating_task
	DirtyExpire      = Default(3000)   // vm.dirty_expire_centisecs
	DirtyWriteback   = Default(500)    // vm.dirty_writeback_centisecs
)

// Sockets.
var (
	Somaxconn                = Default(4096)                    // net.core.somaxconn
	RmemDefault, RmemMax     = Default(212992), Default(212992) // net.core.rmem_*
	WmemDefault, WmemMax     = Default(212992), Default(212992) // net.core.wmem_*
	OptmemMax                = Default(20480)                   // net.core.optmem_max
	UnixDgramQlen            = Default(10)                      // net.unix.max_dgram_qlen
	BindV6Only               Setting                            // net.ipv6.bindv6only
	UnprivilegedPorts        = Default(1024)                    // net.ipv4.ip_unprivileged_port_start
	KeepTime, KeepInterval   = Default(7200), Default(75)       // net.ipv4.tcp_keepalive_*, seconds
	KeepProbes               = Default(9)                       // net.ipv4.tcp_keepalive_probes
	PingGroupLo, PingGroupHi = Default(1), Default(0)           // net.ipv4.ping_group_range
	DefaultTTL               = Default(64)                      // net.ipv4.ip_default_ttl
	FinTimeout               = Default(60)                      // net.ipv4.tcp_fin_timeout, seconds
	SynRetries               = Default(6)                       // net.ipv4.tcp_syn_retries
)
