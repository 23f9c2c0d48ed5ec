package syscall

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/process/proc"
)

var mmCalls = []Call{
	{linux.SYS_mmap, "mmap", sysMmap, "works except MAP_SYNC; there are no huge pages (ENOMEM), and nothing below 64 KiB, even for root"},
	{linux.SYS_munmap, "munmap", sysMunmap, "works"},
	{linux.SYS_mprotect, "mprotect", sysMprotect, "works"},
	{linux.SYS_pkey_mprotect, "pkey_mprotect", sysPkeyMprotect, "works except keys: -1 only"},
	{linux.SYS_mremap, "mremap", sysMremap, "works"},
	{linux.SYS_brk, "brk", sysBrk, "works"},
	{linux.SYS_madvise, "madvise", sysMadvise, "works except MADV_HWPOISON, MADV_SOFT_OFFLINE and MADV_COLLAPSE; MADV_FREE frees at once"},
	{linux.SYS_msync, "msync", sysMsync, "works"},
	{linux.SYS_mincore, "mincore", sysMincore, "works"},
	{linux.SYS_mlock, "mlock", sysMlock, "works"},
	{linux.SYS_mlock2, "mlock2", sysMlock2, "works"},
	{linux.SYS_munlock, "munlock", sysMunlock, "works"},
	{linux.SYS_mlockall, "mlockall", sysMlockall, "works"},
	{linux.SYS_munlockall, "munlockall", sysMunlockall, "works"},
}

// sysMmap is mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset).
func sysMmap(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a[5]&(mem.PageSize-1) != 0 {
		return 0, linux.EINVAL // before the descriptor is looked at
	}
	m := vm.MapArgs{Addr: a[0], Length: a[1], Prot: a.Uint(2), Flags: a.Uint(3), Offset: a[5]}
	if m.Flags&linux.MAP_ANONYMOUS == 0 {
		if m.File = file(t, a.Int(4)); m.File == nil {
			return 0, linux.EBADF
		}
		defer m.File.Put()
	} else {
		m.Offset = 0 // anonymous memory has none
	}
	if m.Prot&linux.PROT_READ != 0 && t.Proc.Personality()&linux.READ_IMPLIES_EXEC != 0 && !noExec(m.File) {
		m.Prot |= linux.PROT_EXEC
	}
	return t.Space.Mmap(&t.Ctx, &m)
}

// noExec reports whether a file lies where nothing may be run.
func noExec(f *vfs.File) bool {
	return f != nil && f.Path.Mnt != nil && f.Path.Mnt.Flags()&linux.MS_NOEXEC != 0
}

// sysMunmap is munmap(void *addr, size_t length).
func sysMunmap(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return 0, t.Space.Munmap(&t.Ctx, a[0], a[1])
}

// sysMprotect is mprotect(void *addr, size_t len, int prot).
func sysMprotect(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a[2]>>32 != 0 && a[1] != 0 {
		return 0, linux.EINVAL
	}
	if a[2]&linux.PROT_READ != 0 && t.Proc.Personality()&linux.READ_IMPLIES_EXEC != 0 {
		return 0, t.Space.MprotectExec(&t.Ctx, a[0], a[1], a.Uint(2))
	}
	return 0, t.Space.Mprotect(&t.Ctx, a[0], a[1], a.Uint(2))
}

// sysPkeyMprotect is pkey_mprotect(void *addr, size_t len, int prot, int pkey).
// There are no keys to allocate, so only -1, plain mprotect, is valid.
func sysPkeyMprotect(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a.Int(3) != -1 {
		return 0, linux.EINVAL
	}
	return sysMprotect(t, a)
}

// sysMremap is mremap(void *old, size_t old_size, size_t new_size, int flags, void *new).
func sysMremap(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a[3]>>32 != 0 {
		return 0, linux.EINVAL
	}
	return t.Space.Mremap(&t.Ctx, a[0], a[1], a[2], a.Uint(3), a[4])
}

// sysBrk is brk(void *addr): the break after the call, moved or not.
func sysBrk(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return t.Space.Brk(&t.Ctx, a[0]), 0
}

// sysMadvise is madvise(void *addr, size_t length, int advice).
func sysMadvise(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return 0, t.Space.Madvise(&t.Ctx, a[0], a[1], a.Int(2))
}

// sysMsync is msync(void *addr, size_t length, int flags).
func sysMsync(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return 0, t.Space.Msync(&t.Ctx, a[0], a[1], a.Uint(2))
}

// sysMincore is mincore(void *addr, size_t length, unsigned char *vec).
func sysMincore(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	addr, length, vec := a[0], a[1], a.Addr(2)
	if addr%mem.PageSize != 0 {
		return 0, linux.EINVAL
	}
	if addr+length < addr || addr+length > 1<<47-mem.PageSize {
		return 0, linux.ENOMEM
	}
	var buf [512]byte
	for left := (length + mem.PageSize - 1) / mem.PageSize; left > 0; {
		if t.Killed() { // there may be a billion pages
			return 0, linux.EINTR
		}
		b := buf[:min(left, uint64(len(buf)))]
		if e := t.Space.Mincore(addr, b); e != 0 {
			return 0, e
		}
		if _, e := t.Space.CopyOut(vec, b); e != 0 {
			return 0, e
		}
		addr += uint64(len(b)) * mem.PageSize
		vec += uio.Addr(len(b))
		left -= uint64(len(b))
	}
	return 0, 0
}

// sysMlock is mlock(const void *addr, size_t len).
func sysMlock(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return 0, t.Space.Mlock(&t.Ctx, a[0], a[1], 0)
}

// sysMlock2 is mlock2(const void *addr, size_t len, unsigned int flags).
func sysMlock2(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return 0, t.Space.Mlock(&t.Ctx, a[0], a[1], a.Uint(2))
}

// sysMunlock is munlock(const void *addr, size_t len).
func sysMunlock(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return 0, t.Space.Munlock(a[0], a[1])
}

// sysMlockall is mlockall(int flags).
func sysMlockall(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return 0, t.Space.Mlockall(&t.Ctx, a.Uint(0))
}

// sysMunlockall is munlockall(void).
func sysMunlockall(t *proc.Thread, _ *Args) (uint64, linux.Errno) {
	return 0, t.Space.Munlockall()
}
