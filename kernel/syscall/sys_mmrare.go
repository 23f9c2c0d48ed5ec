package syscall

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/process/proc"
)

var mmRareCalls = []Call{
	{linux.SYS_remap_file_pages, "remap_file_pages", sysRemapFilePages, "works, by mapping again, as on Linux"},
	{linux.SYS_pkey_alloc, "pkey_alloc", sysPkeyAlloc, "works: there are no keys (ENOSPC)"},
	{linux.SYS_pkey_free, "pkey_free", sysPkeyFree, "works: there are no keys (EINVAL)"},
	{linux.SYS_move_pages, "move_pages", sysMovePages, "works; there is one node"},
	{linux.SYS_set_mempolicy_home_node, "set_mempolicy_home_node", sysHomeNode, "works; there is one node"},
	{linux.SYS_process_madvise, "process_madvise", sysProcessMadvise, "works except MADV_COLLAPSE"},
}

// sysRemapFilePages is remap_file_pages(void *addr, size_t size, int prot,
// size_t pgoff, int flags).
func sysRemapFilePages(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a.Int(2) != 0 {
		return 0, linux.EINVAL
	}
	return 0, t.Space.RemapPages(&t.Ctx, a[0], a[1], a[3], a.Uint(4)&linux.MAP_NONBLOCK)
}

// sysPkeyAlloc is pkey_alloc(unsigned int flags, unsigned int access_rights).
func sysPkeyAlloc(_ *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a.Uint(0) != 0 || a[1]&^3 != 0 {
		return 0, linux.EINVAL
	}
	return 0, linux.ENOSPC
}

// sysPkeyFree is pkey_free(int pkey).
func sysPkeyFree(*proc.Thread, *Args) (uint64, linux.Errno) { return 0, linux.EINVAL }

// Flags of move_pages (include/uapi/linux/mempolicy.h).
const (
	mpolMFMove    = 2
	mpolMFMoveAll = 4
)

// sysMovePages is move_pages(int pid, unsigned long count, void **pages,
// const int *nodes, int *status, int flags): every page is on node 0.
func sysMovePages(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	pid, count, pages, nodes, status, flags := a.Int(0), a[1], a.Addr(2), a.Addr(3), a.Addr(4), a.Uint(5)
	if flags&^(mpolMFMove|mpolMFMoveAll) != 0 {
		return 0, linux.EINVAL
	}
	if pid == 0 {
		pid = t.Proc.PID
	}
	p, u := target(pid)
	if p == nil {
		return 0, linux.ESRCH
	}
	s, _, e := p.InspectSpace(u, &t.Ctx, proc.RealCreds)
	if e == 0 && s == nil {
		e = linux.EINVAL
	}
	if e != 0 {
		return 0, e
	}
	defer s.EndLook()
	for i := range count {
		if i&1023 == 0 && t.Killed() {
			return 0, linux.EINTR
		}
		b, e := readUser(t, pages+uio.Addr(8*i), 8)
		if e != 0 {
			return 0, e
		}
		page := binary.LittleEndian.Uint64(b)
		if nodes != 0 {
			b, e := readUser(t, nodes+uio.Addr(4*i), 4)
			if e != 0 {
				return 0, e
			}
			if binary.LittleEndian.Uint32(b) != 0 {
				return 0, linux.ENODEV
			}
		}
		node := -int32(s.Resident(page)) // 0, the node, or an error
		if e := t.Space.StoreU32(status+uio.Addr(4*i), uint32(node)); e != 0 {
			return 0, e
		}
	}
	return 0, 0
}

// sysHomeNode is set_mempolicy_home_node(start, len, home_node, flags): it is
// for ranges with a policy, and no range has one.
func sysHomeNode(_ *proc.Thread, a *Args) (uint64, linux.Errno) {
	start, length := a[0], a[1]
	switch {
	case start&4095 != 0, a[3] != 0, a[2] != 0, start+length < start:
		return 0, linux.EINVAL
	case length == 0:
		return 0, 0
	}
	return 0, linux.ENOENT
}

// sysProcessMadvise is process_madvise(int pidfd, const struct iovec *iov,
// size_t n, int advice, unsigned int flags).
func sysProcessMadvise(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	advice := a.Int(3)
	if a.Uint(4) != 0 {
		return 0, linux.EINVAL
	}
	iov, e := readIOVec(t, a.Addr(1), a[2])
	if e != 0 {
		return 0, e
	}
	p, e := pidfdProcess(t, a.Int(0), proc.FromPIDFD)
	if e != 0 {
		return 0, e
	}
	if p.Reaped() {
		return 0, linux.ESRCH
	}
	switch advice {
	case linux.MADV_COLD, linux.MADV_PAGEOUT, linux.MADV_WILLNEED:
	default:
		return 0, linux.EINVAL
	}
	if p.Main() == nil { // a zombie has no memory that one may not see
		return 0, linux.ESRCH
	}
	s, _, e := p.InspectSpace(nil, &t.Ctx, proc.FSCreds)
	if e == linux.EPERM {
		e = linux.EACCES
	}
	if e != 0 {
		return 0, e
	}
	if s == nil {
		return 0, linux.ESRCH
	}
	defer s.EndLook()
	// It affects how fast the other runs.
	if !t.Cred().Has(creds.CapSysNice) {
		return 0, linux.EPERM
	}
	done := uint64(0)
	for _, v := range iov {
		if e := s.Madvise(&t.Ctx, uint64(v.Base), v.Len, advice); e != 0 {
			if done > 0 {
				break
			}
			return 0, e
		}
		done += v.Len
	}
	return done, 0
}
