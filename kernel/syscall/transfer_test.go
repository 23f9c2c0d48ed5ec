package syscall_test

import (
	"fmt"

	"golang.org/x/sys/unix"

	"hardtack/abi/linux"
)

// vec puts an array of struct iovec into the arena.
func (p *prog) vec(v ...uint64) uint64 { return p.words(v...) }

func readWrite(p *prog) {
	buf := p.room(8192)
	for _, k := range p.kinds() {
		if k.name == "udp" || k.name == "tcp" || k.name == "pidfd" {
			continue // test of sockets
		}
		p.write(buf, []byte("abcdefgh"))
		for _, n := range []uint64{0, 1, 8, neg(1)} {
			p.do(fmt.Sprintf("write(%s, %d)", k.name, int64(n)), linux.SYS_write, k.fd, buf, n)
			p.do(fmt.Sprintf("pwrite(%s, %d)", k.name, int64(n)), linux.SYS_pwrite64, k.fd, buf, n, 2)
		}
		p.do("write from nowhere", linux.SYS_write, k.fd, 8, 8)
		p.do("writev", linux.SYS_writev, k.fd, p.vec(buf, 3, buf+100, 0, buf+3, 2), 3)
		p.do("writev too many", linux.SYS_writev, k.fd, buf, 1025)
		p.do("writev a negative length", linux.SYS_writev, k.fd, p.vec(buf, neg(1)), 1)
		p.do("writev from nowhere", linux.SYS_writev, k.fd, 8, 1)
		p.do("pwritev", linux.SYS_pwritev, k.fd, p.vec(buf, 3), 1, 5, 0)
		p.do("pwritev negative", linux.SYS_pwritev, k.fd, p.vec(buf, 3), 1, neg(5), 0)
		for _, flags := range []uint64{unix.RWF_NOWAIT, unix.RWF_APPEND, unix.RWF_DSYNC, unix.RWF_HIPRI, 0x800} {
			p.do(fmt.Sprintf("pwritev2(%s, %#x)", k.name, flags), linux.SYS_pwritev2, k.fd, p.vec(buf, 2), 1, 1, 0, flags)
		}
		p.do("lseek 0", linux.SYS_lseek, k.fd, 0, 0)
		for _, n := range []uint64{0, 3, neg(1)} {
			v := p.do(fmt.Sprintf("read(%s, %d)", k.name, int64(n)), linux.SYS_read, k.fd, buf+100, n)
			if _, bad := failed(v); !bad && v > 0 && v < 64 && k.name != "inotify" {
				p.show("data", buf+100, int(v))
			}
		}
		p.do("pread", linux.SYS_pread64, k.fd, buf, 4, 1)
		p.do("pread negative", linux.SYS_pread64, k.fd, buf, 4, neg(1))
		p.do("read to nowhere", linux.SYS_read, k.fd, 8, 8)
		p.do("readv", linux.SYS_readv, k.fd, p.vec(buf, 2, buf+64, 2), 2)
		p.do("readv too many", linux.SYS_readv, k.fd, buf, 1025)
		p.do("preadv", linux.SYS_preadv, k.fd, p.vec(buf, 3), 1, 1, 0)
		for _, flags := range []uint64{unix.RWF_NOWAIT, unix.RWF_HIPRI, unix.RWF_APPEND, 0x800} {
			p.do(fmt.Sprintf("preadv2(%s, %#x)", k.name, flags), linux.SYS_preadv2, k.fd, p.vec(buf, 2), 1, neg(1), 0, flags)
		}
	}
	// Half of a page is there.
	f := p.file("/edge", "0123456789abcdef")
	p.do("read over the edge", linux.SYS_pread64, f, arenaEnd-4, 8, 0)
	p.do("write over the edge", linux.SYS_pwrite64, f, arenaEnd-4, 8, 0)
	p.do("readv over the edge", linux.SYS_preadv, f, p.vec(arenaEnd-4, 4, arenaEnd, 4), 2, 0, 0)
}

func seeking(p *prog) {
	for _, k := range p.kinds() {
		for _, whence := range []uint64{0, 1, 2, 3, 4, 5} {
			for _, off := range []uint64{0, 5, neg(1), 1 << 40} {
				p.do(fmt.Sprintf("lseek(%s, %d, %d)", k.name, int64(off), whence), linux.SYS_lseek, k.fd, off, whence)
			}
		}
		for _, n := range []uint64{0, 4, 20, neg(1)} {
			p.do(fmt.Sprintf("ftruncate(%s, %d)", k.name, int64(n)), linux.SYS_ftruncate, k.fd, n)
		}
		for _, mode := range []uint64{0, 1, 2, 3, 8, 16, 32, 0x80} {
			p.do(fmt.Sprintf("fallocate(%s, %#x)", k.name, mode), linux.SYS_fallocate, k.fd, mode, 0, 4096)
		}
		p.do("fallocate nothing", linux.SYS_fallocate, k.fd, 0, 0, 0)
		p.do("fallocate negative", linux.SYS_fallocate, k.fd, 0, neg(1), 10)
		p.do("fsync", linux.SYS_fsync, k.fd)
		p.do("fdatasync", linux.SYS_fdatasync, k.fd)
		p.do("syncfs", linux.SYS_syncfs, k.fd)
		for _, flags := range []uint64{0, 7, 8} {
			p.do("sync_file_range", linux.SYS_sync_file_range, k.fd, 0, 100, flags)
		}
		p.do("sync_file_range negative", linux.SYS_sync_file_range, k.fd, neg(1), 100, 0)
		for _, advice := range []uint64{0, 1, 2, 3, 4, 5, 6} {
			p.do("fadvise64", linux.SYS_fadvise64, k.fd, 0, 100, advice)
		}
		p.do("fadvise64 negative", linux.SYS_fadvise64, k.fd, 0, neg(1), 0)
		p.do("readahead", linux.SYS_readahead, k.fd, 0, 100)
	}
	p.file("/t", "0123456789")
	for _, name := range []string{"/t", "/tmp", "/none", "", "/t/x", "/dev/null"} {
		for _, n := range []uint64{0, 100, neg(1), 1 << 62} {
			p.do(fmt.Sprintf("truncate(%q, %d)", name, int64(n)), linux.SYS_truncate, p.str(name), n)
		}
	}
	p.do("truncate nowhere", linux.SYS_truncate, 8, 0)
}

func moving(p *prog) {
	kinds := p.kinds()
	for _, from := range kinds {
		for _, to := range kinds {
			undo := p.cut()
			if from.name == "file" || from.name == "read-only" {
				p.must(linux.SYS_lseek, from.fd, 0, 0)
			}
			what := from.name + " to " + to.name
			row := what + ":"
			if !endless[from.name] {
				row += p.brief(linux.SYS_sendfile, to.fd, from.fd, 0, 3)
				row += p.brief(linux.SYS_sendfile, to.fd, from.fd, p.words(2), 3)
			}
			row += p.brief(linux.SYS_splice, from.fd, 0, to.fd, 0, 2, unix.SPLICE_F_NONBLOCK)
			row += p.brief(linux.SYS_splice, from.fd, p.words(1), to.fd, 0, 2, unix.SPLICE_F_NONBLOCK)
			row += p.brief(linux.SYS_splice, from.fd, 0, to.fd, p.words(1), 2, unix.SPLICE_F_NONBLOCK)
			row += p.brief(linux.SYS_tee, from.fd, to.fd, 2, unix.SPLICE_F_NONBLOCK)
			row += p.brief(linux.SYS_copy_file_range, from.fd, 0, to.fd, p.words(50), 2, 0)
			p.note("%s", row)
			undo()
		}
		iov := p.vec(p.str("xy"), 2)
		p.do("vmsplice "+from.name, linux.SYS_vmsplice, from.fd, iov, 1, unix.SPLICE_F_NONBLOCK)
	}
}

// endless are the files that sendfile would treat otherwise from version to version.
var endless = map[string]bool{"zero": true, "full": true, "null": true}

func movingArgs(p *prog) {
	r, w := p.pipe()
	f := p.file("/f", "0123456789")
	g := p.file("/g", "")
	buf := p.room(64)
	for _, flags := range []uint64{0, 1, 15, 16} {
		p.do("splice flags", linux.SYS_splice, f, p.words(0), w, 0, 4, flags|unix.SPLICE_F_NONBLOCK)
		p.do("tee flags", linux.SYS_tee, r, w, 4, flags|unix.SPLICE_F_NONBLOCK)
		p.do("vmsplice flags", linux.SYS_vmsplice, w, p.vec(p.str("abcd"), 4), 1, flags|unix.SPLICE_F_NONBLOCK)
		p.do("copy flags", linux.SYS_copy_file_range, f, p.words(0), g, p.words(0), 4, flags)
	}
	p.do("splice nothing", linux.SYS_splice, f, 0, w, 0, 0, 0)
	p.do("what is in the pipe", linux.SYS_read, r, buf, 64)
	p.show("it", buf, 32)
	for _, o := range [][3]uint64{{0, 0, 5}, {8, 0, 5}, {20, 0, 5}, {0, 100, 5}, {neg(1), 0, 5}, {0, neg(1), 5}, {0, 0, neg(1)}, {0, 0, 0}} {
		in, out := p.words(o[0]), p.words(o[1])
		p.do(fmt.Sprintf("copy_file_range %d %d %d", int64(o[0]), int64(o[1]), int64(o[2])), linux.SYS_copy_file_range, f, in, g, out, o[2], 0)
		p.note("at %d %d", int64(p.u64(in)), int64(p.u64(out)))
	}
	for _, o := range [][3]uint64{{0, 2, 4}, {0, 4, 4}, {4, 0, 6}} {
		p.do("copy within a file", linux.SYS_copy_file_range, f, p.words(o[0]), f, p.words(o[1]), o[2], 0)
	}
	p.do("copy to a reader", linux.SYS_copy_file_range, f, 0, p.open("/f", unix.O_RDONLY), 0, 1, 0)
	p.do("copy to an appender", linux.SYS_copy_file_range, f, 0, p.open("/f", unix.O_RDWR|unix.O_APPEND), 0, 1, 0)
	p.do("copy from a writer", linux.SYS_copy_file_range, p.open("/f", unix.O_WRONLY), 0, g, 0, 1, 0)
	for _, n := range []uint64{0, 4, 100, neg(1), 1 << 40} {
		off := p.words(0)
		p.do(fmt.Sprintf("sendfile %d", int64(n)), linux.SYS_sendfile, g, f, off, n)
		p.note("at %d", p.u64(off))
	}
	p.do("sendfile nowhere", linux.SYS_sendfile, g, f, 8, 4)
	p.do("sendfile negative", linux.SYS_sendfile, g, f, p.words(neg(1)), 4)
	p.do("to the write end", linux.SYS_splice, f, p.words(0), w, p.words(0), 4, 0)
	// A full pipe.
	p.must(linux.SYS_fcntl, w, unix.F_SETPIPE_SZ, 4096)
	big := p.room(8192)
	p.do("fill", linux.SYS_write, w, big, 8192)
	p.do("more", linux.SYS_write, w, big, 1)
	p.do("splice more", linux.SYS_splice, f, p.words(0), w, 0, 4, unix.SPLICE_F_NONBLOCK)
	p.do("FIONREAD", linux.SYS_ioctl, r, unix.TIOCINQ, buf)
	p.note("%d", p.u32(buf))
	r2, w2 := p.pipe()
	p.do("tee", linux.SYS_tee, r, w2, 100, 0)
	p.do("splice between pipes", linux.SYS_splice, r, 0, w2, 0, 200, 0)
	p.do("tee itself", linux.SYS_tee, r, w, 100, 0)
	p.do("splice itself", linux.SYS_splice, r, 0, w, 0, 100, 0)
	p.do("to memory", linux.SYS_vmsplice, r2, p.vec(big, 50), 1, 0)
	p.do("the rest", linux.SYS_read, r2, big, 8192)
	p.close(w2)
	p.do("end", linux.SYS_read, r2, big, 10)
	p.close(r)
	p.do("no reader", linux.SYS_write, w, big, 1)
	p.do("SIGPIPE", linux.SYS_rt_sigpending, buf, 8)
	p.show("pending", buf, 8)
}
