package main

import (
	"encoding/binary"
	"os"
	"sort"
	"strings"

	"hardtack/test/guest/gt"

	"golang.org/x/sys/unix"
)

func rename(t *gt.T) {
	create(t, "a", "A")
	create(t, "b", "B")
	t.Err("to a new name", unix.Rename("a", "c"))
	t.Err("from a missing name", unix.Rename("a", "d"))
	t.Err("over a file", unix.Rename("c", "b"))
	show(t, "b")
	t.Err("onto itself", unix.Rename("b", "b"))
	create(t, "x", "X")
	const at = unix.AT_FDCWD
	t.Err("noreplace onto a file", unix.Renameat2(at, "x", at, "b", unix.RENAME_NOREPLACE))
	t.Err("noreplace to a new name", unix.Renameat2(at, "x", at, "y", unix.RENAME_NOREPLACE))
	t.Err("exchange", unix.Renameat2(at, "y", at, "b", unix.RENAME_EXCHANGE))
	show(t, "y")
	show(t, "b")
	t.Err("exchange with a missing name", unix.Renameat2(at, "y", at, "none", unix.RENAME_EXCHANGE))
	t.Err("both flags", unix.Renameat2(at, "y", at, "b", unix.RENAME_EXCHANGE|unix.RENAME_NOREPLACE))
	t.Err("unknown flag", unix.Renameat2(at, "y", at, "b", 64))
	t.Require("link", unix.Link("b", "b2"))
	t.Err("onto a link of itself", unix.Rename("b", "b2"))
	show(t, "b")
	t.Err("empty name", unix.Rename("", "q"))
	t.Err("to an empty name", unix.Rename("b", ""))
	t.Err("dot", unix.Rename(".", "q"))
	t.Err("dot dot", unix.Rename("b", ".."))
}

func renameDirs(t *gt.T) {
	for _, d := range []string{"d", "d/e", "empty", "full", "full/x"} {
		t.Require("mkdir", unix.Mkdir(d, 0o755))
	}
	create(t, "f", "F")
	t.Err("into itself", unix.Rename("d", "d/e/g"))
	t.Err("file over a directory", unix.Rename("f", "empty"))
	t.Err("directory over a file", unix.Rename("d", "f"))
	t.Err("over a full directory", unix.Rename("d", "full"))
	t.Err("over an empty directory", unix.Rename("d", "empty"))
	t.Err("its child moved too", unix.Access("empty/e", unix.F_OK))
	t.Err("with a trailing slash", unix.Rename("empty/", "d/"))
	t.Err("file with a trailing slash", unix.Rename("f/", "g"))
	t.Err("file to a slash", unix.Rename("f", "g/"))
	t.Err("onto its parent", unix.Rename("full/x", "full"))
	t.Err("exchange file and directory", unix.Renameat2(unix.AT_FDCWD, "f", unix.AT_FDCWD, "full", unix.RENAME_EXCHANGE))
	show(t, "full")
	t.Err("the directory", unix.Access("f/x", unix.F_OK))
	nlinks(t, "d", "f", ".")
}

func nlinks(t *gt.T, names ...string) {
	for _, name := range names {
		var st unix.Stat_t
		err := unix.Lstat(name, &st)
		t.Say("%s has %d links %s", name, st.Nlink, gt.Name(err))
	}
}

func links(t *gt.T) {
	create(t, "a", "A")
	t.Err("link", unix.Link("a", "b"))
	nlinks(t, "a", "b")
	var x, y unix.Stat_t
	unix.Stat("a", &x)
	unix.Stat("b", &y)
	t.Say("one inode: %v", x.Ino == y.Ino && x.Dev == y.Dev)
	t.Err("over a file", unix.Link("a", "b"))
	t.Err("missing", unix.Link("none", "c"))
	t.Require("mkdir", unix.Mkdir("d", 0o755))
	t.Err("a directory", unix.Link("d", "e"))
	t.Require("symlink", unix.Symlink("a", "s"))
	t.Err("a symlink", unix.Link("s", "s2"))
	t.Err("follow it", unix.Linkat(unix.AT_FDCWD, "s", unix.AT_FDCWD, "a3", unix.AT_SYMLINK_FOLLOW))
	nlinks(t, "a", "s", "s2", "a3")
	t.Err("bad flag", unix.Linkat(unix.AT_FDCWD, "a", unix.AT_FDCWD, "z", 1))
	t.Err("unlink", unix.Unlink("a"))
	nlinks(t, "b", "a3")
	show(t, "b")
	t.Err("trailing slash", unix.Link("b", "z/"))
}

func symlinks(t *gt.T) {
	create(t, "f", "F")
	t.Require("mkdir", unix.Mkdir("d", 0o755))
	create(t, "d/g", "G")
	t.Err("symlink", unix.Symlink("f", "s"))
	t.Err("over a file", unix.Symlink("f", "f"))
	t.Err("empty target", unix.Symlink("", "e"))
	t.Err("empty name", unix.Symlink("f", ""))
	buf := make([]byte, 100)
	n, err := unix.Readlink("s", buf)
	t.Say("readlink %q %s", buf[:max(n, 0)], gt.Name(err))
	_, err = unix.Readlink("s", buf[:0:0])
	t.Say("readlink into nothing %s", gt.Name(err))
	t.Require("symlink", unix.Symlink("a long target", "long"))
	n, err = unix.Readlink("long", buf[:4])
	t.Say("readlink into 4 bytes %q %s", buf[:max(n, 0)], gt.Name(err))
	_, err = unix.Readlink("f", buf)
	t.Err("readlink of a file", err)
	_, err = unix.Readlink("none", buf)
	t.Err("readlink of nothing", err)
	t.Require("symlink", unix.Symlink("d", "sd"))
	show(t, "sd/g")
	show(t, "sd/../f")
	t.Err("rmdir a link to a directory", unix.Rmdir("sd"))
	t.Err("unlink with a slash", unix.Unlink("sd/"))
	var st unix.Stat_t
	t.Err("lstat", unix.Lstat("sd", &st))
	t.Say("a link of %d bytes: %v", st.Size, st.Mode&unix.S_IFMT == unix.S_IFLNK)
	t.Err("lstat with a slash", unix.Lstat("sd/", &st))
	t.Say("a directory: %v", st.Mode&unix.S_IFMT == unix.S_IFDIR)
	t.Require("symlink", unix.Symlink("loop2", "loop1"))
	t.Require("symlink", unix.Symlink("loop1", "loop2"))
	t.Err("a loop", unix.Access("loop1", unix.F_OK))
	last := "f"
	for i := range 41 {
		name := "chain" + strings.Repeat("x", i)
		t.Require("symlink", unix.Symlink(last, name))
		if i == 39 || i == 40 {
			t.Say("a chain of %d: %s", i+1, gt.Name(unix.Access(name, unix.F_OK)))
		}
		last = name
	}
	t.Err("mkdir over a dangling link", func() error {
		unix.Symlink("nothing", "dang")
		return unix.Mkdir("dang", 0o755)
	}())
	t.Err("target of 4095", unix.Symlink(strings.Repeat("t", 4095), "t1"))
	t.Err("target of 4096", unix.Symlink(strings.Repeat("t", 4096), "t2"))
}

func directories(t *gt.T) {
	t.Err("mkdir", unix.Mkdir("d", 0o755))
	t.Err("again", unix.Mkdir("d", 0o755))
	t.Err("trailing slash", unix.Mkdir("e/", 0o755))
	t.Err("below a missing one", unix.Mkdir("x/y", 0o755))
	t.Err("dot", unix.Mkdir(".", 0o755))
	t.Err("root", unix.Mkdir("/", 0o755))
	t.Err("empty", unix.Mkdir("", 0o755))
	create(t, "f", "")
	t.Err("below a file", unix.Mkdir("f/y", 0o755))
	t.Require("mkdir", unix.Mkdir("d/s", 0o755))
	nlinks(t, "d")
	t.Err("rmdir full", unix.Rmdir("d"))
	t.Err("rmdir a file", unix.Rmdir("f"))
	t.Err("rmdir dot", unix.Rmdir("."))
	t.Err("rmdir s/.", unix.Rmdir("d/s/."))
	t.Err("rmdir s/..", unix.Rmdir("d/s/.."))
	t.Err("rmdir root", unix.Rmdir("/"))
	t.Err("unlink a directory", unix.Unlink("d/s"))
	t.Err("unlinkat a directory", unix.Unlinkat(unix.AT_FDCWD, "d/s", unix.AT_REMOVEDIR))
	t.Err("unlinkat, bad flag", unix.Unlinkat(unix.AT_FDCWD, "d", 1))
	nlinks(t, "d")
	base, _ := os.Getwd()
	t.Err("chdir", unix.Chdir("d"))
	wd, _ := os.Getwd()
	t.Say("in %q", strings.TrimPrefix(wd, base))
	t.Err("rmdir where we are", unix.Rmdir("../d"))
	_, err := gt.Sys(unix.SYS_GETCWD, gt.Addr(&make([]byte, 100)[0]), 100)
	t.Err("getcwd in a removed directory", err)
	fd, err := unix.Open("x", unix.O_CREAT|unix.O_RDWR, 0o644)
	t.Err("create in a removed directory", err)
	unix.Close(fd)
	t.Err("mkdir in a removed directory", unix.Mkdir("x", 0o755))
	t.Err("up from a removed directory", unix.Chdir(".."))
	t.Err("chdir to a file", unix.Chdir("f"))
	t.Err("chdir to nothing", unix.Chdir("none"))
	_, err = gt.Sys(unix.SYS_GETCWD, gt.Addr(&make([]byte, 2)[0]), 2)
	t.Err("getcwd into 2 bytes", err)
	fd = open(t, "e", unix.O_RDONLY|unix.O_DIRECTORY)
	t.Err("fchdir", unix.Fchdir(fd))
	unix.Close(fd)
	t.Err("back", unix.Chdir(base))
	fd = open(t, "f", unix.O_RDONLY)
	t.Err("fchdir to a file", unix.Fchdir(fd))
	unix.Close(fd)
}

// list reads a directory through a buffer of a given size.
func list(t *gt.T, fd, size int) (names []string, types map[string]byte) {
	types = map[string]byte{}
	buf := make([]byte, size)
	for {
		n, err := unix.Getdents(fd, buf)
		if err != nil {
			t.Err("getdents", err)
			break
		}
		if n == 0 {
			break
		}
		for b := buf[:n]; len(b) > 0; {
			reclen := binary.LittleEndian.Uint16(b[16:])
			name, _, _ := strings.Cut(string(b[19:reclen]), "\x00")
			names = append(names, name)
			types[name] = b[18]
			b = b[reclen:]
		}
	}
	sort.Strings(names)
	return names, types
}

func getdents(t *gt.T) {
	t.Require("mkdir", unix.Mkdir("d", 0o755))
	create(t, "d/file", "")
	t.Require("symlink", unix.Symlink("file", "d/link"))
	t.Require("mkdir", unix.Mkdir("d/sub", 0o755))
	t.Require("fifo", unix.Mkfifo("d/fifo", 0o644))
	fd := open(t, "d", unix.O_RDONLY|unix.O_DIRECTORY)
	names, types := list(t, fd, 4096)
	for _, name := range names {
		t.Say("%s type %d", name, types[name])
	}
	again, _ := list(t, fd, 4096)
	t.Say("at the end: %d names", len(again))
	_, err := unix.Seek(fd, 0, unix.SEEK_SET)
	t.Err("rewind", err)
	again, _ = list(t, fd, 48)
	t.Say("in small steps: %q", again)
	unix.Seek(fd, 0, unix.SEEK_SET)
	_, err = unix.Getdents(fd, make([]byte, 10))
	t.Err("a buffer too small", err)
	unix.Close(fd)
	for i := range 500 {
		create(t, "d/many"+strings.Repeat("i", i%50)+string(rune('a'+i%26))+string(rune('a'+i/26)), "")
	}
	fd = open(t, "d", unix.O_RDONLY|unix.O_DIRECTORY)
	names, _ = list(t, fd, 300)
	t.Say("%d names", len(names))
	seen := map[string]bool{}
	for _, name := range names {
		seen[name] = true
	}
	t.Say("%d different", len(seen))
	// Removing while reading must neither skip nor repeat what stays.
	unix.Seek(fd, 0, unix.SEEK_SET)
	buf, left := make([]byte, 256), 0
	for {
		n, err := unix.Getdents(fd, buf)
		if err != nil || n == 0 {
			break
		}
		for b := buf[:n]; len(b) > 0; b = b[binary.LittleEndian.Uint16(b[16:]):] {
			name, _, _ := strings.Cut(string(b[19:]), "\x00")
			if strings.HasPrefix(name, "many") {
				if unix.Unlink("d/"+name) != nil {
					left++
				}
			}
		}
	}
	unix.Close(fd)
	fd = open(t, "d", unix.O_RDONLY)
	names, _ = list(t, fd, 4096)
	t.Say("after removal while reading: %q, failures %d", names, left)
	unix.Close(fd)
	create(t, "plain", "")
	fd = open(t, "plain", unix.O_RDONLY)
	_, err = unix.Getdents(fd, buf)
	t.Err("of a file", err)
	unix.Close(fd)
}

func paths(t *gt.T) {
	create(t, "f", "F")
	t.Require("mkdir", unix.Mkdir("d", 0o755))
	for _, p := range []string{"./f", ".//./f", "d/../f", "d/../d/.././f", "d/", "d//", "d/.", "f/.", "f/..", "/..", "/../../proc",
		"/./proc//self/", "d/none/../../f", "./.", "..", ""} {
		t.Err("access "+p, unix.Access(p, unix.F_OK))
	}
	name := strings.Repeat("n", 255)
	fd, err := unix.Open(name, unix.O_CREAT|unix.O_RDWR, 0o644)
	t.Err("a name of 255", err)
	unix.Close(fd)
	_, err = unix.Open(name+"n", unix.O_CREAT|unix.O_RDWR, 0o644)
	t.Err("a name of 256", err)
	t.Err("access of 256", unix.Access(name+"n", unix.F_OK))
	t.Err("a path of 4095", unix.Access(strings.Repeat("./", 2046)+"./f", unix.F_OK))
	t.Err("a path of 4096", unix.Access(strings.Repeat("./", 2046)+".//f", unix.F_OK))
	t.Err("a path of 100000", unix.Access(strings.Repeat("d/../", 20000), unix.F_OK))
	// A deep tree is walked in steps.
	base, _ := os.Getwd()
	deep := strings.Repeat("p", 200)
	for i := range 30 {
		if err := unix.Mkdir(deep, 0o755); err != nil {
			t.Say("mkdir %d: %s", i, gt.Name(err))
			break
		}
		if err := unix.Chdir(deep); err != nil {
			t.Say("chdir %d: %s", i, gt.Name(err))
			break
		}
	}
	_, err = gt.Sys(unix.SYS_GETCWD, gt.Addr(&make([]byte, 10000)[0]), 10000)
	t.Err("getcwd, deeper than a path", err)
	unix.Chdir(base)
}

func atCalls(t *gt.T) {
	t.Require("mkdir", unix.Mkdir("d", 0o755))
	fd := open(t, "d", unix.O_RDONLY|unix.O_DIRECTORY)
	f, err := unix.Openat(fd, "f", unix.O_CREAT|unix.O_RDWR, 0o640)
	t.Err("openat", err)
	unix.Write(f, []byte("at"))
	t.Err("mkdirat", unix.Mkdirat(fd, "s", 0o700))
	t.Err("symlinkat", unix.Symlinkat("f", fd, "l"))
	t.Err("linkat", unix.Linkat(fd, "f", fd, "g", 0))
	t.Err("renameat", unix.Renameat(fd, "g", unix.AT_FDCWD, "h"))
	show(t, "h")
	var st unix.Stat_t
	t.Err("fstatat", unix.Fstatat(fd, "f", &st, 0))
	t.Say("mode %o size %d", st.Mode, st.Size)
	t.Err("fstatat, empty path without flag", unix.Fstatat(fd, "", &st, 0))
	t.Err("fstatat, empty path", unix.Fstatat(f, "", &st, unix.AT_EMPTY_PATH))
	t.Say("mode %o", st.Mode)
	t.Err("fstatat, nofollow", unix.Fstatat(fd, "l", &st, unix.AT_SYMLINK_NOFOLLOW))
	t.Say("a link: %v", st.Mode&unix.S_IFMT == unix.S_IFLNK)
	t.Err("fstatat, bad flag", unix.Fstatat(fd, "f", &st, 1))
	t.Err("openat from a file", func() error { _, err := unix.Openat(f, "x", unix.O_RDONLY, 0); return err }())
	t.Err("openat from 999", func() error { _, err := unix.Openat(999, "x", unix.O_RDONLY, 0); return err }())
	t.Err("openat from 999, absolute", func() error {
		x, err := unix.Openat(999, "/", unix.O_RDONLY, 0)
		unix.Close(x)
		return err
	}())
	t.Err("unlinkat", unix.Unlinkat(fd, "f", 0))
	t.Err("faccessat", unix.Faccessat(fd, "f", unix.F_OK, 0))
	t.Err("fchmodat", unix.Fchmodat(fd, "s", 0o755, 0))
	unix.Close(f)
	unix.Close(fd)
}
