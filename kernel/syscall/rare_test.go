package syscall_test

import (
	"fmt"

	"golang.org/x/sys/unix"

	"hardtack/abi/linux"
)

// leases are F_SETLEASE and F_GETLEASE.
func leases(p *prog) {
	fd := p.file("/lease", "text")
	for _, flags := range []uint64{unix.O_RDONLY, unix.O_WRONLY, unix.O_RDWR} {
		f := p.open("/lease", flags)
		for _, typ := range []uint64{unix.F_RDLCK, unix.F_WRLCK, unix.F_UNLCK, 9} {
			p.do(fmt.Sprint("lease ", flags, " ", typ), linux.SYS_fcntl, f, unix.F_SETLEASE, typ)
			p.do("it is", linux.SYS_fcntl, f, unix.F_GETLEASE, 0)
		}
		p.close(f)
	}
	p.close(fd)
	for _, flags := range []uint64{unix.O_RDONLY, unix.O_WRONLY, unix.O_RDWR} {
		f := p.open("/lease", flags)
		for _, typ := range []uint64{unix.F_RDLCK, unix.F_WRLCK, unix.F_WRLCK, unix.F_RDLCK, unix.F_UNLCK, unix.F_UNLCK} {
			p.do(fmt.Sprint("alone ", flags, " ", typ), linux.SYS_fcntl, f, unix.F_SETLEASE, typ)
			p.do("it is", linux.SYS_fcntl, f, unix.F_GETLEASE, 0)
			p.do("its signal", linux.SYS_fcntl, f, unix.F_SETSIG, uint64(unix.SIGUSR1))
			p.ok("open without waiting", linux.SYS_open, p.str("/lease"), unix.O_RDONLY|unix.O_NONBLOCK, 0)
		}
		p.close(f)
	}
	r, w := p.pipe()
	p.do("a pipe's", linux.SYS_fcntl, r, unix.F_SETLEASE, unix.F_RDLCK)
	p.close(r, w)
	d := p.open("/tmp", unix.O_RDONLY|unix.O_DIRECTORY)
	p.do("a directory's", linux.SYS_fcntl, d, unix.F_SETLEASE, unix.F_RDLCK)
	p.close(d)
}

// accessLists are the attributes that hold access control lists.
func accessLists(p *prog) {
	p.close(p.file("/f", ""))
	p.must(linux.SYS_mkdir, p.str("/d"), 0o755)
	access, deflt := p.str("system.posix_acl_access"), p.str("system.posix_acl_default")
	type entry struct {
		tag, perm uint16
		id        uint32
	}
	list := func(version uint32, entries ...entry) []byte {
		b := le.AppendUint32(nil, version)
		for _, e := range entries {
			b = le.AppendUint32(le.AppendUint16(le.AppendUint16(b, e.tag), e.perm), e.id)
		}
		return b
	}
	const none = ^uint32(0)
	owner, group, mask, others := entry{1, 6, none}, entry{4, 4, none}, entry{0x10, 6, none}, entry{0x20, 4, none}
	value := p.room(256)
	for _, c := range []struct {
		name string
		list []byte
	}{
		{"mode only", list(2, owner, group, others)},
		{"a user", list(2, owner, entry{2, 6, 1000}, group, mask, others)},
		{"a group", list(2, owner, group, entry{8, 7, 50}, mask, others)},
		{"two users", list(2, owner, entry{2, 6, 7}, entry{2, 1, 9}, group, mask, others)},
		{"twice the same", list(2, owner, entry{2, 6, 7}, entry{2, 1, 7}, group, mask, others)},
		{"out of order", list(2, group, owner, others)},
		{"no mask", list(2, owner, entry{2, 6, 1000}, group, others)},
		{"no owner", list(2, group, others)},
		{"bad permission", list(2, entry{1, 9, none}, group, others)},
		{"unknown tag", list(2, owner, entry{64, 1, none}, group, others)},
		{"version", list(1, owner, group, others)},
		{"empty", list(2)},
		{"short", []byte{2, 0}},
		{"part of an entry", list(2, owner, group, others)[:15]},
	} {
		for _, path := range []string{"/f", "/d"} {
			for i, name := range []uint64{access, deflt} {
				p.do(fmt.Sprint(c.name, " ", path, " ", i), linux.SYS_setxattr, p.str(path), name, p.give(c.list), uint64(len(c.list)), 0)
				n := p.do("it is", linux.SYS_getxattr, p.str(path), name, value, 256)
				if _, bad := failed(n); !bad {
					p.show("list", value, int(n))
				}
			}
			st := p.room(144)
			p.must(linux.SYS_stat, p.str(path), st)
			p.note("mode %#o", p.u32(st+24))
		}
		p.do("inherit", linux.SYS_mknod, p.str("/d/n"), linux.S_IFREG|0o666, 0)
		p.do("its list", linux.SYS_getxattr, p.str("/d/n"), access, value, 256)
		p.do("a directory", linux.SYS_mkdir, p.str("/d/m"), 0o777)
		p.do("its list", linux.SYS_getxattr, p.str("/d/m"), deflt, value, 256)
		p.must(linux.SYS_unlink, p.str("/d/n"))
		p.must(linux.SYS_rmdir, p.str("/d/m"))
		p.do("chmod", linux.SYS_chmod, p.str("/f"), 0o640)
		p.do("names", linux.SYS_listxattr, p.str("/d"), value, 256)
		p.do("remove", linux.SYS_removexattr, p.str("/f"), access)
		p.do("remove", linux.SYS_removexattr, p.str("/d"), deflt)
	}
}

// rareMemory are seldom used calls about memory.
func rareMemory(p *prog) {
	const page = 4096
	fd := p.file("/mapped", "")
	p.must(linux.SYS_ftruncate, fd, 8*page)
	shared := p.must(linux.SYS_mmap, 0, 8*page, 3, unix.MAP_SHARED, fd, 0)
	private := p.must(linux.SYS_mmap, 0, 8*page, 3, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, ^uint64(0), 0)
	for i := range uint64(8) {
		p.write(shared+i*page, []byte{byte('a' + i)})
		p.write(private+i*page, []byte{1})
	}
	for _, c := range []struct {
		what             string
		addr, size, prot uint64
		off              uint64
	}{{"swap", shared, page, 0, 5}, {"protection", shared, page, 1, 0}, {"nothing", shared, 0, 0, 0}, {"beyond", shared, page, 0, 1 << 60}, {"private", private, page, 0, 1}, {"nowhere", 1 << 40, page, 0, 0}} {
		p.do("remap "+c.what, linux.SYS_remap_file_pages, c.addr, c.size, c.prot, c.off, 0)
		p.show("first", shared, 1)
	}
	for _, flags := range []uint64{0, 1} {
		p.do("pkey_alloc", linux.SYS_pkey_alloc, flags, 4)
	}
	p.do("pkey_free", linux.SYS_pkey_free, 99)
	pages, status := p.words(private, private+page, 8, shared), p.room(64)
	for _, nodes := range []uint64{0, p.ints(0, 0, 0, 0), p.ints(9, 0, 0, 0), 8} {
		for _, flags := range []uint64{0, 2, 4, 1} {
			p.do(fmt.Sprint("move_pages ", flags), linux.SYS_move_pages, 0, 4, pages, nodes, status, flags)
			p.show("status", status, 16)
		}
	}
	p.do("move_pages of none", linux.SYS_move_pages, 1<<29, 4, pages, 0, status, 0)
	p.do("move_pages of nothing", linux.SYS_move_pages, 0, 0, pages, 0, status, 0)
	pid := p.must(linux.SYS_getpid)
	pf := p.must(linux.SYS_pidfd_open, pid, 0)
	vec := p.words(private, 2*page, private+4*page, page)
	for _, advice := range []uint64{unix.MADV_COLD, unix.MADV_PAGEOUT, unix.MADV_WILLNEED, unix.MADV_DONTNEED, 99} {
		p.do(fmt.Sprint("process_madvise ", advice), linux.SYS_process_madvise, pf, vec, 2, advice, 0)
	}
	p.do("process_madvise flags", linux.SYS_process_madvise, pf, vec, 2, unix.MADV_COLD, 1)
	p.do("process_madvise of a file", linux.SYS_process_madvise, fd, vec, 2, unix.MADV_COLD, 0)
	p.do("process_madvise too many", linux.SYS_process_madvise, pf, vec, 2000, unix.MADV_COLD, 0)
	for _, advice := range []uint64{unix.MADV_NORMAL, unix.MADV_RANDOM, unix.MADV_SEQUENTIAL, unix.MADV_FREE, unix.MADV_DONTFORK, unix.MADV_DOFORK,
		unix.MADV_DONTDUMP, unix.MADV_DODUMP, unix.MADV_WIPEONFORK, unix.MADV_KEEPONFORK, unix.MADV_POPULATE_READ, unix.MADV_POPULATE_WRITE, unix.MADV_REMOVE, 99} {
		for i, addr := range []uint64{private, shared, private + 1, 1 << 40} {
			p.do(fmt.Sprint("madvise ", advice, " ", i), linux.SYS_madvise, addr, 2*page, advice)
		}
	}
	incore := p.room(16)
	for _, n := range []uint64{0, page, 8 * page, 1 << 50} {
		p.do(fmt.Sprint("mincore ", n), linux.SYS_mincore, private, n, incore)
	}
	for _, flags := range []uint64{0, 1, 2, 4, 7, 8} {
		p.do(fmt.Sprint("mlock2 ", flags), linux.SYS_mlock2, private, page, flags)
		p.do(fmt.Sprint("msync ", flags), linux.SYS_msync, shared, page, flags)
	}
	p.do("munlock", linux.SYS_munlock, private, page)
}

// lockFutexes are the operations on futexes that a thread owns.
func lockFutexes(p *prog) {
	tid := uint32(p.must(linux.SYS_gettid))
	f, g := p.room(8), p.room(8)
	soon := p.words(0, 1)
	for _, private := range []uint64{0, 128} {
		for _, v := range []uint32{0, tid, tid | 0x80000000, 1 << 29, 0x40000000, 0x40000000 | tid} {
			for _, op := range []uint64{6, 8, 13, 7} { // LOCK_PI, TRYLOCK_PI, LOCK_PI2, UNLOCK_PI
				p.write(f, le.AppendUint32(nil, v))
				row := p.brief(linux.SYS_futex, f, op|private, 0, soon, 0, 0)
				after := p.u32(f)
				p.note("operation %d value %#x mine %v:%s owned %v flags %#x", op|private, v&^tid, v&0x3fffffff == tid, row, after&0x3fffffff == tid, after>>30)
				p.ask(linux.SYS_futex, f, 7|private, 0, 0, 0, 0)
			}
			for _, cmp := range []uint64{uint64(v), 5} {
				for _, wake := range []uint64{1, 2} {
					p.write(f, le.AppendUint32(nil, v))
					p.do("requeue", linux.SYS_futex, f, 12|private, wake, 1, g, cmp)
				}
				p.do("wait to be requeued", linux.SYS_futex, f, 11|private, cmp, soon, g, 0)
			}
		}
		p.do("requeue to itself", linux.SYS_futex, f, 12|private, 1, 1, f, uint64(p.u32(f)))
		p.do("wait for itself", linux.SYS_futex, f, 11|private, uint64(p.u32(f)), soon, f, 0)
		p.do("lock nowhere", linux.SYS_futex, 8, 6|private, 0, soon, 0, 0)
		p.do("unlock at an odd address", linux.SYS_futex, f+1, 7|private, 0, 0, 0, 0)
		p.do("bad time", linux.SYS_futex, f, 6|private, 0, p.words(0, 1e9), 0, 0)
	}
}
