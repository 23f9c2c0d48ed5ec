package syscall_test

import (
	"fmt"

	"golang.org/x/sys/unix"

	"hardtack/abi/linux"
)

// free is where nothing is mapped on either machine.
const free = 0x78000000

func mapping(p *prog) {
	f := p.file("/f", "0123456789")
	ro := p.open("/f", unix.O_RDONLY)
	wo := p.open("/f", unix.O_WRONLY)
	null := p.open("/dev/null", unix.O_RDWR)
	dir := p.open("/tmp", unix.O_RDONLY)
	path := p.open("/f", unix.O_PATH)
	r, _ := p.pipe()
	fixed := uint64(unix.MAP_FIXED)
	for _, fd := range []named{{"none", neg(1)}, {"file", f}, {"read only", ro}, {"write only", wo}, {"null", null}, {"directory", dir}, {"path", path}, {"pipe", r}, {"closed", 277}} {
		for _, prot := range []uint64{0, 1, 2, 3, 5, 7, 16, 0x01000000} {
			if fd.name == "pipe" && prot&4 != 0 {
				continue // newer versions differ
			}
			for _, flags := range []uint64{unix.MAP_PRIVATE, unix.MAP_SHARED, unix.MAP_SHARED_VALIDATE, 0, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS, unix.MAP_SHARED | unix.MAP_ANONYMOUS, unix.MAP_SHARED_VALIDATE | 0x8000000} {
				v := p.do(fmt.Sprintf("mmap(%s, %#x, %#x)", fd.name, prot, flags|fixed), linux.SYS_mmap, free, 8192, prot, flags|fixed, fd.fd, 0)
				if v == free {
					p.must(linux.SYS_munmap, free, 8192)
				}
			}
		}
	}
	anon := uint64(unix.MAP_PRIVATE | unix.MAP_ANONYMOUS)
	for _, a := range [][4]uint64{{free, 0, fixed, 0}, {free + 1, 4096, fixed, 0}, {free, 1, fixed, 0}, {free, 4096, fixed, 1}, {free, 1 << 48, fixed, 0}, {free, neg(1), fixed, 0},
		{1 << 47, 4096, fixed, 0}, {neg(4096), 8192, fixed, 0}, {free, 4096, unix.MAP_FIXED_NOREPLACE, 0}, {free, 4096, unix.MAP_FIXED_NOREPLACE, 0}, {free, 4096, fixed | unix.MAP_GROWSDOWN, 0}} {
		p.do(fmt.Sprintf("mmap(%#x, %#x, %#x, %d)", a[0], a[1], a[2], a[3]), linux.SYS_mmap, a[0], a[1], 3, anon|a[2], neg(1), a[3])
	}
	p.do("mmap of a file, bad offset", linux.SYS_mmap, free, 4096, 1, unix.MAP_PRIVATE|fixed, f, 5)
	p.do("mmap of a file, negative offset", linux.SYS_mmap, free, 4096, 1, unix.MAP_PRIVATE|fixed, f, neg(4096))
	p.do("munmap", linux.SYS_munmap, free, 1<<20)
	for _, a := range [][2]uint64{{free, 0}, {free + 1, 4096}, {free, 1}, {1 << 47, 4096}, {neg(4096), 4096}, {0, 1 << 48}} {
		p.do(fmt.Sprintf("munmap(%#x, %#x)", a[0], a[1]), linux.SYS_munmap, a[0], a[1])
	}
}

func protecting(p *prog) {
	fixed := uint64(unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED)
	again := func() { p.must(linux.SYS_mmap, free, 4*4096, 3, fixed, neg(1), 0) }
	again()
	p.write(free, []byte("hello"))
	buf := p.room(64)
	for _, prot := range []uint64{0, 1, 3, 5, 7, 8, 0x01000000, 0x02000000, 0x03000000} {
		p.do(fmt.Sprintf("mprotect %#x", prot), linux.SYS_mprotect, free, 4096, prot)
		p.do("reading it", linux.SYS_getrandom, free, 8, 0)
		p.do("a path there", linux.SYS_access, free, 0)
	}
	p.must(linux.SYS_mprotect, free, 4*4096, 3)
	for _, a := range [][2]uint64{{free, 0}, {free + 1, 4096}, {free + 5*4096, 4096}, {free, 1 << 20}, {neg(4096), 4096}} {
		p.do(fmt.Sprintf("mprotect(%#x, %#x)", a[0], a[1]), linux.SYS_mprotect, a[0], a[1], 3)
		for _, flags := range []uint64{0, 1, 2, 4, 5, 6, 8} {
			p.do(fmt.Sprintf("msync %d", flags), linux.SYS_msync, a[0], a[1], flags)
		}
		p.do("mincore", linux.SYS_mincore, a[0], a[1], buf)
		p.do("mlock", linux.SYS_mlock, a[0], a[1])
		p.do("mlock2", linux.SYS_mlock2, a[0], a[1], 1)
		p.do("mlock2 flags", linux.SYS_mlock2, a[0], a[1], 2)
		p.do("munlock", linux.SYS_munlock, a[0], a[1])
		for _, advice := range []uint64{0, 1, 2, 3, 4, 8, 9, 10, 11, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 99} {
			p.do(fmt.Sprintf("madvise %d", advice), linux.SYS_madvise, a[0], a[1], advice)
		}
		again()
	}
	p.do("mincore nowhere", linux.SYS_mincore, free, 4096, 8)
	p.do("mincore", linux.SYS_mincore, free, 4*4096, buf)
	for _, flags := range []uint64{0, 1, 2, 4, 5, 8} {
		p.do(fmt.Sprintf("mlockall %d", flags), linux.SYS_mlockall, flags&^3|flags&4)
	}
	p.do("munlockall", linux.SYS_munlockall)
	for _, a := range [][5]uint64{{free, 4096, 8192, 0, 0}, {free, 8192, 4096, 0, 0}, {free + 4096*9, 4096, 8192, 1, 0}, {free, 4096, 4096, 3, free + 0x100000}, {free + 1, 4096, 8192, 1, 0},
		{free, 4096, 0, 1, 0}, {free, 0, 4096, 1, 0}, {free, 4096, 4096, 2, free}, {free, 4096, 4096, 8, 0}, {free + 4096, 4096, 4096, 4, 0}, {free + 4096, 4096, 4096, 7, free + 0x200000}} {
		p.do(fmt.Sprintf("mremap(%#x, %#x, %#x, %d, %#x)", a[0], a[1], a[2], a[3], a[4]), linux.SYS_mremap, a[0], a[1], a[2], a[3], a[4])
	}
	p.do("remap_file_pages", linux.SYS_remap_file_pages, free, 4096, 0, 0, 0)
	pid := p.must(linux.SYS_getpid)
	again()
	l, r := p.vec(buf, 8), p.vec(free, 4, free+4096, 4)
	p.do("process_vm_readv", linux.SYS_process_vm_readv, pid, l, 1, r, 2, 0)
	p.do("process_vm_writev", linux.SYS_process_vm_writev, pid, l, 1, r, 2, 0)
	p.do("flags", linux.SYS_process_vm_readv, pid, l, 1, r, 2, 1)
	p.do("none", linux.SYS_process_vm_readv, 1<<29, l, 1, r, 2, 0)
	p.do("too many", linux.SYS_process_vm_readv, pid, l, 1025, r, 2, 0)
	p.do("nowhere", linux.SYS_process_vm_readv, pid, l, 1, p.vec(8, 8), 1, 0)
	p.do("getrandom flags", linux.SYS_getrandom, buf, 8, 8)
	p.do("getrandom both", linux.SYS_getrandom, buf, 8, 6)
	p.do("getrandom nowhere", linux.SYS_getrandom, 8, 8, 0)
	for mode := range uint64(6) {
		p.do(fmt.Sprintf("set_mempolicy %d", mode), linux.SYS_set_mempolicy, mode, p.words(1), 2)
		p.do("get_mempolicy", linux.SYS_get_mempolicy, buf, 0, 0, 0, 0)
		p.note("policy %d", p.u32(buf))
		p.do("mbind", linux.SYS_mbind, free, 4096, mode, p.words(1), 2, 0)
		p.do("mbind strict", linux.SYS_mbind, free, 4096, mode, p.words(1), 2, 9)
	}
	p.do("get_mempolicy flags", linux.SYS_get_mempolicy, buf, 0, 0, 0, 99)
}
