package procfs

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/epoll"
	"hardtack/kernel/kern"
	"hardtack/kernel/mem"
	"hardtack/kernel/pagecache"
	"hardtack/kernel/pipe"
	"hardtack/kernel/proc"
	"hardtack/kernel/random"
	"hardtack/kernel/tmpfs"
	"hardtack/kernel/vfs"
)

// What the machine's parts know; cmd/kernel sets what it can.
var (
	// CommandLine is /proc/cmdline.
	CommandLine = func() string { return "" }
	// CPUInfo is the text of /proc/cpuinfo; nil gives one with the number of CPUs only.
	CPUInfo func() string
	// Idle returns nanoseconds the CPUs were idle in all since boot.
	Idle = func() int64 { return 0 }
	// Interrupts returns how many interrupts there were.
	Interrupts = func() uint64 { return 0 }
)

// Release is the version of Linux whose interface the kernel has, as uname
// tells it, and Version its build.
var (
	Release = "6.1.0-hardtack"
	Version = "#1 SMP"
)

// bootTime is when the machine started, on the monotonic clock.
var bootTime = kern.Monotonic()

func uptime() int64 { return kern.Monotonic() - bootTime }

// memoryTotal is all memory that programs and files can have, with what the boot
// archive brought.
func memoryTotal() int { return mem.Total() * mem.PageSize }

func file(name, text string) *entry { return &entry{name: name, mode: 0o444, read: fixed(text)} }

func live(name string, text func() string) *entry {
	return &entry{name: name, mode: 0o444, read: func(*about) ([]byte, linux.Errno) { return []byte(text()), 0 }}
}

var systemFiles = []*entry{
	live("meminfo", meminfo),
	live("cpuinfo", cpuinfo),
	live("stat", stat),
	live("uptime", func() string {
		u := uptime()
		i := Idle()
		return fmt.Sprintf("%d.%02d %d.%02d\n", u/1e9, u%1e9/1e7, i/1e9, i%1e9/1e7)
	}),
	live("loadavg", func() string {
		n, threads := running()
		return fmt.Sprintf("%s %d/%d %d\n", loadText(), n, threads, proc.LastPID())
	}),
	live("version", func() string {
		return fmt.Sprintf("Linux version %s (hardtack@hardtack) (%s) %s\n", Release, runtime.Version(), Version)
	}),
	live("filesystems", func() string {
		s := ""
		for _, n := range vfs.FSTypes() {
			if !vfs.OnDevice(n) {
				s += "nodev"
			}
			s += "\t" + n + "\n"
		}
		return s
	}),
	live("cmdline", func() string { return CommandLine() + "\n" }),
	live("devices", devices),
	file("modules", ""),
	file("swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"),
	live("vmstat", func() string {
		return fmt.Sprintf("nr_free_pages %d\npgfault 0\npgmajfault 0\n", mem.Available())
	}),
	{name: "sys", mode: 0o555, kids: []*entry{
		{name: "kernel", mode: 0o555, kids: kernelFiles, find: registeredIn("sys/kernel"), list: listIn("sys/kernel")},
		{name: "vm", mode: 0o555, kids: vmFiles, find: registeredIn("sys/vm"), list: listIn("sys/vm")},
		{name: "fs", mode: 0o555, kids: fsFiles, find: registeredIn("sys/fs"), list: listIn("sys/fs")},
		{name: "net", mode: 0o555, find: registeredIn("sys/net"), list: listIn("sys/net")},
		{name: "user", mode: 0o555, kids: []*entry{file("max_user_namespaces", "0\n")}},
	}},
}

func init() {
	for _, e := range systemFiles {
		if e.name == "sys" {
			e.markSysctls()
		}
	}
}

func (e *entry) markSysctls() {
	e.sysctl = true
	for _, k := range e.kids {
		k.markSysctls()
	}
}

// sysctlAllows is the check at each read and write of a file of /proc/sys: a descriptor
// that root opened gives nobody else its rights. Capabilities do not count.
func (e *entry) sysctlAllows(c *kern.Ctx, want vfs.Access) bool {
	bits := e.mode
	if cred := c.Cred(); cred.EUID == 0 {
		bits >>= 6
	} else if cred.EGID == 0 || slices.Contains(cred.Groups, 0) {
		bits >>= 3
	}
	return uint32(want)&^bits == 0
}

func registeredIn(dir string) func(*about, string) (*entry, *about) {
	return func(_ *about, name string) (*entry, *about) { return findRegistered(&about{n: dir}, name) }
}

func listIn(dir string) func(*about, func(string, *entry, *about) bool) {
	return func(_ *about, emit func(string, *entry, *about) bool) { listRegistered(&about{n: dir}, emit) }
}

// number is a value of /proc/sys that root may change; check may refuse one and
// act on it.
func number(name string, value int64, check func(int64) bool) *entry {
	var mu sync.Mutex
	return &entry{name: name, mode: 0o644,
		read: func(*about) ([]byte, linux.Errno) {
			mu.Lock()
			defer mu.Unlock()
			return fmt.Appendf(nil, "%d\n", value), 0
		},
		write: func(_ *about, b []byte) linux.Errno {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimRight(string(b), "\x00")), 10, 64)
			if err != nil || check != nil && !check(n) {
				return linux.EINVAL
			}
			mu.Lock()
			value = n
			mu.Unlock()
			return 0
		}}
}

// dropCaches frees what is in memory only to be there sooner, as far as nobody uses it:
// bit 0 for pages of files, bit 1 for names and inodes. Bit 2, on Linux, ends its
// messages, of which there are none here.
func dropCaches(_ *about, b []byte) linux.Errno {
	n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimRight(string(b), "\x00")), 10, 64)
	if err != nil || n < 1 || n > 4 {
		return linux.EINVAL
	}
	if n&1 != 0 {
		pagecache.Reclaim(1 << 30)
	}
	if n&2 != 0 {
		mem.Squeeze()
	}
	return 0
}

// setting is a number that the kernel obeys, from 0 to most.
func setting(name string, v *kern.Setting, most int64) *entry {
	return &entry{name: name, mode: 0o644,
		read: func(*about) ([]byte, linux.Errno) { return fmt.Appendf(nil, "%d\n", v.Get()), 0 },
		write: func(_ *about, b []byte) linux.Errno {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimRight(string(b), "\x00")), 10, 64)
			if err != nil || n < 0 || n > most {
				return linux.EINVAL
			}
			v.Set(n)
			return 0
		}}
}

func between(lo, hi int64) func(int64) bool { return func(n int64) bool { return n >= lo && n <= hi } }

var kernelFiles = []*entry{
	file("ostype", "Linux\n"),
	live("osrelease", func() string { return Release + "\n" }),
	live("version", func() string { return Version + "\n" }),
	name("hostname", &nameVar{proc.Hostname, proc.SetHostname}),
	name("domainname", &nameVar{proc.Domainname, proc.SetDomainname}),
	{name: "pid_max", mode: 0o444, read: func(*about) ([]byte, linux.Errno) { return fmt.Appendf(nil, "%d\n", proc.PIDMax), 0 }},
	live("threads-max", func() string { return fmt.Sprintf("%d\n", proc.MaxThreads()) }),
	file("ngroups_max", "65536\n"),
	file("cap_last_cap", "40\n"),
	file("overflowuid", "65534\n"),
	file("overflowgid", "65534\n"),
	file("sched_child_runs_first", "0\n"),
	file("tainted", "0\n"),
	file("core_uses_pid", "0\n"),
	number("panic", 0, nil),
	file("printk", "4\t4\t1\t7\n"),
	number("randomize_va_space", 2, func(n int64) bool {
		if n < 0 || n > 2 {
			return false
		}
		proc.RandomizeVA.Store(int32(n))
		return true
	}),
	setting("dmesg_restrict", &kern.DmesgRestrict, 1),
	number("kptr_restrict", 0, between(0, 2)),
	file("core_pattern", "core\n"),
	number("shmmax", 1<<63-1, nil),
	number("shmall", 1<<52, nil),
	number("shmmni", 4096, nil),
	file("sem", "32000\t1024000000\t500\t32000\n"),
	number("msgmax", 8192, nil),
	number("msgmnb", 16384, nil),
	number("msgmni", 32000, nil),
	{name: "random", mode: 0o555, kids: []*entry{
		live("boot_id", func() string { return bootID() + "\n" }),
		live("uuid", func() string { return newUUID() + "\n" }),
		file("entropy_avail", "256\n"),
		file("poolsize", "256\n"),
	}},
}

var vmFiles = []*entry{
	number("overcommit_memory", 0, between(0, 2)),
	number("overcommit_ratio", 50, between(0, 1000)),
	number("max_map_count", 65530, between(0, 1<<31-1)),
	number("swappiness", 60, between(0, 200)),
	{name: "drop_caches", mode: 0o200, write: dropCaches},
	number("mmap_min_addr", 65536, nil),
	number("min_free_kbytes", 4096, nil),
	number("vfs_cache_pressure", 100, nil),
	number("dirty_ratio", 20, nil),
	number("dirty_background_ratio", 10, nil),
	number("panic_on_oom", 0, between(0, 2)),
	file("nr_hugepages", "0\n"),
}

var fsFiles = []*entry{
	live("file-max", func() string {
		_, most := vfs.Files()
		return fmt.Sprintf("%d\n", most)
	}),
	number("nr_open", vfs.MaxFDs, nil),
	live("file-nr", func() string {
		n, most := vfs.Files()
		return fmt.Sprintf("%d\t0\t%d\n", n, most)
	}),
	file("pipe-max-size", "1048576\n"),
	number("pipe-user-pages-soft", 16384, func(n int64) bool {
		if n >= 0 {
			pipe.UserPagesSoft.Store(n)
		}
		return n >= 0
	}),
	setting("protected_symlinks", &kern.ProtectedSymlinks, 1),
	setting("protected_hardlinks", &kern.ProtectedHardlinks, 1),
	setting("protected_fifos", &kern.ProtectedFifos, 2),
	setting("protected_regular", &kern.ProtectedRegular, 2),
	number("mount-max", 100000, func(n int64) bool {
		if n > 0 {
			kern.MountMax.Set(n)
		}
		return n > 0
	}),
	number("aio-max-nr", 65536, nil),
	{name: "inotify", mode: 0o555, kids: []*entry{
		file("max_queued_events", "16384\n"),
		file("max_user_instances", fmt.Sprintf("%d\n", vfs.MaxInstances)),
		file("max_user_watches", fmt.Sprintf("%d\n", vfs.MaxUserWatches)),
	}},
	{name: "epoll", mode: 0o555, kids: []*entry{
		live("max_user_watches", func() string { return fmt.Sprintf("%d\n", epoll.MaxWatches()) }),
	}},
	{name: "mqueue", mode: 0o555},
}

// nameVar is a name that another package keeps.
type nameVar struct {
	Get func() string
	Set func(string)
}

func name(n string, v *nameVar) *entry {
	return &entry{name: n, mode: 0o644,
		read: func(*about) ([]byte, linux.Errno) {
			return []byte(v.Get() + "\n"), 0
		},
		write: func(_ *about, b []byte) linux.Errno {
			s := strings.TrimRight(string(b), "\n\x00")
			if len(s) > 64 {
				return linux.EINVAL
			}
			v.Set(s)
			return 0
		}}
}

var bootID = sync.OnceValue(newUUID)

func newUUID() string {
	var b [16]byte
	random.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func meminfo() string {
	total, free := memoryTotal()>>10, mem.Available()*4
	shmem := tmpfs.Pages() * 4
	cache := pagecache.Count()
	cached, dirty, writing := int(cache.Pages*4), int(cache.Dirty*4), int(cache.Writing*4)
	slab := int(kernelHeap() >> 10)
	var b strings.Builder
	for _, r := range []struct {
		name string
		kb   int
	}{{"MemTotal", total}, {"MemFree", free}, {"MemAvailable", free + cached - dirty}, {"Buffers", 0}, {"Cached", int(shmem) + cached}, {"SwapCached", 0},
		{"Active", int(shmem)}, {"Inactive", cached}, {"SwapTotal", 0}, {"SwapFree", 0}, {"Dirty", dirty}, {"Writeback", writing},
		{"AnonPages", max(total-free-int(shmem)-cached-slab, 0)}, {"Mapped", 0}, {"Shmem", int(shmem)}, {"Slab", slab}, {"SReclaimable", 0}, {"SUnreclaim", slab},
		{"CommitLimit", total}, {"Committed_AS", max(total-free-cached, 0)}, {"VmallocTotal", 34359738367}, {"VmallocUsed", 0},
		{"HugePages_Total", 0}, {"Hugepagesize", 2048}} {
		if r.name == "HugePages_Total" {
			b.WriteString("HugePages_Total:       0\nHugePages_Free:        0\n")
			continue
		}
		fmt.Fprintf(&b, "%-16s%8d kB\n", r.name+":", r.kb)
	}
	return b.String()
}

// kernelHeap returns the bytes that the kernel's own heap occupies.
func kernelHeap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64() - sample[1].Value.Uint64()
}

func cpuinfo() string {
	if CPUInfo != nil {
		return CPUInfo()
	}
	n, _ := proc.CPUs()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "processor\t: %d\nvendor_id\t: unknown\nmodel name\t: unknown\ncpu cores\t: %d\n\n", i, n)
	}
	return b.String()
}

// running counts threads that want a CPU, and all threads.
func running() (n, threads int) {
	proc.Each(func(p *proc.Process) bool {
		for _, t := range p.Threads() {
			threads++
			if t.State() == proc.StateRunning {
				n++
			}
		}
		return true
	})
	return n, threads
}

func stat() string {
	var user, sys int64
	proc.Each(func(p *proc.Process) bool {
		u, s := p.CPUTime()
		cu, cs := p.ChildrenTime()
		user, sys = user+u+cu, sys+s+cs
		return true
	})
	n, _ := proc.CPUs()
	idle := Idle()
	if idle == 0 {
		idle = max(uptime()*int64(n)-user-sys, 0)
	}
	var b strings.Builder
	line := func(name string, user, sys, idle int64) {
		fmt.Fprintf(&b, "%s %d 0 %d %d 0 0 0 0 0 0\n", name, ticksOf(user), ticksOf(sys), ticksOf(idle))
	}
	line("cpu ", user, sys, idle)
	for i := range n {
		line("cpu"+strconv.Itoa(i), user/int64(n), sys/int64(n), idle/int64(n))
	}
	run, _ := running()
	boot := (kern.RealtimeOffset() + bootTime) / 1e9
	fmt.Fprintf(&b, "intr %d\nctxt 0\nbtime %d\nprocesses %d\nprocs_running %d\nprocs_blocked 0\n", Interrupts(), boot, proc.LastPID(), max(run, 1))
	return b.String()
}

func devices() string {
	type major struct {
		n    uint32
		name string
	}
	var all []major
	vfs.EachMajor(func(n uint32, name string) { all = append(all, major{n, name}) })
	sort.Slice(all, func(i, j int) bool { return all[i].n < all[j].n })
	s := "Character devices:\n"
	for _, m := range all {
		s += fmt.Sprintf("%3d %s\n", m.n, m.name)
	}
	return s + "\nBlock devices:\n"
}
