package procfs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/kern"
	"hardtack/kernel/proc"
	"hardtack/kernel/uio"
	"hardtack/kernel/vfs"
	"hardtack/kernel/vm"
)

func sortNumbers(n []int32) { slices.Sort(n) }

// processDir is /proc/PID; threadDir is /proc/PID/task/TID.
var (
	processDir = &entry{mode: 0o555}
	threadDir  = &entry{mode: 0o555}
)

func init() {
	common := []*entry{
		{name: "stat", mode: 0o444, read: readStat},
		{name: "status", mode: 0o444, read: readStatus},
		{name: "statm", mode: 0o444, read: readStatm},
		{name: "cmdline", mode: 0o444, read: readCmdline},
		{name: "comm", mode: 0o644, read: readComm, write: writeComm},
		{name: "environ", mode: 0o400, read: readEnviron},
		{name: "auxv", mode: 0o400, read: readAuxv},
		{name: "maps", mode: 0o444, read: readMaps},
		{name: "smaps", mode: 0o444, read: readSmaps},
		{name: "limits", mode: 0o444, read: readLimits},
		{name: "io", mode: 0o400, read: readIO},
		{name: "exe", mode: 0o777, link: linkOf(exePath), jump: exePath},
		{name: "cwd", mode: 0o777, link: linkOf(cwdPath), jump: cwdPath},
		{name: "root", mode: 0o777, link: linkOf(rootPath), jump: rootPath},
		{name: "fd", mode: 0o500, find: findFD, list: listFDs(fdLink)},
		{name: "fdinfo", mode: 0o555, find: findFDInfo, list: listFDs(fdInfo)},
		{name: "mounts", mode: 0o444, read: readMounts},
		{name: "mountinfo", mode: 0o444, read: readMountinfo},
		{name: "oom_score", mode: 0o444, read: readOOMScore},
		{name: "oom_score_adj", mode: 0o644, read: readOOMAdj, write: writeOOMAdj},
		{name: "loginuid", mode: 0o644, read: fixed("4294967295"), write: func(*about, []byte) linux.Errno { return linux.EPERM }},
		{name: "sessionid", mode: 0o444, read: fixed("4294967295")},
		{name: "wchan", mode: 0o444, read: fixed("0")},
		{name: "cgroup", mode: 0o444, read: fixed("0::/\n")},
		{name: "personality", mode: 0o400, read: func(x *about) ([]byte, linux.Errno) {
			return fmt.Appendf(nil, "%08x\n", x.process().Personality()), 0
		}},
		{name: "schedstat", mode: 0o444, read: fixed("0 0 0\n")},
		{name: "net", mode: 0o555, find: func(_ *about, name string) (*entry, *about) {
			return findRegistered(&about{n: "net"}, name)
		}, list: func(_ *about, emit func(string, *entry, *about) bool) { listRegistered(&about{n: "net"}, emit) }},
	}
	threadDir.kids = common
	processDir.kids = append(slices.Clip(common), &entry{name: "task", mode: 0o555, find: findTask, list: listTasks})
}

func fixed(s string) func(*about) ([]byte, linux.Errno) {
	return func(*about) ([]byte, linux.Errno) { return []byte(s), 0 }
}

// thread returns the thread that the file is about: one that speaks for the
// process where none is named; nil for a zombie.
func (x *about) thread() *proc.Thread {
	if x.t != nil {
		return x.t
	}
	return x.p.Main()
}

// mayLook decides whether the asker may see the inside of the process (what
// ptrace may do).
func (x *about) mayLook() linux.Errno {
	p := x.process()
	if x.c.PID == p.PID {
		return 0
	}
	cred, other := x.c.Cred(), p.Cred()
	if cred.Has(kern.CapSysPtrace) {
		return 0
	}
	if other != nil && p.Dumpable() != 0 && cred.FSUID == other.UID && cred.FSUID == other.EUID && cred.FSUID == other.SUID &&
		cred.FSGID == other.GID && cred.FSGID == other.EGID && cred.FSGID == other.SGID {
		return 0
	}
	return linux.EACCES
}

func linkOf(path func(*about) (vfs.Path, linux.Errno)) func(*about) (string, linux.Errno) {
	return func(x *about) (string, linux.Errno) {
		p, e := path(x)
		if e != 0 {
			return "", e
		}
		return p.Text(x.root()), 0
	}
}

// root is the asker's root directory, from which names are shown.
func (x *about) root() vfs.Path {
	if t := proc.Of(x.c); t != nil && t.FS != nil {
		return t.FS.Root()
	}
	return vfs.Path{}
}

func exePath(x *about) (vfs.Path, linux.Errno) {
	if e := x.mayLook(); e != 0 {
		return vfs.Path{}, e
	}
	img := x.process().Image()
	if img == nil || img.File == nil || x.process().Zombie() {
		return vfs.Path{}, linux.ENOENT
	}
	return img.File.Path, 0
}

func dirPath(x *about, which func(*vfs.FSContext) vfs.Path) (vfs.Path, linux.Errno) {
	if e := x.mayLook(); e != 0 {
		return vfs.Path{}, e
	}
	t := x.thread()
	if t == nil {
		return vfs.Path{}, linux.ENOENT
	}
	fs := t.AcquireFS()
	if fs == nil {
		return vfs.Path{}, linux.ENOENT
	}
	defer fs.Release()
	return which(fs), 0
}

func cwdPath(x *about) (vfs.Path, linux.Errno) { return dirPath(x, (*vfs.FSContext).Cwd) }

func rootPath(x *about) (vfs.Path, linux.Errno) { return dirPath(x, (*vfs.FSContext).Root) }

// space returns the process's address space with a share, or nil.
func (x *about) space() *vm.Space { return x.process().AcquireSpace() }

// readUserRange copies a range of the process's memory, at most a megabyte.
func (x *about) readUserRange(from, to uint64) []byte {
	s := x.space()
	if s == nil || to <= from {
		return nil
	}
	defer s.Release()
	b := make([]byte, min(to-from, 1<<20))
	n, _ := s.CopyIn(b, uio.Addr(from))
	return b[:n]
}

func readCmdline(x *about) ([]byte, linux.Errno) {
	img := x.process().Image()
	if img == nil {
		return nil, 0
	}
	b := x.readUserRange(img.ArgStart, img.ArgEnd)
	// A program that wrote over its arguments (setproctitle) may have gone on
	// into the environment: the text then ends with the first zero byte.
	if len(b) > 0 && b[len(b)-1] != 0 {
		b = append(b, x.readUserRange(img.EnvStart, img.EnvEnd)...)
		if i := slices.Index(b, 0); i >= 0 {
			b = b[:i]
		}
	}
	return b, 0
}

func readEnviron(x *about) ([]byte, linux.Errno) {
	if e := x.mayLook(); e != 0 {
		return nil, e
	}
	img := x.process().Image()
	if img == nil {
		return nil, 0
	}
	return x.readUserRange(img.EnvStart, img.EnvEnd), 0
}

func readAuxv(x *about) ([]byte, linux.Errno) {
	if e := x.mayLook(); e != 0 {
		return nil, e
	}
	img := x.process().Image()
	if img == nil {
		return nil, 0
	}
	var b []byte
	for _, v := range img.Auxv() {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b, 0
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
	score := 0
	if s := x.space(); s != nil {
		total := max(memoryTotal(), 1)
		score = int(s.RSS()*1000/int64(total)) + int(x.process().OOMScoreAdj())
		s.Release()
	}
	return fmt.Appendf(nil, "%d\n", max(score, 0)), 0
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
	if int32(n) < p.OOMScoreAdj() && !x.c.Cred().Has(kern.CapSysResource) {
		return linux.EACCES
	}
	p.SetOOMScoreAdj(int32(n))
	return 0
}

func readIO(x *about) ([]byte, linux.Errno) {
	if e := x.mayLook(); e != 0 {
		return nil, e
	}
	return []byte("rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: 0\nwrite_bytes: 0\ncancelled_write_bytes: 0\n"), 0
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
	t := proc.ByTID(tid)
	if t == nil || t.Process() != x.p {
		return nil, nil
	}
	return threadDir, &about{p: x.p, t: t}
}

func listTasks(x *about, emit func(string, *entry, *about) bool) {
	var tids []int32
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

// Descriptors.

var (
	fdLink = &entry{mode: 0o700, link: fdText, jump: fdPath}
	fdInfo = &entry{mode: 0o444, read: readFDInfo}
)

// withFile hands the open file that x is about to do.
func (x *about) withFile(do func(t *vfs.FDTable, f *vfs.File)) linux.Errno {
	if e := x.mayLook(); e != 0 {
		return e
	}
	th := x.thread()
	if th == nil {
		return linux.ENOENT
	}
	table := th.AcquireFDs()
	if table == nil {
		return linux.ENOENT
	}
	defer table.Release(x.c)
	f := table.Get(x.fd)
	if f == nil {
		return linux.ENOENT
	}
	defer f.Put()
	do(table, f)
	return 0
}

func (x *about) hasFD() bool {
	return x.withFile(func(*vfs.FDTable, *vfs.File) {}) == 0
}

func findFDEntry(x *about, name string, e *entry) (*entry, *about) {
	fd, ok := parseNumber(name)
	if !ok {
		return nil, nil
	}
	y := *x
	y.fd = fd
	if !y.hasFD() {
		return nil, nil
	}
	return e, &y
}

func findFD(x *about, name string) (*entry, *about) { return findFDEntry(x, name, fdLink) }

func findFDInfo(x *about, name string) (*entry, *about) { return findFDEntry(x, name, fdInfo) }

func listFDs(e *entry) func(*about, func(string, *entry, *about) bool) {
	return func(x *about, emit func(string, *entry, *about) bool) {
		if x.mayLook() != 0 {
			return
		}
		th := x.thread()
		if th == nil {
			return
		}
		table := th.AcquireFDs()
		if table == nil {
			return
		}
		defer table.Release(x.c)
		table.Each(func(fd int32, _ *vfs.File) bool { return emit(itoa(fd), e, nil) })
	}
}

func fdText(x *about) (text string, e linux.Errno) {
	root := x.root()
	e = x.withFile(func(_ *vfs.FDTable, f *vfs.File) { text = f.NameOf(root) })
	return text, e
}

func fdPath(x *about) (p vfs.Path, e linux.Errno) {
	e = x.withFile(func(_ *vfs.FDTable, f *vfs.File) { p = f.PathOf() })
	return p, e
}

func readFDInfo(x *about) (b []byte, e linux.Errno) {
	e = x.withFile(func(t *vfs.FDTable, f *vfs.File) {
		pos := int64(0)
		if f.PosMu.TryLock() { // it may be this file that is being read
			pos = f.Pos
			f.PosMu.Unlock()
		}
		flags := f.Flags()
		if on, _ := t.CloseOnExec(x.fd); on {
			flags |= linux.O_CLOEXEC
		}
		mnt := int32(15)
		ino := uint64(0)
		if !f.Path.Zero() {
			ino = f.Path.Inode().Ino
			if f.Path.Mnt != nil {
				mnt = f.Path.Mnt.ID
			}
		}
		w := bytes.NewBuffer(fmt.Appendf(nil, "pos:\t%d\nflags:\t0%o\nmnt_id:\t%d\nino:\t%d\n", pos, flags, mnt, ino))
		if i, ok := f.Ops.(vfs.Informer); ok {
			i.FDInfo(f, w)
		}
		b = w.Bytes()
	})
	return b, e
}
