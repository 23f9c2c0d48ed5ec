package main

import (
	"hardtack/test/guest/gt"

	"golang.org/x/sys/unix"
)

func openFlags(t *gt.T) {
	try := func(what, name string, flags int) {
		fd, err := unix.Open(name, flags, 0o644)
		t.Err(what, err)
		if err == nil {
			unix.Close(fd)
		}
	}
	try("missing", "a", unix.O_RDONLY)
	try("missing, write", "a", unix.O_RDWR)
	try("create", "a", unix.O_RDWR|unix.O_CREAT)
	try("create again", "a", unix.O_RDWR|unix.O_CREAT)
	try("exclusive", "a", unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
	try("as directory", "a", unix.O_RDONLY|unix.O_DIRECTORY)
	try("trailing slash", "a/", unix.O_RDONLY)
	try("create with trailing slash", "b/", unix.O_RDWR|unix.O_CREAT)
	try("below a file", "a/b", unix.O_RDONLY)
	try("create in a missing directory", "none/b", unix.O_RDWR|unix.O_CREAT)
	try("directory to read", ".", unix.O_RDONLY)
	try("directory to write", ".", unix.O_WRONLY)
	try("directory with create", ".", unix.O_RDONLY|unix.O_CREAT)
	try("empty path", "", unix.O_RDONLY)
	try("access mode 3", "a", 3)
	t.Require("symlink", unix.Symlink("a", "l"))
	t.Require("symlink", unix.Symlink("nowhere", "dangling"))
	try("through a link", "l", unix.O_RDONLY)
	try("nofollow", "l", unix.O_RDONLY|unix.O_NOFOLLOW)
	try("path only", "l", unix.O_PATH|unix.O_NOFOLLOW)
	try("dangling", "dangling", unix.O_RDONLY)
	try("exclusive on dangling", "dangling", unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
	try("create through dangling", "dangling", unix.O_RDWR|unix.O_CREAT)
	try("its target", "nowhere", unix.O_RDONLY)

	create(t, "text", "some text")
	fd := open(t, "text", unix.O_WRONLY|unix.O_TRUNC)
	_, err := unix.Read(fd, make([]byte, 4))
	t.Err("read a write-only file", err)
	unix.Close(fd)
	show(t, "text")
	fd = open(t, "text", unix.O_RDONLY)
	_, err = unix.Write(fd, []byte("x"))
	t.Err("write a read-only file", err)
	unix.Close(fd)
	fd = open(t, "text", unix.O_PATH)
	_, err = unix.Read(fd, make([]byte, 4))
	t.Err("read an O_PATH descriptor", err)
	var st unix.Stat_t
	t.Err("fstat an O_PATH descriptor", unix.Fstat(fd, &st))
	t.Err("fchmod an O_PATH descriptor", unix.Fchmod(fd, 0o600))
	unix.Close(fd)
	flags := open(t, "text", unix.O_RDWR|unix.O_APPEND|unix.O_NONBLOCK|unix.O_CLOEXEC)
	got, err := unix.FcntlInt(uintptr(flags), unix.F_GETFL, 0)
	t.Err("F_GETFL", err)
	t.Say("flags %#x", got&^0o100000)
	unix.Close(flags)
}

func readWriteSeek(t *gt.T) {
	fd := open(t, "f", unix.O_RDWR|unix.O_CREAT)
	n, err := unix.Write(fd, []byte("0123456789"))
	t.Say("write %d %s", n, gt.Name(err))
	n, err = unix.Write(fd, nil)
	t.Say("write nothing %d %s", n, gt.Name(err))
	seek := func(off int64, whence int) {
		pos, err := unix.Seek(fd, off, whence)
		t.Say("lseek(%d, %d) = %d %s", off, whence, pos, gt.Name(err))
	}
	seek(0, unix.SEEK_CUR)
	seek(3, unix.SEEK_SET)
	buf := make([]byte, 4)
	n, err = unix.Read(fd, buf)
	t.Say("read %d %q %s", n, buf, gt.Name(err))
	seek(-2, unix.SEEK_END)
	n, err = unix.Read(fd, buf)
	t.Say("read near the end %d %q %s", n, buf[:max(n, 0)], gt.Name(err))
	n, err = unix.Read(fd, buf)
	t.Say("read at the end %d %s", n, gt.Name(err))
	seek(-1, unix.SEEK_SET)
	seek(-11, unix.SEEK_END)
	seek(0, 99)
	seek(1<<62, unix.SEEK_SET)
	seek(1<<62, unix.SEEK_CUR)
	seek(100, unix.SEEK_END)
	n, err = unix.Read(fd, buf)
	t.Say("read beyond the end %d %s", n, gt.Name(err))
	n, err = unix.Write(fd, []byte("end"))
	t.Say("write beyond the end %d %s", n, gt.Name(err))
	seek(0, unix.SEEK_END)
	seek(0, unix.SEEK_DATA)
	seek(200, unix.SEEK_DATA)
	seek(0, unix.SEEK_HOLE)
	big := make([]byte, 113)
	n, err = unix.Pread(fd, big, 0)
	zeros := 0
	for _, b := range big[:max(n, 0)] {
		if b == 0 {
			zeros++
		}
	}
	t.Say("all of it: %d bytes, %d zero, %s", n, zeros, gt.Name(err))
	unix.Close(fd)

	var p [2]int
	t.Require("pipe", unix.Pipe(p[:]))
	_, err = unix.Seek(p[0], 0, 0)
	t.Err("lseek on a pipe", err)
	_, err = unix.Pread(p[0], buf, 0)
	t.Err("pread on a pipe", err)
	unix.Close(p[0])
	unix.Close(p[1])
	fd = open(t, ".", unix.O_RDONLY)
	_, err = unix.Read(fd, buf)
	t.Err("read a directory", err)
	unix.Close(fd)
}

func appendOffset(t *gt.T) {
	create(t, "log", "start,")
	a := open(t, "log", unix.O_WRONLY|unix.O_APPEND)
	b := open(t, "log", unix.O_WRONLY|unix.O_APPEND)
	unix.Write(a, []byte("a1,"))
	unix.Write(b, []byte("b1,"))
	unix.Seek(a, 0, unix.SEEK_SET)
	unix.Write(a, []byte("a2,"))
	show(t, "log")
	n, err := unix.Pwrite(a, []byte("P,"), 0)
	t.Say("pwrite on append %d %s", n, gt.Name(err))
	show(t, "log")
	c, err := unix.Dup(a)
	t.Require("dup", err)
	pos1, _ := unix.Seek(a, 5, unix.SEEK_SET)
	pos2, _ := unix.Seek(c, 0, unix.SEEK_CUR)
	pos3, _ := unix.Seek(b, 0, unix.SEEK_CUR)
	t.Say("offsets after a seek: itself %d, its dup %d, another open %d", pos1, pos2, pos3)
	_, err = unix.FcntlInt(uintptr(a), unix.F_SETFL, 0)
	t.Err("clear O_APPEND", err)
	unix.Seek(c, 0, unix.SEEK_SET)
	unix.Write(a, []byte("START"))
	show(t, "log")
	for _, fd := range []int{a, b, c} {
		unix.Close(fd)
	}
}

func vectored(t *gt.T) {
	fd := open(t, "v", unix.O_RDWR|unix.O_CREAT)
	n, err := unix.Writev(fd, [][]byte{[]byte("one "), nil, []byte("two "), []byte("three")})
	t.Say("writev %d %s", n, gt.Name(err))
	a, b, c := make([]byte, 2), make([]byte, 3), make([]byte, 100)
	n, err = unix.Preadv(fd, [][]byte{a, b, c}, 1)
	t.Say("preadv %d %q %q %q %s", n, a, b, c[:8], gt.Name(err))
	n, err = unix.Pwritev(fd, [][]byte{[]byte("X"), []byte("YZ")}, 4)
	t.Say("pwritev %d %s", n, gt.Name(err))
	show(t, "v")
	buf := make([]byte, 4)
	n, err = unix.Pread(fd, buf, 3)
	t.Say("pread %d %q %s", n, buf, gt.Name(err))
	_, err = unix.Pread(fd, buf, -1)
	t.Err("pread at -1", err)
	n, err = unix.Pwrite(fd, []byte("far"), 1<<20)
	t.Say("pwrite far %d %s", n, gt.Name(err))
	pos, _ := unix.Seek(fd, 0, unix.SEEK_CUR)
	t.Say("the offset is still %d", pos)
	iov := make([]unix.Iovec, 1025)
	for i := range iov {
		iov[i].Base = &buf[0]
	}
	_, err = gt.Sys(unix.SYS_READV, uintptr(fd), gt.Addr(&iov[0]), 1025)
	t.Err("1025 vectors", err)
	_, err = gt.Sys(unix.SYS_READV, uintptr(fd), gt.Addr(&iov[0]), 1024)
	t.Err("1024 empty vectors", err)
	iov[0].Len, iov[1].Len = 1<<63-1, 1<<63-1
	_, err = gt.Sys(unix.SYS_READV, uintptr(fd), gt.Addr(&iov[0]), 2)
	t.Err("lengths that overflow", err)
	iov[0].Len = 1 << 63
	_, err = gt.Sys(unix.SYS_WRITEV, uintptr(fd), gt.Addr(&iov[0]), 1)
	t.Err("a negative length", err)
	_, err = gt.Sys(unix.SYS_READV, uintptr(fd), gt.Addr(&iov[0]), ^uintptr(0))
	t.Err("a negative count", err)
	_, err = gt.Sys(unix.SYS_READV, uintptr(fd), 0, 0)
	t.Err("no vectors", err)
	unix.Close(fd)
}

func size(t *gt.T, name string) {
	var st unix.Stat_t
	t.Require("stat", unix.Stat(name, &st))
	t.Say("%s has %d bytes", name, st.Size)
}

func truncate(t *gt.T) {
	create(t, "f", "0123456789")
	t.Err("shrink", unix.Truncate("f", 4))
	show(t, "f")
	t.Err("grow", unix.Truncate("f", 8))
	show(t, "f")
	t.Err("negative", unix.Truncate("f", -1))
	t.Err("missing", unix.Truncate("none", 1))
	t.Err("directory", unix.Truncate(".", 1))
	fd := open(t, "f", unix.O_RDONLY)
	t.Err("read-only descriptor", unix.Ftruncate(fd, 1))
	unix.Close(fd)
	fd = open(t, "f", unix.O_RDWR)
	t.Err("1 TiB", unix.Ftruncate(fd, 1<<40))
	size(t, "f")
	buf := []byte{1, 2, 3, 4}
	n, err := unix.Pread(fd, buf, 1<<39)
	t.Say("read in the hole %d %v %s", n, buf, gt.Name(err))
	t.Err("back to 6000", unix.Ftruncate(fd, 6000))
	unix.Pwrite(fd, []byte("tail"), 5996)
	t.Err("shrink into the page", unix.Ftruncate(fd, 5998))
	t.Err("grow again", unix.Ftruncate(fd, 6000))
	n, err = unix.Pread(fd, buf, 5996)
	t.Say("the cut bytes %d %v %s", n, buf, gt.Name(err))
	unix.Close(fd)
}

func fallocate(t *gt.T) {
	fd := open(t, "f", unix.O_RDWR|unix.O_CREAT)
	t.Err("allocate", unix.Fallocate(fd, 0, 0, 10000))
	size(t, "f")
	t.Err("keep size", unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, 10000, 10000))
	size(t, "f")
	for i := 0; i < 10000; i += 10 {
		unix.Pwrite(fd, []byte("0123456789"), int64(i))
	}
	t.Err("punch", unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 4000, 5000))
	size(t, "f")
	buf := make([]byte, 10000)
	n, _ := unix.Pread(fd, buf, 0)
	first, last := -1, -1
	for i, b := range buf[:n] {
		if b == 0 {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	t.Say("zero from %d to %d", first, last)
	t.Err("punch without keep", unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE, 0, 10))
	t.Err("length 0", unix.Fallocate(fd, 0, 0, 0))
	t.Err("negative offset", unix.Fallocate(fd, 0, -1, 10))
	t.Err("unknown mode", unix.Fallocate(fd, 0x8000, 0, 10))
	t.Err("overflow", unix.Fallocate(fd, 0, 1<<62, 1<<62+(1<<62-1)))
	unix.Close(fd)
	fd = open(t, "f", unix.O_RDONLY)
	t.Err("read-only", unix.Fallocate(fd, 0, 0, 10))
	unix.Close(fd)
	var p [2]int
	t.Require("pipe", unix.Pipe(p[:]))
	t.Err("pipe", unix.Fallocate(p[1], 0, 0, 10))
	unix.Close(p[0])
	unix.Close(p[1])
}

func unlinked(t *gt.T) {
	create(t, "f", "still here")
	fd := open(t, "f", unix.O_RDWR)
	t.Err("unlink", unix.Unlink("f"))
	t.Err("unlink again", unix.Unlink("f"))
	buf := make([]byte, 32)
	n, err := unix.Read(fd, buf)
	t.Say("read %q %s", buf[:n], gt.Name(err))
	var st unix.Stat_t
	t.Err("fstat", unix.Fstat(fd, &st))
	t.Say("links %d", st.Nlink)
	create(t, "f", "another")
	n, _ = unix.Pread(fd, buf, 0)
	t.Say("read %q", buf[:n])
	unix.Close(fd)
	show(t, "f")
}

func badBuffers(t *gt.T) {
	create(t, "f", "0123456789")
	fd := open(t, "f", unix.O_RDWR)
	for _, w := range gt.Wild {
		_, err := gt.Sys(unix.SYS_PREAD64, uintptr(fd), w.Addr, 4, 0)
		t.Err("pread into "+w.Name, err)
		_, err = gt.Sys(unix.SYS_PWRITE64, uintptr(fd), w.Addr, 4, 0)
		t.Err("pwrite from "+w.Name, err)
		_, err = gt.Sys(unix.SYS_READV, uintptr(fd), w.Addr, 1)
		t.Err("readv of "+w.Name, err)
		_, err = gt.Sys(unix.SYS_OPENAT, ^uintptr(99), w.Addr, 0)
		t.Err("open of "+w.Name, err)
		_, err = gt.Sys(unix.SYS_NEWFSTATAT, ^uintptr(99), gt.Addr(&[]byte("f\x00")[0]), w.Addr, 0)
		t.Err("stat into "+w.Name, err)
		_, err = gt.Sys(unix.SYS_FSTAT, uintptr(fd), w.Addr)
		t.Err("fstat into "+w.Name, err)
		_, err = gt.Sys(unix.SYS_PIPE2, w.Addr, 0)
		t.Err("pipe into "+w.Name, err)
		_, err = gt.Sys(unix.SYS_GETCWD, w.Addr, 100)
		t.Err("getcwd into "+w.Name, err)
	}
	_, err := gt.Sys(unix.SYS_PREAD64, uintptr(fd), 8, 0, 0)
	t.Err("pread of nothing into the null page", err)
	var b [16]byte
	n, err := gt.Sys(unix.SYS_PREAD64, uintptr(fd), gt.Addr(&b), 1<<62, 0)
	t.Say("pread of 4 EiB: %v", err == nil && n == 10 || err == unix.EFAULT)
	_, err = gt.Sys(unix.SYS_PREAD64, uintptr(fd), gt.Addr(&b), ^uintptr(0), 0)
	t.Err("pread of -1 bytes", err)
	// A transfer across the end of a mapping moves what fits.
	m, err := unix.Mmap(-1, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	t.Require("mmap", err)
	base := gt.Addr(&m[0])
	t.Require("mprotect", unix.Mprotect(m[4096:], unix.PROT_NONE))
	_, err = gt.Sys(unix.SYS_PREAD64, uintptr(fd), base+4096, 4, 0)
	t.Say("pread into a guard page %s", gt.Name(err))
	copy(m[4088:4096], "ABCDEFGH")
	_, err = gt.Sys(unix.SYS_PWRITE64, uintptr(fd), base+4096, 4, 0)
	t.Say("pwrite from a guard page %s", gt.Name(err))
	name := m[4088:4096]
	copy(name, "unended!")
	_, err = gt.Sys(unix.SYS_OPENAT, ^uintptr(99), base+4088, 0)
	t.Err("a path that runs into the guard page", err)
	t.Require("mprotect", unix.Mprotect(m[:4096], unix.PROT_READ))
	_, err = gt.Sys(unix.SYS_PREAD64, uintptr(fd), base, 4, 0)
	t.Err("pread into a read-only page", err)
	unix.Munmap(m)
	show(t, "f")
	unix.Close(fd)
}

func badDescriptors(t *gt.T) {
	calls := []struct {
		name string
		nr   uintptr
	}{
		{"read", unix.SYS_READ}, {"write", unix.SYS_WRITE}, {"close", unix.SYS_CLOSE}, {"fstat", unix.SYS_FSTAT},
		{"lseek", unix.SYS_LSEEK}, {"pread64", unix.SYS_PREAD64}, {"dup", unix.SYS_DUP}, {"fsync", unix.SYS_FSYNC},
		{"ftruncate", unix.SYS_FTRUNCATE}, {"fchdir", unix.SYS_FCHDIR}, {"fchmod", unix.SYS_FCHMOD},
		{"ioctl", unix.SYS_IOCTL}, {"fcntl", unix.SYS_FCNTL}, {"getdents64", unix.SYS_GETDENTS64},
		{"fstatfs", unix.SYS_FSTATFS}, {"listen", unix.SYS_LISTEN}, {"accept4", unix.SYS_ACCEPT4},
		{"shutdown", unix.SYS_SHUTDOWN}, {"readv", unix.SYS_READV}, {"fdatasync", unix.SYS_FDATASYNC},
		{"syncfs", unix.SYS_SYNCFS},
	}
	for _, c := range calls {
		_, err := gt.Sys(c.nr, 999)
		t.Err(c.name+"(999)", err)
		_, err = gt.Sys(c.nr, ^uintptr(0))
		t.Err(c.name+"(-1)", err)
	}
	_, err := gt.Sys(unix.SYS_READ, 1<<32, 0, 0)
	t.Say("the upper half of a descriptor is ignored: %v", err == nil || err == unix.EISDIR)
}

func copies(t *gt.T) {
	create(t, "src", "The quick brown fox")
	in := open(t, "src", unix.O_RDONLY)
	out := open(t, "dst", unix.O_RDWR|unix.O_CREAT)
	n, err := unix.Sendfile(out, in, nil, 9)
	t.Say("sendfile %d %s", n, gt.Name(err))
	off := int64(10)
	n, err = unix.Sendfile(out, in, &off, 5)
	t.Say("sendfile at an offset %d, now %d %s", n, off, gt.Name(err))
	n, err = unix.Sendfile(out, in, nil, 1000)
	t.Say("the rest %d %s", n, gt.Name(err))
	n, err = unix.Sendfile(out, in, nil, 1000)
	t.Say("at the end %d %s", n, gt.Name(err))
	show(t, "dst")
	var p [2]int
	t.Require("pipe", unix.Pipe(p[:]))
	off = 4
	n, err = unix.Sendfile(p[1], in, &off, 5)
	buf := make([]byte, 32)
	unix.Read(p[0], buf)
	t.Say("sendfile to a pipe %d %q %s", n, buf[:max(n, 0)], gt.Name(err))
	_, err = unix.Sendfile(out, p[0], nil, 5)
	t.Err("sendfile from a pipe", err)
	_, err = unix.Sendfile(in, in, nil, 5)
	t.Err("sendfile to a read-only file", err)
	from, to := int64(4), int64(0)
	n, err = unix.CopyFileRange(in, &from, out, &to, 5, 0)
	t.Say("copy_file_range %d, offsets %d %d %s", n, from, to, gt.Name(err))
	show(t, "dst")
	_, err = unix.CopyFileRange(in, &from, out, &to, 5, 1)
	t.Err("copy_file_range with flags", err)
	from, to = 0, 1
	_, err = unix.CopyFileRange(out, &from, out, &to, 5, 0)
	t.Err("copy_file_range on itself, overlapping", err)
	for _, fd := range []int{in, out, p[0], p[1]} {
		unix.Close(fd)
	}
}
