package procfs

import (
	"fmt"
	"runtime"
	"sort"
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/hook"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// What the machine's parts know.
var (
	// CommandLine is /proc/cmdline.
	CommandLine = hook.Default(func() string { return "" })
	// CPUInfo is the text of /proc/cpuinfo; nil gives one with the number of CPUs only.
	CPUInfo hook.Of[func() string]
	// Interrupts returns how many interrupts there were.
	Interrupts = hook.Default(func() uint64 { return 0 })
	// DiskSectors returns the sectors that all disks have read and written.
	DiskSectors = hook.Default(func() (read, written uint64) { return 0, 0 })
	// DiskWait returns for how long, in nanoseconds, somebody waited for a disk, and
	// how many do now.
	DiskWait = hook.Default(func() (nanos int64, n int) { return 0, 0 })
)

// Release is the version of Linux whose interface the kernel has, as uname
// tells it, and Version its build.
var (
	Release = "6.1.0-hardtack"
	Version = "#1 SMP"
)

// bootTime is when the machine started, on the monotonic clock.
var bootTime = clocks.Monotonic()

func uptime() int64 { return clocks.Monotonic() - bootTime }

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
		i := idle()
		return fmt.Sprintf("%d.%02d %d.%02d\n", u/1e9, u%1e9/1e7, i/1e9, i%1e9/1e7)
	}),
	live("loadavg", loadavg),
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
	live("cmdline", func() string { return CommandLine.Call() + "\n" }),
	live("devices", devices),
	live("interrupts", interrupts),
	live("locks", locks),
	{name: "iomem", mode: 0o444, read: iomem},
	live("consoles", func() string { return "ttyS0                -W- (EC p  )    4:64\n" }),
	live("misc", func() string { return "" }),
	file("cgroups", "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"), // there are no controllers
	ttyDir,
	{name: "sysvipc", mode: 0o555, kids: []*entry{live("msg", sysvMsg), live("sem", sysvSem), live("shm", sysvShm)}},
	live("buddyinfo", buddyinfo),
	live("zoneinfo", zoneinfo),
	live("softirqs", softirqs),
	live("schedstat", schedstat),
	file("execdomains", "0-0\tLinux           \t[kernel]\n"),
	{name: "slabinfo", mode: 0o400, read: slabinfo},
	{name: "vmallocinfo", mode: 0o400, read: fixed("")},
	pressureDir,
	file("modules", ""),
	file("swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"),
	live("vmstat", vmstat),
	sysDir,
}

func cpuinfo() string {
	if CPUInfo.Call != nil {
		return CPUInfo.Call()
	}
	n, _ := proc.CPUs.Call()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "processor\t: %d\nvendor_id\t: unknown\nmodel name\t: unknown\ncpu cores\t: %d\n\n", i, n)
	}
	return b.String()
}

func stat() string {
	run := proc.Running()
	_, blocked := DiskWait.Call()
	boot := (clocks.RealtimeOffset() + bootTime) / 1e9
	return cpuLines() + fmt.Sprintf("intr %d\nctxt %d\nbtime %d\nprocesses %d\nprocs_running %d\nprocs_blocked %d\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n", Interrupts.Call(), proc.TotalSwitches(), boot, proc.LastPID(), max(run, 1), blocked)
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
