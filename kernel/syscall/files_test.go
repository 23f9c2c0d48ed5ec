package syscall_test

import (
	"fmt"

	"golang.org/x/sys/unix"

	"hardtack/abi/linux"
)

// tree makes names of all kinds.
func (p *prog) tree() {
	p.close(p.file("/f", "0123456789"), p.file("/g", "x"))
	for _, d := range []string{"/d", "/d/e", "/empty"} {
		p.must(linux.SYS_mkdir, p.str(d), 0o755)
	}
	p.close(p.file("/d/x", "inside"))
	for _, l := range [][2]string{{"f", "/l"}, {"/nowhere", "/dangling"}, {"loop", "/loop"}, {"d", "/ld"}} {
		p.must(linux.SYS_symlink, p.str(l[0]), p.str(l[1]))
	}
	p.must(linux.SYS_mknod, p.str("/fifo"), linux.S_IFIFO|0o644, 0)
}

// names are the names that calls with paths are tried with.
var names = []string{"/f", "/d", "/d/x", "/l", "/dangling", "/loop", "/ld/x", "/f/x", "/none", "/none/x", "", ".", "..", "/", "/d/", "/f/", "/d/..", "/fifo", "/dev/null"}

func paths(p *prog) {
	p.tree()
	st := p.room(256)
	for _, name := range names {
		path := p.str(name)
		if _, bad := failed(p.do(fmt.Sprintf("stat %q", name), linux.SYS_stat, path, st)); !bad {
			p.note("mode %o links %d", p.u32(st+24), p.u64(st+16))
		}
		p.do("lstat", linux.SYS_lstat, path, st)
		p.do("stat to nowhere", linux.SYS_stat, path, 8)
		for _, flags := range []uint64{0, unix.AT_SYMLINK_NOFOLLOW, unix.AT_EMPTY_PATH, unix.AT_NO_AUTOMOUNT, 1} {
			p.do("newfstatat", linux.SYS_newfstatat, at, path, st, flags)
		}
		for _, mask := range []uint64{unix.STATX_BASIC_STATS, 0, unix.STATX_BTIME, 1 << 31} {
			if _, bad := failed(p.do("statx", linux.SYS_statx, at, path, 0, mask, st)); !bad {
				p.note("mode %o", p.get(st+28, 2))
			}
		}
		p.do("statx sync", linux.SYS_statx, at, path, 0x6000, 0, st)
		for _, mode := range []uint64{0, 1, 2, 4, 7, 8} {
			p.do("access", linux.SYS_access, path, mode)
			p.do("faccessat2", linux.SYS_faccessat2, at, path, mode, unix.AT_EACCESS|unix.AT_SYMLINK_NOFOLLOW)
		}
		if v := p.do("readlink", linux.SYS_readlink, path, st, 100); int64(v) > 0 {
			p.show("it", st, int(v))
		}
		p.do("readlink 0", linux.SYS_readlink, path, st, 0)
		p.do("readlink 2", linux.SYS_readlink, path, st, 2)
		p.do("statfs to nowhere", linux.SYS_statfs, path, 8)
		if _, bad := failed(p.do("statfs", linux.SYS_statfs, path, st)); !bad {
			p.note("type %#x", p.u64(st))
		}
		p.do("chdir", linux.SYS_chdir, path)
		if n := p.do("getcwd", linux.SYS_getcwd, st, 100); int64(n) > 0 {
			p.show("it", st, int(n))
		}
		p.must(linux.SYS_chdir, p.str("/"))
		for _, flags := range []uint64{0, 0x1000, 0x400, 1 << 20} {
			p.ok("name_to_handle_at", linux.SYS_name_to_handle_at, at, path, p.ints(0, 0), st, flags)
		}
	}
	p.do("getcwd short", linux.SYS_getcwd, st, 1)
	p.do("getcwd nowhere", linux.SYS_getcwd, 8, 100)
	p.do("chdir nowhere", linux.SYS_chdir, 8)
	p.do("long", linux.SYS_chdir, p.str(fmt.Sprintf("/%0300d", 0)))
	p.do("too long", linux.SYS_chdir, p.str(fmt.Sprintf("/%05000d", 0)))
	p.do("path over the edge", linux.SYS_chdir, arenaEnd-1)
	for _, k := range p.kinds() {
		p.do("fstat "+k.name, linux.SYS_fstat, k.fd, st)
		p.do("fstatfs", linux.SYS_fstatfs, k.fd, st)
		p.do("fchdir", linux.SYS_fchdir, k.fd)
		p.do("empty path", linux.SYS_newfstatat, k.fd, p.str(""), st, unix.AT_EMPTY_PATH)
		p.do("relative", linux.SYS_newfstatat, k.fd, p.str("f"), st, 0)
		p.do("fchmod", linux.SYS_fchmod, k.fd, 0o600)
		p.do("fchown", linux.SYS_fchown, k.fd, 0, 0)
		p.do("getdents64", linux.SYS_getdents64, k.fd, st, 10)
		p.do("getdents", linux.SYS_getdents, k.fd, st, 10)
	}
}

func opening(p *prog) {
	p.tree()
	for _, name := range names {
		undo := p.cut()
		path := p.str(name)
		for _, flags := range []uint64{unix.O_RDONLY, unix.O_WRONLY | unix.O_NONBLOCK, unix.O_RDWR, 3, unix.O_CREAT | unix.O_EXCL, unix.O_CREAT, unix.O_DIRECTORY,
			unix.O_NOFOLLOW, unix.O_PATH, unix.O_PATH | unix.O_NOFOLLOW, unix.O_TRUNC | unix.O_WRONLY | unix.O_NONBLOCK, unix.O_TMPFILE | unix.O_RDWR, unix.O_TMPFILE, unix.O_CREAT | unix.O_DIRECTORY, 1 << 30} {
			if name == "/fifo" && flags&unix.O_NONBLOCK == 0 && flags&unix.O_PATH == 0 {
				continue // it would wait
			}
			fd := p.do(fmt.Sprintf("open %q %#x", name, flags), linux.SYS_open, path, flags, 0o640)
			if _, bad := failed(fd); !bad {
				p.do("flags", linux.SYS_fcntl, fd, unix.F_GETFL)
				p.close(fd)
			}
			for _, resolve := range []uint64{0, unix.RESOLVE_NO_SYMLINKS, unix.RESOLVE_BENEATH, unix.RESOLVE_IN_ROOT, unix.RESOLVE_NO_XDEV, unix.RESOLVE_NO_MAGICLINKS, 0x100} {
				mode := b2u(flags&(unix.O_CREAT|0o20000000) != 0) * 0o640
				fd := p.do(fmt.Sprintf("openat2 %#x", resolve), linux.SYS_openat2, at, path, p.words(flags, mode, resolve), 24)
				if _, bad := failed(fd); !bad {
					p.close(fd)
				}
			}
			for _, made := range []string{"/none", "/nowhere"} {
				p.ask(linux.SYS_unlink, p.str(made))
			}
		}
		undo()
	}
	for _, size := range []uint64{0, 8, 23, 24, 25, 32, 5000} {
		p.do(fmt.Sprintf("openat2 size %d", size), linux.SYS_openat2, at, p.str("/none"), p.words(0, 0, 0, 0), size)
	}
	p.do("openat2 with a mode", linux.SYS_openat2, at, p.str("/f"), p.words(0, 0o600, 0), 24)
	p.do("openat2 with more", linux.SYS_openat2, at, p.str("/f"), p.words(0, 0, 0, 1), 32)
	p.do("creat", linux.SYS_creat, p.str("/new"), 0o7777)
	p.do("openat with a file", linux.SYS_openat, p.open("/f", 0), p.str("x"), 0, 0)
	p.do("openat with nothing", linux.SYS_openat, 277, p.str("x"), 0, 0)
	p.do("open nowhere", linux.SYS_open, 8, 0, 0)
}

func changing(p *prog) {
	p.tree()
	for _, name := range names {
		path := p.str(name)
		if name == "/" || name == "." || name == ".." || name == "/d/.." {
			path = p.str("/d")
		}
		what := func(call string) string { return fmt.Sprintf("%s %q", call, name) }
		p.do(what("mkdir"), linux.SYS_mkdir, path, 0o755)
		p.do(what("mknod"), linux.SYS_mknod, path, linux.S_IFREG|0o644, 0)
		p.do(what("mknod bad"), linux.SYS_mknod, path, linux.S_IFDIR, 0)
		p.do(what("symlink"), linux.SYS_symlink, p.str("t"), path)
		p.do(what("link to"), linux.SYS_link, p.str("/g"), path)
		p.do(what("link from"), linux.SYS_link, path, p.str("/linked"))
		p.do(what("linkat follow"), linux.SYS_linkat, at, path, at, p.str("/linked2"), unix.AT_SYMLINK_FOLLOW)
		p.do(what("linkat flags"), linux.SYS_linkat, at, path, at, p.str("/linked3"), 1)
		p.do(what("chmod"), linux.SYS_chmod, path, 0o755)
		p.do(what("chown"), linux.SYS_chown, path, 0, 0)
		p.do(what("lchown"), linux.SYS_lchown, path, neg(1), neg(1))
		p.do(what("fchownat"), linux.SYS_fchownat, at, path, 0, 0, 0x8000)
		p.do(what("utimensat"), linux.SYS_utimensat, at, path, p.words(1, 2, 3, 4), 0)
		p.do(what("utimensat bad"), linux.SYS_utimensat, at, path, p.words(1, 1e9, 3, 4), 0)
		p.do(what("utimensat omit"), linux.SYS_utimensat, at, path, p.words(1, unix.UTIME_OMIT, 3, unix.UTIME_OMIT), unix.AT_SYMLINK_NOFOLLOW)
		p.do(what("utime"), linux.SYS_utime, path, p.words(1, 2))
		p.do(what("utimes"), linux.SYS_utimes, path, p.words(1, 2, 3, 1e6))
		p.do(what("futimesat"), linux.SYS_futimesat, at, path, p.words(1, 2, 3, 4))
		for _, to := range []string{"/new", "/f", "/d", "/d/e/x", "/empty", "/none/x", "/f/y", ""} {
			for _, flags := range []uint64{0, unix.RENAME_NOREPLACE, unix.RENAME_EXCHANGE, 3, 8} {
				v := p.do(fmt.Sprintf("rename %q %q %d", name, to, flags), linux.SYS_renameat2, at, path, at, p.str(to), flags)
				if v == 0 && to != "/d/e/x" { // back, so that the next finds it
					p.do("back", linux.SYS_renameat2, at, p.str(to), at, path, flags&2)
				}
			}
			p.next = arena + 1<<16
		}
		p.do(what("rmdir"), linux.SYS_rmdir, path)
		p.do(what("unlink"), linux.SYS_unlink, path)
		p.do(what("unlinkat"), linux.SYS_unlinkat, at, path, 1)
		p.next = arena + 1<<16
	}
	p.do("umask", linux.SYS_umask, 0o7777)
	p.do("umask", linux.SYS_umask, 0o22)
}

func listing(p *prog) {
	p.tree()
	buf := p.room(4096)
	for _, dir := range []string{"/d", "/empty"} {
		fd := p.open(dir, unix.O_RDONLY|unix.O_DIRECTORY)
		for _, size := range []uint64{1, 20, 4096, 4096} {
			p.do("getdents64 "+dir, linux.SYS_getdents64, fd, buf, size)
		}
		p.do("rewind", linux.SYS_lseek, fd, 0, 0)
		p.do("getdents", linux.SYS_getdents, fd, buf, 4096)
		p.do("rewind", linux.SYS_lseek, fd, 0, 0)
		p.do("to nowhere", linux.SYS_getdents64, fd, 8, 4096)
		p.must(linux.SYS_rename, p.str(dir), p.str("/gone"))
		p.ask(linux.SYS_unlink, p.str("/gone/x"))
		p.ask(linux.SYS_rmdir, p.str("/gone/e"))
		p.do("rmdir", linux.SYS_rmdir, p.str("/gone"))
		p.do("getdents64 of what is gone", linux.SYS_getdents64, fd, buf, 4096)
		p.do("create in it", linux.SYS_openat, fd, p.str("x"), unix.O_CREAT|unix.O_WRONLY, 0o644)
		p.do("go there", linux.SYS_fchdir, fd)
		p.do("where", linux.SYS_getcwd, buf, 100)
		p.must(linux.SYS_chdir, p.str("/"))
	}
}

func attributes(p *prog) {
	p.tree()
	f := p.open("/f", unix.O_RDWR)
	o := p.open("/f", unix.O_PATH)
	buf := p.room(65536)
	for _, name := range []string{"user.a", "user.", "user", "", "trusted.t", "security.s", "system.x", "system.posix_acl_access", "other.x", fmt.Sprintf("user.%0260d", 0)} {
		n := p.str(name)
		for _, path := range []string{"/f", "/d", "/l", "/fifo", "/none"} {
			undo := p.cut()
			s := p.str(path)
			what := fmt.Sprintf("%.12q of %s", name, path)
			for _, flags := range []uint64{unix.XATTR_REPLACE, unix.XATTR_CREATE, unix.XATTR_CREATE, 0, 3, 4} {
				p.do(fmt.Sprintf("set %s %d", what, flags), linux.SYS_setxattr, s, n, p.str("value"), 5, flags)
			}
			p.do("set nothing", linux.SYS_setxattr, s, n, 0, 0, 0)
			p.do("set too much", linux.SYS_setxattr, s, n, buf, 65537, 0)
			p.do("lset", linux.SYS_lsetxattr, s, n, p.str("linkvalue"), 9, 0)
			for _, size := range []uint64{0, 1, 100} {
				p.do("get "+what, linux.SYS_getxattr, s, n, buf, size)
				p.do("lget "+what, linux.SYS_lgetxattr, s, n, buf, size)
			}
			p.show("value", buf, 9)
			for _, size := range []uint64{0, 1, 4096} {
				p.do("list "+what, linux.SYS_listxattr, s, buf, size)
				p.do("llist "+what, linux.SYS_llistxattr, s, buf, size)
			}
			p.do("remove "+what, linux.SYS_removexattr, s, n)
			p.do("remove again", linux.SYS_lremovexattr, s, n)
			undo()
		}
		p.do("fset", linux.SYS_fsetxattr, f, n, p.str("v"), 1, 0)
		p.do("fget", linux.SYS_fgetxattr, f, n, buf, 10)
		p.do("flist", linux.SYS_flistxattr, f, buf, 100)
		p.do("fremove", linux.SYS_fremovexattr, f, n)
		p.do("of a path", linux.SYS_fgetxattr, o, n, buf, 10)
		p.do("of nothing", linux.SYS_fgetxattr, 277, n, buf, 10)
	}
	p.do("name nowhere", linux.SYS_getxattr, p.str("/f"), 8, buf, 10)
	p.do("value nowhere", linux.SYS_setxattr, p.str("/f"), p.str("trusted.y"), 8, 10, 0)
}

func mounts(p *prog) {
	p.tree()
	none, tmpfs, d := p.str("none"), p.str("tmpfs"), p.str("/d")
	for _, kind := range []string{"tmpfs", "proc", "nothing", "", "ramfs"} {
		for _, dir := range []string{"/d", "/f", "/none", ""} {
			p.do(fmt.Sprintf("mount %q %q", kind, dir), linux.SYS_mount, none, p.str(dir), p.str(kind), 0, 0)
			p.do("umount", linux.SYS_umount2, p.str(dir), 0)
		}
	}
	for _, data := range []string{"size=1m", "size=1x", "mode=700", "mode=9", "uid=5,gid=6", "nr_inodes=10", "nonsense", "nr_blocks=1,,mode=1777", "size=10%"} {
		p.do("mount "+data, linux.SYS_mount, none, d, tmpfs, 0, p.str(data))
		p.do("umount", linux.SYS_umount2, d, 0)
	}
	for _, flags := range []uint64{unix.MS_RDONLY, unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, unix.MS_NOATIME, unix.MS_REMOUNT, unix.MS_BIND, unix.MS_MOVE, unix.MS_PRIVATE, unix.MS_SHARED, unix.MS_SLAVE, unix.MS_UNBINDABLE, unix.MS_SHARED | unix.MS_PRIVATE} {
		p.do(fmt.Sprintf("mount flags %#x", flags), linux.SYS_mount, none, d, tmpfs, flags, 0)
		st := p.room(128)
		p.do("statfs", linux.SYS_statfs, d, st)
		p.note("flags %#x", p.u64(st+80))
		p.do("write", linux.SYS_open, p.str("/d/new"), unix.O_CREAT|unix.O_WRONLY, 0o644)
		p.do("remount", linux.SYS_mount, none, d, 0, unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, 0)
		p.do("unlink", linux.SYS_unlink, p.str("/d/new"))
		p.do("busy", linux.SYS_umount2, d, unix.MNT_EXPIRE)
		p.do("detach", linux.SYS_umount2, d, unix.MNT_DETACH)
		p.do("again", linux.SYS_umount2, d, unix.MNT_DETACH)
		p.do("bad flags", linux.SYS_umount2, d, 0x100)
	}
	// Binds and moves.
	p.do("bind", linux.SYS_mount, d, p.str("/empty"), 0, unix.MS_BIND, 0)
	p.do("through it", linux.SYS_access, p.str("/empty/e"), 0)
	p.do("move", linux.SYS_mount, p.str("/empty"), p.str("/tmp"), 0, unix.MS_MOVE, 0)
	p.do("move onto itself", linux.SYS_mount, p.str("/tmp"), p.str("/tmp/e"), 0, unix.MS_MOVE, 0)
	p.do("bind a file", linux.SYS_mount, p.str("/g"), p.str("/f"), 0, unix.MS_BIND, 0)
	p.do("bind a file on a directory", linux.SYS_mount, p.str("/g"), d, 0, unix.MS_BIND, 0)
	p.do("remove what is mounted on", linux.SYS_unlink, p.str("/f"))
	p.do("remove a mount", linux.SYS_rmdir, p.str("/tmp"))
	p.do("umount the file", linux.SYS_umount2, p.str("/f"), unix.UMOUNT_NOFOLLOW)
	p.do("umount not a mount", linux.SYS_umount2, p.str("/g"), 0)
	p.do("pivot_root of no mount", linux.SYS_pivot_root, d, p.str("/d/e"))
	p.do("pivot_root outside", linux.SYS_pivot_root, p.str("/empty"), d)
	p.do("chroot of a file", linux.SYS_chroot, p.str("/g"))
}
