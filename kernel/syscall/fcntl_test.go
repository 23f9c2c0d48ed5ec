package syscall_test

import (
	"fmt"

	"golang.org/x/sys/unix"

	"hardtack/abi/linux"
)

// named is a descriptor with what to call it.
type named struct {
	name string
	fd   uint64
}

// kinds are descriptors of all kinds that a script can have, and two that are none.
func (p *prog) kinds() []named {
	r, w := p.pipe()
	f := p.file("/f", "0123456789")
	a, b := p.pair(linux.SYS_socketpair, unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	name := p.str("memory")
	return []named{
		{"pipe-read", r}, {"pipe-write", w}, {"file", f},
		{"read-only", p.open("/f", unix.O_RDONLY)},
		{"write-only", p.open("/f", unix.O_WRONLY|unix.O_APPEND)},
		{"path", p.open("/f", unix.O_PATH)},
		{"directory", p.open("/tmp", unix.O_RDONLY|unix.O_DIRECTORY)},
		{"null", p.open("/dev/null", unix.O_RDWR)},
		{"zero", p.open("/dev/zero", unix.O_RDWR)},
		{"full", p.open("/dev/full", unix.O_RDWR)},
		{"pair", a}, {"pair2", b},
		{"udp", p.must(linux.SYS_socket, unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)},
		{"tcp", p.must(linux.SYS_socket, unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)},
		{"eventfd", p.must(linux.SYS_eventfd2, 3, unix.EFD_NONBLOCK)},
		{"epoll", p.must(linux.SYS_epoll_create1, 0)},
		{"timerfd", p.must(linux.SYS_timerfd_create, unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK)},
		{"inotify", p.must(linux.SYS_inotify_init1, unix.IN_NONBLOCK)},
		{"signalfd", p.must(linux.SYS_signalfd4, neg(1), p.words(1<<9), 8, unix.SFD_NONBLOCK)},
		{"memfd", p.must(linux.SYS_memfd_create, name, unix.MFD_ALLOW_SEALING)},
		{"pidfd", p.must(linux.SYS_pidfd_open, p.must(linux.SYS_getpid), 0)},
		{"none", 277}, {"negative", neg(1)},
	}
}

func fcntlFlags(p *prog) {
	for _, k := range p.kinds() {
		for _, cmd := range []uint64{unix.F_GETFD, unix.F_GETFL, unix.F_GETOWN, unix.F_GETSIG, unix.F_GETLEASE, unix.F_GETPIPE_SZ, 2000} {
			p.do(fmt.Sprintf("fcntl(%s, %d)", k.name, cmd), linux.SYS_fcntl, k.fd, cmd, 0)
		}
		for _, cmd := range []uint64{unix.F_SETFD, unix.F_SETFL, unix.F_SETSIG, unix.F_SETOWN, unix.F_SETLEASE, unix.F_NOTIFY} {
			for _, v := range []uint64{0, 1, 2, unix.O_APPEND | unix.O_NONBLOCK, unix.O_NOATIME} {
				if cmd == unix.F_SETOWN && v > 1 {
					continue // there may be such a process
				}
				p.do(fmt.Sprintf("fcntl(%s, %d, %#x)", k.name, cmd, v), linux.SYS_fcntl, k.fd, cmd, v)
			}
			p.do("flags", linux.SYS_fcntl, k.fd, unix.F_GETFL, 0)
			p.do("descriptor flags", linux.SYS_fcntl, k.fd, unix.F_GETFD, 0)
		}
	}
}

func fcntlDup(p *prog) {
	f := p.file("/f", "x")
	for _, v := range []uint64{0, 10, 100, 1023, 1024, 5000, neg(1)} {
		for _, cmd := range []uint64{unix.F_DUPFD, unix.F_DUPFD_CLOEXEC} {
			fd := p.do(fmt.Sprintf("fcntl(file, %d, %d)", cmd, int64(v)), linux.SYS_fcntl, f, cmd, v)
			if _, bad := failed(fd); !bad {
				p.do("its flags", linux.SYS_fcntl, fd, unix.F_GETFD, 0)
				p.close(fd)
			}
		}
	}
	for _, to := range []uint64{f, 50, 1024, neg(1)} {
		p.do("dup2", linux.SYS_dup2, f, to)
		p.do("dup3", linux.SYS_dup3, f, to, unix.O_CLOEXEC)
		p.do("dup3 bad flags", linux.SYS_dup3, f, to, 1)
	}
	p.do("dup2 itself, closed", linux.SYS_dup2, 200, 200)
	p.do("dup closed", linux.SYS_dup, 200)
	p.must(linux.SYS_prlimit64, 0, unix.RLIMIT_NOFILE, p.words(10, 4096), 0)
	p.do("dup up to the limit", linux.SYS_dup, f)
	for range 8 {
		p.do("and on", linux.SYS_dup, f)
	}
	p.do("dup2 beyond it", linux.SYS_dup2, f, 10)
	p.do("fcntl beyond it", linux.SYS_fcntl, f, unix.F_DUPFD, 10)
	for _, r := range [][3]uint64{{3, 2, 0}, {20, 60, 1}, {20, 60, unix.CLOSE_RANGE_CLOEXEC}, {5, 8, unix.CLOSE_RANGE_CLOEXEC}, {6, 800, unix.CLOSE_RANGE_UNSHARE}} {
		p.do(fmt.Sprintf("close_range(%d, %d, %d)", r[0], r[1], r[2]), linux.SYS_close_range, r[0], r[1], r[2])
	}
	for fd := range uint64(12) {
		p.do("still open", linux.SYS_fcntl, fd, unix.F_GETFD, 0)
	}
	p.do("close", linux.SYS_close, 4)
	p.do("close again", linux.SYS_close, 4)
}

// lock puts a struct flock into the arena.
func (p *prog) lock(typ, whence uint16, start, n int64, pid uint32) uint64 {
	b := le.AppendUint16(nil, typ)
	b = le.AppendUint16(b, whence)
	b = append(b, 0, 0, 0, 0)
	b = le.AppendUint64(b, uint64(start))
	b = le.AppendUint64(b, uint64(n))
	b = le.AppendUint32(b, pid)
	return p.give(append(b, 0, 0, 0, 0))
}

func fcntlLocks(p *prog) {
	f := p.file("/f", "0123456789")
	g := p.open("/f", unix.O_RDWR)
	ro := p.open("/f", unix.O_RDONLY)
	wo := p.open("/f", unix.O_WRONLY)
	p.must(linux.SYS_lseek, f, 4, 0)
	for _, cmd := range []uint64{unix.F_SETLK, unix.F_GETLK, unix.F_OFD_SETLK, unix.F_OFD_GETLK} {
		for _, typ := range []uint16{unix.F_RDLCK, unix.F_WRLCK, unix.F_UNLCK, 7} {
			for _, w := range []uint16{0, 1, 2, 3} {
				for _, r := range [][2]int64{{0, 0}, {2, 3}, {-1, 1}, {5, -2}, {1 << 62, 1 << 62}} {
					undo := p.cut()
					l := p.lock(typ, w, r[0], r[1], 0)
					p.do(fmt.Sprintf("fcntl(%d, type %d whence %d start %d len %d)", cmd, typ, w, r[0], r[1]), linux.SYS_fcntl, f, cmd, l)
					if cmd == unix.F_GETLK || cmd == unix.F_OFD_GETLK {
						p.show("it", l, 24)
					}
					undo()
				}
			}
		}
	}
	p.do("unlock all", linux.SYS_fcntl, f, unix.F_OFD_SETLK, p.lock(unix.F_UNLCK, 0, 0, 0, 0))
	p.do("write lock of a reader", linux.SYS_fcntl, ro, unix.F_SETLK, p.lock(unix.F_WRLCK, 0, 0, 0, 0))
	p.do("read lock of a writer", linux.SYS_fcntl, wo, unix.F_SETLK, p.lock(unix.F_RDLCK, 0, 0, 0, 0))
	p.do("OFD with a pid", linux.SYS_fcntl, f, unix.F_OFD_SETLK, p.lock(unix.F_WRLCK, 0, 0, 0, 1))
	p.do("OFD", linux.SYS_fcntl, f, unix.F_OFD_SETLK, p.lock(unix.F_WRLCK, 0, 2, 2, 0))
	for _, r := range [][2]int64{{0, 2}, {0, 3}, {3, 1}, {4, 1}, {0, 0}} {
		p.do("another's", linux.SYS_fcntl, g, unix.F_OFD_SETLK, p.lock(unix.F_RDLCK, 0, r[0], r[1], 0))
		l := p.lock(unix.F_WRLCK, 0, r[0], r[1], 0)
		p.do("who has it", linux.SYS_fcntl, g, unix.F_GETLK, l)
		p.show("lock", l, 28)
	}
	p.do("no address", linux.SYS_fcntl, f, unix.F_SETLK, 0)
	for _, op := range []uint64{unix.LOCK_SH, unix.LOCK_EX | unix.LOCK_NB, unix.LOCK_UN, 0, 16, unix.LOCK_SH | unix.LOCK_EX} {
		p.do(fmt.Sprintf("flock %d", op), linux.SYS_flock, f, op)
		p.do("another's", linux.SYS_flock, g, op|unix.LOCK_NB)
	}
	p.do("flock of a path", linux.SYS_flock, p.open("/f", unix.O_PATH), unix.LOCK_SH)
	p.do("flock of nothing", linux.SYS_flock, 277, unix.LOCK_SH)
}

func fcntlOwner(p *prog) {
	r, _ := p.pipe()
	pid := p.must(linux.SYS_getpid)
	const setOwnEx, getOwnEx, getOwnerUIDs = 15, 16, 17
	for _, typ := range []uint32{0, 1, 2, 3} {
		for _, id := range []uint32{0, uint32(pid), 1 << 28} {
			p.do("F_SETOWN_EX", linux.SYS_fcntl, r, setOwnEx, p.ints(typ, id))
			o := p.room(8)
			p.do("F_GETOWN_EX", linux.SYS_fcntl, r, getOwnEx, o)
			p.note("kind %d, mine %v", p.u32(o), p.u32(o+4) == uint32(pid))
		}
	}
	p.do("F_GETOWN_EX nowhere", linux.SYS_fcntl, r, getOwnEx, 8)
	p.do("F_SETOWN_EX nowhere", linux.SYS_fcntl, r, setOwnEx, 8)
	for _, id := range []uint64{0, pid, neg(1 << 31), 1 << 28} {
		p.do("F_SETOWN", linux.SYS_fcntl, r, unix.F_SETOWN, id)
	}
	o := p.room(8)
	p.do("F_GETOWNER_UIDS", linux.SYS_fcntl, r, getOwnerUIDs, o)
	for _, n := range []uint64{0, 1, 4096, 4097, 100000, 1 << 20, 1 << 31, neg(1)} {
		p.do(fmt.Sprintf("F_SETPIPE_SZ %d", int64(n)), linux.SYS_fcntl, r, unix.F_SETPIPE_SZ, n)
		p.do("F_GETPIPE_SZ", linux.SYS_fcntl, r, unix.F_GETPIPE_SZ)
	}
	const getHint, setHint, getFileHint, setFileHint = 1035, 1036, 1037, 1038
	f := p.file("/f", "x")
	for _, v := range []uint64{0, 1, 5, 6} {
		p.do("F_SET_RW_HINT", linux.SYS_fcntl, f, setHint, p.words(v))
		h := p.room(8)
		p.do("F_GET_RW_HINT", linux.SYS_fcntl, f, getHint, h)
		p.show("hint", h, 8)
	}
}

func fcntlSeals(p *prog) {
	for _, flags := range []uint64{0, unix.MFD_ALLOW_SEALING, unix.MFD_CLOEXEC, 0x100} {
		fd := p.do(fmt.Sprintf("memfd_create %#x", flags), linux.SYS_memfd_create, p.str("m"), flags)
		if _, bad := failed(fd); bad {
			continue
		}
		p.do("seals", linux.SYS_fcntl, fd, unix.F_GET_SEALS)
		p.do("grow", linux.SYS_ftruncate, fd, 8192)
		for _, seal := range []uint64{0x100, unix.F_SEAL_GROW, unix.F_SEAL_SHRINK, unix.F_SEAL_WRITE, unix.F_SEAL_FUTURE_WRITE, unix.F_SEAL_SEAL, unix.F_SEAL_GROW} {
			p.do(fmt.Sprintf("add seal %d", seal), linux.SYS_fcntl, fd, unix.F_ADD_SEALS, seal)
			p.do("seals", linux.SYS_fcntl, fd, unix.F_GET_SEALS)
			p.do("grow", linux.SYS_ftruncate, fd, 12288)
			p.do("shrink", linux.SYS_ftruncate, fd, 4096)
			p.do("write", linux.SYS_pwrite64, fd, p.str("abc"), 3, 0)
			p.do("write behind the end", linux.SYS_pwrite64, fd, p.str("abc"), 3, 20000)
			p.do("allocate", linux.SYS_fallocate, fd, 0, 0, 40000)
			p.do("hole", linux.SYS_fallocate, fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 4096)
			m := p.ok("map", linux.SYS_mmap, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED, fd, 0)
			if _, bad := failed(m); !bad {
				p.do("unmap", linux.SYS_munmap, m, 4096)
			}
			p.do("size", linux.SYS_lseek, fd, 0, 2)
		}
	}
	p.do("memfd_create without a name", linux.SYS_memfd_create, 0, 0)
	p.do("memfd_create with a long name", linux.SYS_memfd_create, p.str(string(make([]byte, 0))+fmt.Sprintf("%0250d", 0)), 0)
	for _, k := range p.kinds() {
		p.do("F_ADD_SEALS of "+k.name, linux.SYS_fcntl, k.fd, unix.F_ADD_SEALS, unix.F_SEAL_GROW)
		p.do("F_SETPIPE_SZ of "+k.name, linux.SYS_fcntl, k.fd, unix.F_SETPIPE_SZ, 8192)
	}
}
