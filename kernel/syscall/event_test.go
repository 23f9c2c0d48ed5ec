package syscall_test

import (
	"fmt"

	"golang.org/x/sys/unix"

	"hardtack/abi/linux"
)

func events(p *prog) {
	kinds := p.kinds()
	ep := p.must(linux.SYS_epoll_create1, unix.EPOLL_CLOEXEC)
	evs := p.room(1024)
	p.do("epoll_create 0", linux.SYS_epoll_create, 0)
	p.do("epoll_create1 flags", linux.SYS_epoll_create1, 1)
	for _, k := range kinds {
		fds := p.ints(uint32(k.fd), 0xffff)
		p.do("poll "+k.name, linux.SYS_poll, fds, 1, 0)
		p.note("events %#x", p.u32(fds+4)>>16)
		for _, e := range []uint32{unix.EPOLLIN, unix.EPOLLIN | unix.EPOLLET, unix.EPOLLIN | unix.EPOLLEXCLUSIVE, unix.EPOLLOUT | unix.EPOLLONESHOT} {
			ev := p.ints(e, 5, 0)
			for _, op := range []uint64{3, 1, 1, 3, 2, 2, 9} {
				p.do(fmt.Sprintf("epoll_ctl(%d, %s, %#x)", op, k.name, e), linux.SYS_epoll_ctl, ep, op, k.fd, ev)
			}
		}
		p.do("epoll_ctl of no epoll", linux.SYS_epoll_ctl, k.fd, 1, 0, p.ints(1, 0, 0))
		p.do("add", linux.SYS_epoll_ctl, ep, 1, k.fd, p.ints(unix.EPOLLIN|unix.EPOLLOUT, 5, 0))
		p.do("add from nowhere", linux.SYS_epoll_ctl, ep, 1, k.fd, 8)
		if n := p.do("epoll_wait", linux.SYS_epoll_wait, ep, evs, 10, 0); n == 1 {
			p.show("event", evs, 12)
		}
		p.ask(linux.SYS_epoll_ctl, ep, 2, k.fd, 0)
		if k.fd < 64 {
			in, out := p.words(1<<k.fd), p.words(1<<k.fd)
			p.do("select", linux.SYS_select, 64, in, out, 0, p.words(0, 0))
			p.note("%v %v", p.u64(in) != 0, p.u64(out) != 0)
			p.do("pselect6", linux.SYS_pselect6, 64, in, 0, 0, p.words(0, 0), p.words(0, 8))
		}
		p.do("ppoll", linux.SYS_ppoll, fds, 1, p.words(0, 0), 0, 8)
	}
	p.do("epoll_wait 0", linux.SYS_epoll_wait, ep, evs, 0, 0)
	p.do("epoll_wait itself", linux.SYS_epoll_ctl, ep, 1, ep, p.ints(1, 0, 0))
	p.do("epoll_pwait2 bad", linux.SYS_epoll_pwait2, ep, evs, 1, p.words(0, 1e9), 0, 8)
	p.do("epoll_pwait size", linux.SYS_epoll_pwait, ep, evs, 1, 0, p.words(0), 7)
	p.do("poll too many", linux.SYS_poll, evs, 5000, 0)
	p.do("poll nowhere", linux.SYS_poll, 8, 1, 0)
	p.do("ppoll bad", linux.SYS_ppoll, evs, 0, p.words(0, 1e9), 0, 8)
	p.do("select negative", linux.SYS_select, neg(1), 0, 0, 0, p.words(0, 0))
	p.do("select bad time", linux.SYS_select, 0, 0, 0, 0, p.words(neg(1), 0))
	p.do("select of a closed one", linux.SYS_select, 60, p.words(1<<58), 0, 0, p.words(0, 0))
	for _, flags := range []uint64{0, unix.EFD_SEMAPHORE, 2} {
		fd := p.do("eventfd2", linux.SYS_eventfd2, 2, flags|unix.EFD_NONBLOCK)
		if _, bad := failed(fd); bad {
			continue
		}
		v := p.room(8)
		for _, n := range []uint64{0, 5, ^uint64(0), ^uint64(0) - 1} {
			p.do("write", linux.SYS_write, fd, p.words(n), 8)
			p.do("read", linux.SYS_read, fd, v, 8)
			p.note("value %d", p.u64(v))
		}
		p.do("short", linux.SYS_read, fd, v, 4)
	}
	p.file("/w", "x")
	in := p.must(linux.SYS_inotify_init1, unix.IN_NONBLOCK)
	p.do("inotify flags", linux.SYS_inotify_init1, 1)
	for _, mask := range []uint64{0, unix.IN_ALL_EVENTS, unix.IN_ONLYDIR | unix.IN_MODIFY, unix.IN_MASK_ADD | unix.IN_MASK_CREATE | 2, unix.IN_MASK_CREATE | 2, 1 << 20} {
		for _, name := range []string{"/w", "/tmp", "/none"} {
			p.do(fmt.Sprintf("inotify_add_watch %s %#x", name, mask), linux.SYS_inotify_add_watch, in, p.str(name), mask)
		}
	}
	p.close(p.file("/tmp/new", "text"))
	p.must(linux.SYS_rename, p.str("/tmp/new"), p.str("/tmp/other"))
	p.must(linux.SYS_unlink, p.str("/tmp/other"))
	for range 12 {
		n := p.do("event", linux.SYS_read, in, evs, 48)
		if _, bad := failed(n); !bad && n >= 16 {
			p.show("it", evs, 8)
		}
	}
	p.do("short read", linux.SYS_read, in, evs, 10)
	p.do("rm_watch", linux.SYS_inotify_rm_watch, in, 1)
	p.do("rm_watch again", linux.SYS_inotify_rm_watch, in, 1)
	p.do("rm_watch of no inotify", linux.SYS_inotify_rm_watch, 0, 1)
}

func futexes(p *prog) {
	f := p.ints(5, 0, 0, 0)
	zero := p.words(0, 0)
	for _, flags := range []uint64{0, 128, 256, 512} {
		for op := range uint64(14) {
			if op == 6 || op == 8 || op == 13 || op == 11 {
				continue // a lock's owner is a thread
			}
			p.do(fmt.Sprintf("futex %d", op|flags), linux.SYS_futex, f, op|flags, 4, zero, f+4, 1)
			p.do("at an odd address", linux.SYS_futex, f+1, op|flags, 4, zero, f+4, 1)
			p.do("nowhere", linux.SYS_futex, 8, op|flags, 4, zero, f+4, 1)
			p.do("bad time", linux.SYS_futex, f, op|flags, 5, p.words(0, 1e9), f+4, 1)
		}
	}
	p.do("timeout", linux.SYS_futex, f, 0, 5, p.words(0, 1000), 0, 0)
	p.do("bitset 0", linux.SYS_futex, f, 9, 5, zero, 0, 0)
	p.do("wake bitset 0", linux.SYS_futex, f, 10, 5, 0, 0, 0)
	p.do("requeue negative", linux.SYS_futex, f, 3, neg(1), neg(1), f+4, 0)
	p.do("compare", linux.SYS_futex, f, 4, 1, 1, f+4, 6)
	p.do("lock", linux.SYS_futex, f+8, 6, 0, 0, 0, 0)
	p.do("lock again", linux.SYS_futex, f+8, 6, 0, 0, 0, 0)
	p.do("trylock", linux.SYS_futex, f+8, 8, 0, 0, 0, 0)
	p.do("unlock", linux.SYS_futex, f+8, 7, 0, 0, 0, 0)
	p.do("unlock again", linux.SYS_futex, f+8, 7, 0, 0, 0, 0)
	p.do("lock2", linux.SYS_futex, f+8, 13, 0, p.words(1, 0), 0, 0)
	p.do("unlock", linux.SYS_futex, f+8, 7, 0, 0, 0, 0)
	w := p.words(5, f, 2, 0)
	p.do("waitv mismatch", linux.SYS_futex_waitv, p.words(6, f, 2, 0), 1, 0, 0, 1)
	p.do("waitv timeout", linux.SYS_futex_waitv, w, 1, 0, p.words(0, 1), 1)
	p.do("waitv none", linux.SYS_futex_waitv, w, 0, 0, 0, 1)
	p.do("waitv too many", linux.SYS_futex_waitv, w, 129, 0, 0, 1)
	p.do("waitv flags", linux.SYS_futex_waitv, w, 1, 1, 0, 1)
	p.do("waitv clock", linux.SYS_futex_waitv, w, 1, 0, p.words(0, 1), 7)
	p.do("set_robust_list size", linux.SYS_set_robust_list, f, 23)
	p.do("set_robust_list", linux.SYS_set_robust_list, 0, 24)
	p.do("get_robust_list", linux.SYS_get_robust_list, 0, p.room(8), p.room(8))
	p.do("get_robust_list none", linux.SYS_get_robust_list, 1<<29, p.room(8), p.room(8))
}

func systemV(p *prog) {
	buf := p.room(256)
	for _, key := range []uint64{0, 77, 77} {
		for _, size := range []uint64{0, 1, 4096, 1 << 62} {
			for _, flags := range []uint64{0, 0o1000 | 0o600, 0o3000 | 0o600} {
				p.ok(fmt.Sprintf("shmget %d %d %#o", key, size, flags), linux.SYS_shmget, key, size, flags)
				p.ok("semget", linux.SYS_semget, key, size%40000, flags)
				p.ok("msgget", linux.SYS_msgget, key, flags)
			}
		}
	}
	const rmid = 0
	p.must(linux.SYS_shmctl, p.must(linux.SYS_shmget, 77, 0, 0), rmid)
	p.must(linux.SYS_msgctl, p.must(linux.SYS_msgget, 77, 0), rmid)
	p.must(linux.SYS_semctl, p.must(linux.SYS_semget, 77, 0, 0), 0, rmid)
	shm := p.must(linux.SYS_shmget, 0, 8192, 0o600)
	p.do("shmat", linux.SYS_shmat, shm, free, 0)
	p.do("shmat there", linux.SYS_shmat, shm, free, 0)
	p.do("shmat odd", linux.SYS_shmat, shm, free+1, 0)
	p.do("shmat rounded", linux.SYS_shmat, shm, free+0x10001, 0o20000)
	p.do("shmat remap 0", linux.SYS_shmat, shm, 0, 0o40000)
	p.do("shmat of none", linux.SYS_shmat, 999999, 0, 0)
	for _, cmd := range []uint64{0, 1, 2, 3, 11, 12, 13, 14, 99} {
		if cmd == 0 || cmd == 3 || cmd == 14 || cmd == 13 {
			continue
		}
		p.ok(fmt.Sprintf("shmctl %d", cmd), linux.SYS_shmctl, shm, cmd, buf)
		p.do("of none", linux.SYS_shmctl, 999999, cmd, buf)
		p.do("to nowhere", linux.SYS_shmctl, shm, cmd, 8)
	}
	p.do("shmdt", linux.SYS_shmdt, free)
	p.do("shmdt again", linux.SYS_shmdt, free)
	p.do("remove", linux.SYS_shmctl, shm, 0, 0)
	sem := p.must(linux.SYS_semget, 0, 3, 0o600)
	op := func(num, op, flg int) uint64 {
		return p.give([]byte{byte(num), 0, byte(op), byte(op >> 8), byte(flg), byte(flg >> 8)})
	}
	for _, o := range [][3]int{{0, 2, 0}, {0, -1, 0}, {0, -5, 0o4000}, {0, 0, 0o4000}, {1, 0, 0}, {7, 1, 0}, {2, 1, 0x1000}, {1, 32767, 0}, {1, 32767, 0}} {
		p.do(fmt.Sprint("semop ", o), linux.SYS_semop, sem, op(o[0], o[1], o[2]), 1)
	}
	p.do("semop none", linux.SYS_semop, sem, buf, 0)
	p.do("semop too many", linux.SYS_semop, sem, buf, 501)
	p.do("semtimedop", linux.SYS_semtimedop, sem, op(2, -9, 0), 1, p.words(0, 1000))
	p.do("semtimedop bad", linux.SYS_semtimedop, sem, op(2, -9, 0), 1, p.words(0, 1e9))
	for _, cmd := range []uint64{11, 12, 13, 14, 15, 16, 17, 99} {
		for _, num := range []uint64{0, 2, 3, neg(1)} {
			arg := uint64(5)
			if cmd == 13 || cmd == 17 {
				arg = p.ints(1, 2, 3, 4)
			}
			v := p.ask(linux.SYS_semctl, sem, num, cmd, arg)
			if e, bad := failed(v); bad {
				p.note("semctl %d %d: %d", cmd, int64(num), e)
			} else if cmd != 11 {
				p.note("semctl %d %d = %d", cmd, int64(num), v)
			}
		}
	}
	p.do("semctl too big", linux.SYS_semctl, sem, 0, 16, 40000)
	p.do("semctl remove", linux.SYS_semctl, sem, 0, 0, 0)
	p.do("semctl again", linux.SYS_semctl, sem, 0, 0, 0)
	q := p.must(linux.SYS_msgget, 0, 0o600)
	text := p.give(append([]byte{3, 0, 0, 0, 0, 0, 0, 0}, []byte("message")...))
	for _, n := range []uint64{7, 0, neg(1), 8193} {
		p.do(fmt.Sprintf("msgsnd %d", int64(n)), linux.SYS_msgsnd, q, text, n, 0o4000)
	}
	p.do("msgsnd type 0", linux.SYS_msgsnd, q, p.words(0, 0), 3, 0o4000)
	for _, a := range [][3]uint64{{3, 5, 0}, {100, 9, 0}, {2, 3, 0}, {2, 3, 0o10000}, {100, neg(5), 0}, {100, 0, 0}, {100, 3, 0o20000}, {100, 0, 0o40000}, {neg(1), 0, 0}} {
		v := p.do(fmt.Sprintf("msgrcv %d %d %#o", int64(a[0]), int64(a[1]), a[2]), linux.SYS_msgrcv, q, buf, a[0], a[1], a[2]|0o4000)
		if _, bad := failed(v); !bad {
			p.show("it", buf, 16)
		}
	}
	p.do("msgctl stat", linux.SYS_msgctl, q, 2, buf)
	p.do("msgctl unknown", linux.SYS_msgctl, q, 99, buf)
	p.do("msgctl remove", linux.SYS_msgctl, q, 0, 0)
	p.do("msgrcv of none", linux.SYS_msgrcv, q, buf, 10, 0, 0)
}
