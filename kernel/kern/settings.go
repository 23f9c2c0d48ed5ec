package kern

import "sync/atomic"

// Setting is a number under /proc/sys that the kernel obeys.
type Setting struct{ value atomic.Int64 }

// Get returns the value in force.
func (s *Setting) Get() int64 { return s.value.Load() }

// Set replaces it.
func (s *Setting) Set(v int64) { s.value.Store(v) }

// The settings that keep users apart, with the defaults of Debian.
var (
	DmesgRestrict      Setting // kernel.dmesg_restrict
	ProtectedHardlinks Setting // fs.protected_hardlinks
	ProtectedSymlinks  Setting // fs.protected_symlinks
	ProtectedFifos     Setting // fs.protected_fifos
	ProtectedRegular   Setting // fs.protected_regular
	SuidDumpable       Setting // fs.suid_dumpable
	RandomizeVA        Setting // kernel.randomize_va_space
	MmapMinAddr        Setting // vm.mmap_min_addr

	// A panic on the way of a system call ends the machine if PanicOnOops is set, or
	// when there were OopsLimit of them: each may have left references behind that
	// nobody gives back.
	PanicOnOops Setting // kernel.panic_on_oops
	OopsLimit   Setting // kernel.oops_limit
)

// Bounds of what programs may have.
var (
	NrOpen           Setting // fs.nr_open
	MountMax         Setting // fs.mount-max
	PipeMaxSize      Setting // fs.pipe-max-size
	PipePagesSoft    Setting // fs.pipe-user-pages-soft
	PipePagesHard    Setting // fs.pipe-user-pages-hard; 0: none
	InotifyQueue     Setting // fs.inotify.max_queued_events
	InotifyInstances Setting // fs.inotify.max_user_instances
	InotifyWatches   Setting // fs.inotify.max_user_watches
	MaxMapCount      Setting // vm.max_map_count
	PtyMax           Setting // kernel.pty.max

	MsgMax, MsgMnb, MsgMni         Setting // kernel.msg*
	LeasesEnable, LeaseBreakTime   Setting // fs.leases-enable, fs.lease-break-time (seconds)
	DirNotifyEnable                Setting // fs.dir-notify-enable
	SemMsl, SemMns, SemOpm, SemMni Setting // kernel.sem
	ShmMax, ShmAll, ShmMni         Setting // kernel.shm*; the first two unsigned
)

// Memory.
var (
	OvercommitMemory Setting // vm.overcommit_memory
	OvercommitRatio  Setting // vm.overcommit_ratio
	OvercommitKbytes Setting // vm.overcommit_kbytes
	UserReserve      Setting // vm.user_reserve_kbytes
	OOMKillAllocator Setting // vm.oom_kill_allocating_task
	DirtyExpire      Setting // vm.dirty_expire_centisecs
	DirtyWriteback   Setting // vm.dirty_writeback_centisecs
)

// Sockets.
var (
	Somaxconn                Setting // net.core.somaxconn
	RmemDefault, RmemMax     Setting // net.core.rmem_*
	WmemDefault, WmemMax     Setting // net.core.wmem_*
	OptmemMax                Setting // net.core.optmem_max
	UnixDgramQlen            Setting // net.unix.max_dgram_qlen
	BindV6Only               Setting // net.ipv6.bindv6only
	UnprivilegedPorts        Setting // net.ipv4.ip_unprivileged_port_start
	KeepTime, KeepInterval   Setting // net.ipv4.tcp_keepalive_*, seconds
	KeepProbes               Setting // net.ipv4.tcp_keepalive_probes
	PingGroupLo, PingGroupHi Setting // net.ipv4.ping_group_range
	DefaultTTL               Setting // net.ipv4.ip_default_ttl
	FinTimeout               Setting // net.ipv4.tcp_fin_timeout, seconds
	SynRetries               Setting // net.ipv4.tcp_syn_retries
)

func init() {
	for _, x := range []struct {
		s *Setting
		v int64
	}{
		{&DmesgRestrict, 1}, {&ProtectedHardlinks, 1}, {&ProtectedSymlinks, 1}, {&ProtectedFifos, 1}, {&ProtectedRegular, 2},
		{&RandomizeVA, 2}, {&MmapMinAddr, 65536}, {&OopsLimit, 10000},
		{&NrOpen, 1 << 20}, {&MountMax, 100000}, {&PipeMaxSize, 1 << 20}, {&PipePagesSoft, 16384},
		{&InotifyQueue, 16384}, {&InotifyInstances, 128}, {&InotifyWatches, 65536}, {&MaxMapCount, 65530}, {&PtyMax, 4096},
		{&LeasesEnable, 1}, {&LeaseBreakTime, 45}, {&DirNotifyEnable, 1}, {&MsgMax, 8192}, {&MsgMnb, 16384}, {&MsgMni, 32000}, {&SemMsl, 32000}, {&SemMns, 32000 * 32000}, {&SemOpm, 500}, {&SemMni, 32000},
		{&ShmMax, -1 - 1<<24}, {&ShmAll, -1 - 1<<24}, {&ShmMni, 4096},
		{&OvercommitRatio, 50}, {&UserReserve, 131072}, {&DirtyExpire, 3000}, {&DirtyWriteback, 500},
		{&Somaxconn, 4096}, {&RmemDefault, 212992}, {&RmemMax, 212992}, {&WmemDefault, 212992}, {&WmemMax, 212992},
		{&OptmemMax, 20480}, {&UnixDgramQlen, 10}, {&UnprivilegedPorts, 1024},
		{&KeepTime, 7200}, {&KeepInterval, 75}, {&KeepProbes, 9}, {&PingGroupLo, 1}, {&PingGroupHi, 0}, {&DefaultTTL, 64},
		{&FinTimeout, 60}, {&SynRetries, 6},
	} {
		x.s.Set(x.v)
	}
}
