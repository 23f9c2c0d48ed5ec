package procfs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/process/proc"
)

func sortNumbers(n []int32) { slices.Sort(n) }

// processDir is /proc/PID; threadDir is /proc/PID/task/TID.
var (
	processDir = &entry{mode: 0o555, fixed: true}
	threadDir  = &entry{mode: 0o555, fixed: true}
)

func fillProcessDirs() {
	common := []*entry{
		{name: "stat", mode: 0o444, read: readStat},
		{name: "status", mode: 0o444, read: readStatus},
		{name: "statm", mode: 0o444, read: readStatm},
		{name: "cmdline", mode: 0o444, sized: true, memory: cmdlineText, public: true},
		{name: "comm", mode: 0o644, read: readComm, write: writeComm},
		{name: "environ", mode: 0o400, sized: true, memory: environText},
		{name: "auxv", mode: 0o400, sized: true, memory: auxvText, stays: true},
		{name: "maps", mode: 0o444, maps: true},
		{name: "smaps", mode: 0o444, maps: true, sizes: true},
		{name: "smaps_rollup", mode: 0o444, rollup: true, read: readRollup},
		{name: "mem", mode: 0o600, mem: true},
		{name: "pagemap", mode: 0o400, mem: true, pages: true},
		{name: "uid_map", mode: 0o644, read: fixed("         0          0 4294967295\n"), write: refuse},
		{name: "gid_map", mode: 0o644, read: fixed("         0          0 4294967295\n"), write: refuse},
		{name: "projid_map", mode: 0o644, read: fixed("         0          0 4294967295\n"), write: refuse},
		{name: "setgroups", mode: 0o644, read: fixed("allow\n"), write: refuse},
		{name: "cpuset", mode: 0o444, read: fixed("/\n")},
		{name: "limits", mode: 0o444, read: readLimits},
		{name: "io", mode: 0o400, read: readIO},
		{name: "exe", mode: 0o777, link: linkOf(exePath), jump: exePath},
		{name: "cwd", mode: 0o777, link: linkOf(cwdPath), jump: cwdPath},
		{name: "root", mode: 0o777, link: linkOf(rootPath), jump: rootPath},
		{name: "fd", mode: 0o500, own: true, find: findFD, list: listFDs(fdLink)},
		{name: "fdinfo", mode: 0o555, inside: true, find: findFDInfo, list: listFDs(fdInfo)},
		{name: "mounts", mode: 0o444, mounts: true, read: readMounts},
		{name: "mountinfo", mode: 0o444, mounts: true, read: readMountinfo},
		{name: "syscall", mode: 0o400, read: readSyscall},
		{name: "oom_score", mode: 0o444, read: readOOMScore},
		{name: "oom_score_adj", mode: 0o644, sized: true, read: readOOMAdj, write: writeOOMAdj},
		{name: "loginuid", mode: 0o644, sized: true, read: readLoginUID, write: writeLoginUID, whole: true},
		{name: "sessionid", mode: 0o444, sized: true, read: readSessionID},
		{name: "oom_adj", mode: 0o644, sized: true, read: readOOMOld, write: writeOOMOld},
		{name: "clear_refs", mode: 0o200, write: writeClearRefs},
		{name: "numa_maps", mode: 0o444, maps: true, numa: true},
		{name: "sched", mode: 0o644, read: readSched, write: writeSched},
		nsDir,
		attrDir,
		{name: "arch_status", mode: 0o444, read: fixed("")},
		{name: "wchan", mode: 0o444, read: fixed("0")},
		{name: "cgroup", mode: 0o444, read: fixed("0::/\n")},
		{name: "personality", mode: 0o400, read: readPersonality},
		{name: "schedstat", mode: 0o444, read: readSchedstat},
		{name: "net", mode: 0o555, find: func(_ *about, name string) (*entry, *about) {
			return findRegistered(&about{n: "net"}, name)
		}, list: func(_ *about, emit func(string, *entry, *about) bool) { listRegistered(&about{n: "net"}, emit) }},
	}
	threadDir.kids = append(slices.Clip(common), &entry{name: "children", mode: 0o444, read: readChildren})
	processDir.kids = append(slices.Clip(common), mapFilesDir,
		&entry{name: "mountstats", mode: 0o400, mounts: true, read: readMountstats},
		&entry{name: "timerslack_ns", mode: 0o666, read: readSlack, write: writeSlack},
		&entry{name: "coredump_filter", mode: 0o644, sized: true, read: readCoreFilter, write: writeCoreFilter},
		&entry{name: "timens_offsets", mode: 0o644, read: readTimeOffsets, write: writeTimeOffsets},
		&entry{name: "timers", mode: 0o444, read: readTimers},
		&entry{name: "task", mode: 0o555, find: findTask, list: listTasks,
			links: func(x *about) uint32 { return 2 + uint32(x.p.CountThreads()) }})
	processDir.links, threadDir.links = linksOf(processDir.kids), linksOf(threadDir.kids)
}

// linksOf counts directories, and two more as st_nlink does.
func linksOf(kids []*entry) func(*about) uint32 {
	n := uint32(2)
	for _, k := range kids {
		if k.kind() == linux.S_IFDIR {
			n++
		}
	}
	return func(*about) uint32 { return n }
}

func fixed(s string) func(*about) ([]byte, linux.Errno) {
	return func(*about) ([]byte, linux.Errno) { return []byte(s), 0 }
}

// thread returns the thread that the file is about: the process's first one where
// none is named, which may have ended.
func (x *about) thread() *proc.Thread {
	if x.t != nil {
		return x.t
	}
	return x.p.First()
}

// mayLook reports whether the asker may see the inside of the process, and
// calls take, if that is not nil, at that same moment.
func (x *about) mayLook(take func(t *proc.Thread)) bool {
	return x.process().Inspect(x.t, x.c, proc.FSCreds, take)
}

func linkOf(path func(*about) (vfs.Path, linux.Errno)) func(*about) (string, linux.Errno) {
	return func(x *about) (string, linux.Errno) {
		p, e := path(x)
		if e != 0 {
			return "", e
		}
		return target(p.Text(x.root()))
	}
}

// target is what a link leads to, which must be shorter than PATH_MAX.
func target(path string) (string, linux.Errno) {
	if len(path) >= linux.PATH_MAX {
		return "", linux.ENAMETOOLONG
	}
	return path, 0
}

// root is the asker's root directory, from which names are shown.
func (x *about) root() vfs.Path {
	if t := proc.Of(x.c); t != nil && t.FS != nil {
		return t.FS.Root()
	}
	return vfs.Path{}
}

func exePath(x *about) (at vfs.Path, e linux.Errno) {
	e = linux.ENOENT
	if !x.mayLook(func(t *proc.Thread) {
		if img := x.process().Image(); t != nil && img != nil && img.File != nil {
			at, e = img.File.Path, 0
		}
	}) {
		e = linux.EACCES
	}
	return at, e
}

func (x *about) dirs() (root, cwd vfs.Path, e linux.Errno) {
	root, cwd, e = x.process().InspectDirs(x.t, x.c, proc.FSCreds)
	switch {
	case e != 0:
		e = linux.EACCES
	case root.Zero():
		e = linux.ENOENT
	}
	return root, cwd, e
}

func cwdPath(x *about) (vfs.Path, linux.Errno) {
	_, cwd, e := x.dirs()
	return cwd, e
}

func rootPath(x *about) (vfs.Path, linux.Errno) {
	root, _, e := x.dirs()
	return root, e
}

// space returns the process's address space to look at, or nil, for sizes.
func (x *about) space() *vm.Space {
	if x.thread().State() >= proc.StateZombie {
		return nil
	}
	return x.process().AcquireSpace()
}

func readPersonality(x *about) ([]byte, linux.Errno) {
	v := uint32(0)
	if !x.mayLook(func(*proc.Thread) { v = x.process().Personality() }) {
		return nil, linux.EPERM
	}
	return fmt.Appendf(nil, "%08x\n", v), 0
}

func (x *about) comm() string {
	if x.t != nil {
		return x.t.Name()
	}
	return x.p.Name()
}

func readComm(x *about) ([]byte, linux.Errno) { return []byte(x.comm() + "\n"), 0 }

func writeComm(x *about, b []byte) linux.Errno {
	t := x.thread()
	if t == nil || x.c.PID != x.process().PID {
		return linux.EINVAL
	}
	name, _, _ := strings.Cut(string(b), "\n")
	t.SetName(strings.TrimRight(name, "\x00"))
	return 0
}

func readOOMScore(x *about) ([]byte, linux.Errno) {
	return fmt.Appendf(nil, "%d\n", x.process().OOMScore()), 0
}

func readOOMAdj(x *about) ([]byte, linux.Errno) {
	return fmt.Appendf(nil, "%d\n", x.process().OOMScoreAdj()), 0
}

func writeOOMAdj(x *about, b []byte) linux.Errno {
	n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimRight(string(b), "\x00")), 10, 32)
	if err != nil || n < -1000 || n > 1000 {
		return linux.EINVAL
	}
	p := x.process()
	return p.SetOOMScoreAdj(int32(n), x.c.Cred().Has(creds.CapSysResource))
}

// readIO tells what calls have moved, and what of it came from disks and goes there.
// Nobody counts what was cut off before it was written.
func readIO(x *about) ([]byte, linux.Errno) {
	if !x.mayLook(nil) {
		return nil, linux.EACCES
	}
	var n proc.IOCount
	if x.t != nil {
		n = x.t.IOCount()
	} else {
		n = x.p.IOCount()
	}
	return fmt.Appendf(nil, "rchar: %d\nwchar: %d\nsyscr: %d\nsyscw: %d\nread_bytes: %d\nwrite_bytes: %d\ncancelled_write_bytes: 0\n",
		n.Read, n.Written, n.Reads, n.Writes, n.Disk.Read, n.Disk.Written), 0
}

// limitRows are the rows of /proc/PID/limits in their order.
var limitRows = []struct {
	n          int
	name, unit string
}{
	{linux.RLIMIT_CPU, "Max cpu time", "seconds"},
	{linux.RLIMIT_FSIZE, "Max file size", "bytes"},
	{linux.RLIMIT_DATA, "Max data size", "bytes"},
	{linux.RLIMIT_STACK, "Max stack size", "bytes"},
	{linux.RLIMIT_CORE, "Max core file size", "bytes"},
	{linux.RLIMIT_RSS, "Max resident set", "bytes"},
	{linux.RLIMIT_NPROC, "Max processes", "processes"},
	{linux.RLIMIT_NOFILE, "Max open files", "files"},
	{linux.RLIMIT_MEMLOCK, "Max locked memory", "bytes"},
	{linux.RLIMIT_AS, "Max address space", "bytes"},
	{linux.RLIMIT_LOCKS, "Max file locks", "locks"},
	{linux.RLIMIT_SIGPENDING, "Max pending signals", "signals"},
	{linux.RLIMIT_MSGQUEUE, "Max msgqueue size", "bytes"},
	{linux.RLIMIT_NICE, "Max nice priority", ""},
	{linux.RLIMIT_RTPRIO, "Max realtime priority", ""},
	{linux.RLIMIT_RTTIME, "Max realtime timeout", "us"},
}

func readLimits(x *about) ([]byte, linux.Errno) {
	show := func(v uint64) string {
		if v == linux.RLIM_INFINITY {
			return "unlimited"
		}
		return strconv.FormatUint(v, 10)
	}
	b := fmt.Appendf(nil, "%-25s %-20s %-20s %-10s\n", "Limit", "Soft Limit", "Hard Limit", "Units")
	for _, r := range limitRows {
		l := x.process().Rlimit(r.n)
		b = fmt.Appendf(b, "%-25s %-20s %-20s %-10s\n", r.name, show(l.Cur), show(l.Max), r.unit)
	}
	return b, 0
}

// Tasks.

func findTask(x *about, name string) (*entry, *about) {
	tid, ok := parseNumber(name)
	if !ok {
		return nil, nil
	}
	t := proc.Task(tid)
	if t == nil || t.Process() != x.p {
		return nil, nil
	}
	return threadDir, &about{p: x.p, t: t}
}

func listTasks(x *about, emit func(string, *entry, *about) bool) {
	var tids []int32
	first := x.p.First()
	if first.State() == proc.StateZombie {
		tids = append(tids, first.TID)
	}
	for _, t := range x.p.Threads() {
		tids = append(tids, t.TID)
	}
	sortNumbers(tids)
	for _, tid := range tids {
		if !emit(itoa(tid), threadDir, nil) {
			return
		}
	}
}
