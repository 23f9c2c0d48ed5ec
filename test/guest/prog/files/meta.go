package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"hardtack/test/guest/gt"

	"golang.org/x/sys/unix"
)

func stat(t *gt.T) {
	create(t, "f", "hello")
	t.Require("mkfifo", unix.Mkfifo("fifo", 0o622))
	t.Require("mkdir", unix.Mkdir("d", 0o750))
	t.Require("symlink", unix.Symlink("target", "l"))
	for _, name := range []string{"f", "fifo", "d", "l", "/dev/null", "/proc/self"} {
		var st unix.Stat_t
		err := unix.Lstat(name, &st)
		t.Say("%s: type and mode %o, %s", name, st.Mode, gt.Name(err))
	}
	var st unix.Stat_t
	unix.Stat("f", &st)
	t.Say("size %d, blksize %d, blocks %d", st.Size, st.Blksize, st.Blocks)
	unix.Stat("/dev/null", &st)
	t.Say("null is %d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev))
	unix.Stat("/dev/tty", &st)
	t.Say("tty is %d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev))
	var sx unix.Statx_t
	t.Err("statx", unix.Statx(unix.AT_FDCWD, "f", 0, unix.STATX_BASIC_STATS, &sx))
	t.Say("mode %o size %d links %d, basic mask %v", sx.Mode, sx.Size, sx.Nlink, sx.Mask&unix.STATX_BASIC_STATS == unix.STATX_BASIC_STATS)
	t.Err("statx nofollow", unix.Statx(unix.AT_FDCWD, "l", unix.AT_SYMLINK_NOFOLLOW, unix.STATX_TYPE, &sx))
	t.Err("statx, follow dangling", unix.Statx(unix.AT_FDCWD, "l", 0, unix.STATX_TYPE, &sx))
	t.Err("statx, bad flag", unix.Statx(unix.AT_FDCWD, "f", 1, unix.STATX_TYPE, &sx))
	t.Err("statx, reserved mask", unix.Statx(unix.AT_FDCWD, "f", 0, 1<<31, &sx))
	var sf unix.Statfs_t
	t.Err("statfs", unix.Statfs(".", &sf))
	t.Say("type %#x namelen %d bsize %d", sf.Type, sf.Namelen, sf.Bsize)
	t.Err("statfs /proc", unix.Statfs("/proc", &sf))
	t.Say("type %#x", sf.Type)
	t.Err("statfs missing", unix.Statfs("none", &sf))
	t.Err("access r", unix.Access("f", unix.R_OK))
	t.Err("access bad mode", unix.Access("f", 8))
}

func times(t *gt.T) {
	create(t, "f", "x")
	get := func(what string) {
		var st unix.Stat_t
		unix.Lstat("f", &st)
		t.Say("%s: atime %d.%09d mtime %d.%09d", what, st.Atim.Sec, st.Atim.Nsec, st.Mtim.Sec, st.Mtim.Nsec)
	}
	set := func(a, m unix.Timespec) error {
		return unix.UtimesNanoAt(unix.AT_FDCWD, "f", []unix.Timespec{a, m}, 0)
	}
	t.Err("utimensat", set(unix.Timespec{Sec: 1000, Nsec: 5}, unix.Timespec{Sec: 2000, Nsec: 999999999}))
	get("set")
	t.Err("omit", set(unix.Timespec{Nsec: unix.UTIME_OMIT}, unix.Timespec{Sec: 3000}))
	get("omit")
	t.Err("bad nanoseconds", set(unix.Timespec{Nsec: 1000000000}, unix.Timespec{}))
	t.Err("before 1970", set(unix.Timespec{Sec: -5}, unix.Timespec{Sec: -6}))
	get("before 1970")
	t.Err("missing", unix.UtimesNanoAt(unix.AT_FDCWD, "none", []unix.Timespec{{}, {}}, 0))
	before := time.Now().Add(-time.Second)
	t.Err("now", set(unix.Timespec{Nsec: unix.UTIME_NOW}, unix.Timespec{Nsec: unix.UTIME_NOW}))
	recent := func(what string, ts unix.Timespec) {
		at := time.Unix(ts.Sec, ts.Nsec)
		t.Say("%s is now: %v", what, at.After(before) && at.Before(time.Now().Add(time.Second)))
	}
	var st unix.Stat_t
	unix.Stat("f", &st)
	recent("atime", st.Atim)
	recent("mtime", st.Mtim)
	recent("ctime", st.Ctim)
	changed := func(what string, do func()) {
		set(unix.Timespec{Sec: 1}, unix.Timespec{Sec: 1})
		var a, b unix.Stat_t
		unix.Stat("f", &a)
		time.Sleep(20 * time.Millisecond)
		do()
		unix.Stat("f", &b)
		t.Say("%s changes mtime %v, ctime %v", what, a.Mtim != b.Mtim, a.Ctim != b.Ctim)
	}
	fd := open(t, "f", unix.O_RDWR)
	changed("write", func() { unix.Write(fd, []byte("y")) })
	changed("truncate", func() { unix.Ftruncate(fd, 10) })
	changed("chmod", func() { unix.Fchmod(fd, 0o600) })
	changed("link", func() { unix.Link("f", "g") })
	changed("read", func() { unix.Pread(fd, make([]byte, 1), 0) })
	unix.Close(fd)
	t.Require("mkdir", unix.Mkdir("d", 0o755))
	var a, b unix.Stat_t
	unix.Stat("d", &a)
	time.Sleep(20 * time.Millisecond)
	create(t, "d/x", "")
	unix.Stat("d", &b)
	t.Say("a new entry changes the directory's mtime: %v", a.Mtim != b.Mtim)
}

func modes(t *gt.T) {
	mode := func(name string) {
		var st unix.Stat_t
		err := unix.Stat(name, &st)
		t.Say("%s %o %s", name, st.Mode&0o7777, gt.Name(err))
	}
	old := unix.Umask(0o027)
	t.Say("umask was %o", old)
	fd := open(t, "f", unix.O_CREAT|unix.O_RDWR)
	mode("f")
	unix.Close(fd)
	unix.Mkdir("d", 0o777)
	mode("d")
	unix.Mkfifo("p", 0o666)
	mode("p")
	t.Say("umask was %o", unix.Umask(0o1077))
	t.Say("umask was %o", unix.Umask(0o022))
	for _, m := range []uint32{0, 0o644, 0o4755, 0o2755, 0o1777, 0o7777} {
		t.Err(fmt.Sprintf("chmod %o", m), unix.Chmod("f", m))
		mode("f")
	}
	t.Err("chmod missing", unix.Chmod("none", 0o600))
	t.Err("mkdir 2755", unix.Mkdir("g", 0o2755))
	mode("g")
	fd = open(t, "f", unix.O_RDWR)
	t.Err("fchmod", unix.Fchmod(fd, 0o640))
	mode("f")
	unix.Close(fd)
	if unix.Geteuid() != 0 {
		return
	}
	owner := func(name string) {
		var st unix.Stat_t
		unix.Lstat(name, &st)
		t.Say("%s belongs to %d:%d mode %o", name, st.Uid, st.Gid, st.Mode&0o7777)
	}
	unix.Chmod("f", 0o6755)
	t.Err("chown", unix.Chown("f", 1000, 1001))
	owner("f")
	t.Err("chown group only", unix.Chown("f", -1, 7))
	owner("f")
	unix.Symlink("f", "l")
	t.Err("lchown", unix.Lchown("l", 5, 6))
	owner("l")
	owner("f")
	unix.Chown("g", 0, 55)
	unix.Chmod("g", 0o2755)
	create(t, "g/x", "")
	owner("g/x")
	unix.Mkdir("g/y", 0o755)
	owner("g/y")
}

// identityChild drops to user and group 1000 and tries what root prepared.
func identityChild([]string) {
	t := &gt.T{}
	t.Err("setgroups", syscall.Setgroups([]int{2000}))
	t.Err("setgid", syscall.Setgid(1000))
	t.Err("setuid", syscall.Setuid(1000))
	t.Say("now %d %d %d %d", unix.Getuid(), unix.Geteuid(), unix.Getgid(), unix.Getegid())
	t.Err("setuid(0)", syscall.Setuid(0))
	for _, name := range []string{"r0", "w0", "x0", "own", "group", "supp", "closed/f", "noexec/f", "sticky/f", "sticky/mine"} {
		_, err := os.ReadFile(name)
		t.Err("read "+name, err)
		fd, err := unix.Open(name, unix.O_WRONLY, 0)
		t.Err("write "+name, err)
		unix.Close(fd)
		t.Err("access x "+name, unix.Access(name, unix.X_OK))
	}
	t.Err("create in root's directory", os.WriteFile("new", nil, 0o644))
	t.Err("unlink in root's directory", unix.Unlink("own"))
	t.Err("chmod root's file", unix.Chmod("r0", 0o777))
	t.Err("chmod own file", unix.Chmod("own", 0o4711))
	t.Err("chown own file away", unix.Chown("own", 0, -1))
	t.Err("chown own file to a foreign group", unix.Chown("own", -1, 5))
	t.Err("chown own file to own group", unix.Chown("own", -1, 2000))
	t.Err("utimes of root's file", unix.UtimesNanoAt(unix.AT_FDCWD, "r0", []unix.Timespec{{}, {}}, 0))
	t.Err("unlink another's in a sticky directory", unix.Unlink("sticky/f"))
	t.Err("rename another's in a sticky directory", unix.Rename("sticky/f", "sticky/g"))
	t.Err("unlink own in a sticky directory", unix.Unlink("sticky/mine"))
	t.Err("create in a sticky directory", os.WriteFile("sticky/new", nil, 0o644))
	t.Err("list an unreadable directory", func() error { _, err := os.ReadDir("closed"); return err }())
	t.Err("mknod", unix.Mknod("sticky/null", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	t.Err("kill init", unix.Kill(1, 0))
	t.Err("chroot", unix.Chroot("."))
	t.Err("mount", unix.Mount("x", "sticky", "tmpfs", 0, ""))
	t.Err("sethostname", unix.Sethostname([]byte("x")))
	t.Err("setrlimit above the hard limit", unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1 << 30, Max: 1 << 31}))
}

func permissions(t *gt.T) {
	if unix.Geteuid() != 0 {
		t.Say("needs root")
		return
	}
	make := func(name string, mode uint32, uid, gid int) {
		create(t, name, name)
		t.Require("chown", unix.Chown(name, uid, gid))
		t.Require("chmod", unix.Chmod(name, mode))
	}
	dir := func(name string, mode uint32) {
		t.Require("mkdir", unix.Mkdir(name, 0o755))
		t.Require("chmod", unix.Chmod(name, mode))
	}
	dir("closed", 0o711)
	dir("noexec", 0o766)
	dir("sticky", 0o1777)
	make("r0", 0o600, 0, 0)
	make("w0", 0o622, 0, 0)
	make("x0", 0o611, 0, 0)
	make("own", 0o077, 1000, 0)
	make("group", 0o706, 0, 1000)
	make("supp", 0o660, 0, 2000)
	make("closed/f", 0o666, 0, 0)
	make("noexec/f", 0o666, 0, 0)
	make("sticky/f", 0o666, 0, 0)
	make("sticky/mine", 0o600, 1000, 1000)
	for _, p := range []string{"r0", "own", "x0"} {
		t.Err("root reads "+p, func() error { _, err := os.ReadFile(p); return err }())
		t.Err("root executes "+p, unix.Access(p, unix.X_OK))
	}
	arg := gt.Self("identity")
	cmd := exec.Command(arg[0], arg[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	t.Err("child", cmd.Run())
}

// lockerChild tries locks on the file of its argument and reports each.
func lockerChild(args []string) {
	t := &gt.T{}
	fd := open(t, args[0], unix.O_RDWR)
	for _, what := range args[1:] {
		switch what {
		case "ex":
			t.Err("child flock exclusive", unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB))
		case "sh":
			t.Err("child flock shared", unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB))
		default:
			var start, length int64
			var kind string
			fmt.Sscanf(what, "%1s%d+%d", &kind, &start, &length)
			lk := unix.Flock_t{Type: unix.F_WRLCK, Start: start, Len: length}
			if kind == "r" {
				lk.Type = unix.F_RDLCK
			}
			if kind == "g" {
				err := unix.FcntlFlock(uintptr(fd), unix.F_GETLK, &lk)
				t.Say("child getlk: type %d %d+%d by the parent %v %s", lk.Type, lk.Start, lk.Len, int(lk.Pid) == os.Getppid(), gt.Name(err))
				continue
			}
			t.Err("child lock "+what, unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &lk))
		}
	}
}

func child(t *gt.T, args ...string) {
	arg := gt.Self("locker", args...)
	cmd := exec.Command(arg[0], arg[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	t.Require("child", cmd.Run())
}

func flock(t *gt.T) {
	create(t, "f", "")
	a, b := open(t, "f", unix.O_RDWR), open(t, "f", unix.O_RDWR)
	t.Err("a shared", unix.Flock(a, unix.LOCK_SH|unix.LOCK_NB))
	t.Err("b shared", unix.Flock(b, unix.LOCK_SH|unix.LOCK_NB))
	t.Err("b exclusive", unix.Flock(b, unix.LOCK_EX|unix.LOCK_NB))
	child(t, "f", "sh", "ex")
	t.Err("b unlock", unix.Flock(b, unix.LOCK_UN))
	t.Err("a exclusive", unix.Flock(a, unix.LOCK_EX|unix.LOCK_NB))
	child(t, "f", "sh")
	dup, _ := unix.Dup(a)
	unix.Close(a)
	t.Err("b while a dup lives", unix.Flock(b, unix.LOCK_SH|unix.LOCK_NB))
	unix.Close(dup)
	t.Err("b after the last close", unix.Flock(b, unix.LOCK_EX|unix.LOCK_NB))
	t.Err("bad operation", unix.Flock(b, 77))
	c := open(t, "f", unix.O_RDWR)
	done := make(chan error)
	go func() { done <- unix.Flock(c, unix.LOCK_EX) }()
	select {
	case <-done:
		t.Say("c did not wait")
	case <-time.After(50 * time.Millisecond):
		t.Say("c waits")
	}
	unix.Flock(b, unix.LOCK_UN)
	t.Err("c", <-done)
	unix.Close(b)
	unix.Close(c)
}

func recordLocks(t *gt.T) {
	create(t, "f", strings.Repeat("x", 100))
	fd := open(t, "f", unix.O_RDWR)
	lock := func(kind int16, start, length int64) {
		lk := unix.Flock_t{Type: kind, Start: start, Len: length}
		t.Err(fmt.Sprintf("lock type %d %d+%d", kind, start, length), unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &lk))
	}
	lock(unix.F_WRLCK, 10, 20)
	child(t, "f", "w10+1", "w0+10", "w29+1", "w30+5", "r5+10", "g0+0")
	lock(unix.F_UNLCK, 15, 5)
	child(t, "f", "w15+5", "w14+2", "w19+2", "g0+0", "g12+0", "g20+0")
	lock(unix.F_RDLCK, 0, 0)
	child(t, "f", "r0+0", "w50+1", "w1000+1", "g1000+5")
	lock(unix.F_UNLCK, 0, 0)
	child(t, "f", "w0+0")
	lock(unix.F_WRLCK, 10, -5)
	child(t, "f", "w4+1", "w5+1", "w9+1", "w10+1")
	lock(unix.F_WRLCK, 0, -5)
	lock(9, 0, 5)
	other := open(t, "f", unix.O_RDONLY)
	unix.Close(other)
	child(t, "f", "w5+1")
	ro := open(t, "f", unix.O_RDONLY)
	lk := unix.Flock_t{Type: unix.F_WRLCK}
	t.Err("write lock on a read-only file", unix.FcntlFlock(uintptr(ro), unix.F_SETLK, &lk))
	// Locks of open file descriptions conflict inside one process.
	a := open(t, "f", unix.O_RDWR)
	lk = unix.Flock_t{Type: unix.F_WRLCK, Len: 10}
	t.Err("description lock", unix.FcntlFlock(uintptr(a), unix.F_OFD_SETLK, &lk))
	lk = unix.Flock_t{Type: unix.F_WRLCK, Len: 10}
	t.Err("another description", unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &lk))
	unix.Close(a)
	lk = unix.Flock_t{Type: unix.F_WRLCK, Len: 10}
	t.Err("after its close", unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &lk))
	unix.Close(ro)
	unix.Close(fd)
}

// dup2 is the call itself; the library's goes to dup3.
func dup2(from, to int) error {
	_, err := gt.Sys(unix.SYS_DUP2, uintptr(from), uintptr(to))
	return err
}

func descriptorFlags(t *gt.T) {
	create(t, "f", "x")
	fd := open(t, "f", unix.O_RDWR)
	get := func(fd int) int {
		v, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		return v
	}
	t.Say("cloexec %d", get(fd))
	unix.FcntlInt(uintptr(fd), unix.F_SETFD, unix.FD_CLOEXEC)
	t.Say("cloexec %d", get(fd))
	d, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD, 100)
	t.Say("F_DUPFD %d cloexec %d %s", d, get(d), gt.Name(err))
	d2, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 100)
	t.Say("F_DUPFD_CLOEXEC %d cloexec %d %s", d2, get(d2), gt.Name(err))
	_, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD, -1)
	t.Err("F_DUPFD -1", err)
	_, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD, 1<<30)
	t.Err("F_DUPFD huge", err)
	t.Err("dup2", dup2(fd, 200))
	t.Say("dup2 clears cloexec: %d", get(200))
	t.Err("dup2 onto itself", dup2(fd, fd))
	t.Say("and keeps cloexec: %d", get(fd))
	t.Err("dup3 onto itself", unix.Dup3(fd, fd, 0))
	t.Err("dup3 cloexec", unix.Dup3(fd, 201, unix.O_CLOEXEC))
	t.Say("cloexec %d", get(201))
	t.Err("dup3 bad flag", unix.Dup3(fd, 202, 1))
	t.Err("dup2 to -1", dup2(fd, -1))
	t.Err("dup2 of 999", dup2(999, 203))
	_, err = unix.FcntlInt(uintptr(fd), 9999, 0)
	t.Err("unknown fcntl", err)
	t.Err("close_range", unix.CloseRange(150, 300, 0))
	t.Err("closed", unix.Dup2(200, 204))
	t.Err("still open", unix.Dup2(d, 204))
	t.Err("close_range cloexec", unix.CloseRange(100, 110, unix.CLOSE_RANGE_CLOEXEC))
	t.Say("cloexec %d", get(d))
	t.Err("close_range reversed", unix.CloseRange(5, 4, 0))
	t.Err("close_range bad flag", unix.CloseRange(300, 301, 64))
	unix.CloseRange(100, 300, 0)
	unix.Close(fd)
	t.Err("close twice", unix.Close(fd))
	_, err = unix.IoctlGetInt(0, 0x5555)
	t.Say("unknown ioctl fails: %v", err != nil)
}

func descriptorLimits(t *gt.T) {
	var old unix.Rlimit
	t.Require("getrlimit", unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	low := unix.Rlimit{Cur: 40, Max: old.Max}
	t.Require("setrlimit", unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
	opened := []int{}
	var err error
	for {
		var fd int
		if fd, err = unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
			break
		}
		opened = append(opened, fd)
		if len(opened) > 100 {
			break
		}
	}
	t.Err("open until full", err)
	t.Say("last descriptor %d", opened[len(opened)-1])
	t.Err("pipe", unix.Pipe2(make([]int, 2), 0))
	_, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	t.Err("socket", err)
	_, err = unix.EpollCreate1(0)
	t.Err("epoll", err)
	_, err = unix.Dup(0)
	t.Err("dup", err)
	t.Err("dup2 beyond", dup2(0, 40))
	_, err = unix.FcntlInt(0, unix.F_DUPFD, 40)
	t.Err("F_DUPFD beyond", err)
	unix.Close(opened[3])
	fd, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	t.Say("the lowest free one is taken: %v %s", fd == opened[3], gt.Name(err))
	for _, fd := range opened {
		unix.Close(fd)
	}
	t.Require("setrlimit", unix.Setrlimit(unix.RLIMIT_NOFILE, &old))
}

func tmpfile(t *gt.T) {
	fd, err := unix.Open(".", unix.O_TMPFILE|unix.O_RDWR, 0o644)
	t.Err("open", err)
	if err != nil {
		return
	}
	unix.Write(fd, []byte("anonymous"))
	entries, _ := os.ReadDir(".")
	t.Say("%d names", len(entries))
	var st unix.Stat_t
	unix.Fstat(fd, &st)
	t.Say("links %d size %d", st.Nlink, st.Size)
	t.Err("give it a name", unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, "named", unix.AT_SYMLINK_FOLLOW))
	show(t, "named")
	unix.Close(fd)
	_, err = unix.Open(".", unix.O_TMPFILE|unix.O_RDONLY, 0o644)
	t.Err("read-only", err)
}

func memfd(t *gt.T) {
	fd, err := unix.MemfdCreate("name", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	t.Err("memfd_create", err)
	if err != nil {
		return
	}
	t.Err("ftruncate", unix.Ftruncate(fd, 4096))
	link, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	t.Say("link %q %s", link, gt.Name(err))
	m, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	t.Err("mmap", err)
	copy(m, "through the map")
	buf := make([]byte, 15)
	unix.Pread(fd, buf, 0)
	t.Say("%q", buf)
	_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE)
	t.Err("seal writes while mapped", err)
	unix.Munmap(m)
	_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK)
	t.Err("seal", err)
	_, err = unix.Pwrite(fd, buf, 0)
	t.Err("write", err)
	t.Err("shrink", unix.Ftruncate(fd, 0))
	t.Err("grow", unix.Ftruncate(fd, 8192))
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	t.Say("seals %#x %s", seals, gt.Name(err))
	_, err = unix.MemfdCreate(strings.Repeat("x", 250), 0)
	t.Err("long name", err)
	_, err = unix.MemfdCreate("x", 0x100)
	t.Err("bad flag", err)
	unix.Close(fd)
}
