package syscall

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/process/proc"
)

// Memory policies: the machine is one node, number 0, so every policy that
// names it does the same.
var numaCalls = []Call{
	{linux.SYS_get_mempolicy, "get_mempolicy", sysGetMempolicy, "works; there is one node"},
	{linux.SYS_set_mempolicy, "set_mempolicy", sysSetMempolicy, "works; there is one node"},
	{linux.SYS_mbind, "mbind", sysMbind, "works; there is one node"},
	{linux.SYS_migrate_pages, "migrate_pages", sysMigratePages, "works; there is one node"},
}

// Policies and their flags (include/uapi/linux/mempolicy.h).
const (
	mpolDefault       = 0
	mpolPreferred     = 1
	mpolBind          = 2
	mpolInterleave    = 3
	mpolLocal         = 4
	mpolPreferredMany = 5
	mpolModeFlags     = 0xe000
	mpolFNode         = 1
	mpolFAddr         = 2
	mpolFMemsAllowed  = 4
	mpolMFValid       = 7
	maxNodeBits       = 64 * 64
)

// readNodes reads a node mask of n bits.
func readNodes(t *proc.Thread, addr uio.Addr, n uint64) (nodes uint64, e linux.Errno) {
	if addr == 0 || n == 0 {
		return 0, 0
	}
	n-- // as Linux counts
	if n > maxNodeBits {
		return 0, linux.EINVAL
	}
	b := make([]byte, (n+63)/64*8)
	if _, e := t.Mem.CopyIn(b, addr); e != 0 {
		return 0, e
	}
	for i := 8; i < len(b); i++ {
		if b[i] != 0 {
			return 0, linux.EINVAL
		}
	}
	if len(b) == 0 {
		return 0, 0
	}
	nodes = binary.LittleEndian.Uint64(b)
	if n < 64 {
		nodes &= 1<<n - 1
	}
	return nodes, 0
}

// checkPolicy is the rule which masks a policy takes.
func checkPolicy(mode uint32, nodes uint64) linux.Errno {
	flags := mode & mpolModeFlags
	switch mode &^ mpolModeFlags {
	case mpolDefault:
		if nodes != 0 || flags != 0 {
			return linux.EINVAL
		}
	case mpolLocal:
		if nodes != 0 {
			return linux.EINVAL
		}
	case mpolPreferred:
		if nodes&^1 != 0 {
			return linux.EINVAL
		}
	case mpolBind, mpolInterleave, mpolPreferredMany:
		if nodes != 1 {
			return linux.EINVAL
		}
	default:
		return linux.EINVAL
	}
	return 0
}

// sysSetMempolicy is set_mempolicy(int mode, const unsigned long *nodes, unsigned long maxnode).
func sysSetMempolicy(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	nodes, e := readNodes(t, a.Addr(1), a[2])
	if e != 0 {
		return 0, e
	}
	if e := checkPolicy(a.Uint(0), nodes); e != 0 {
		return 0, e
	}
	return 0, t.SetSched(func(s *proc.Sched) linux.Errno {
		s.MemPolicy, s.MemNodes = a.Uint(0), nodes
		return 0
	})
}

// sysGetMempolicy is get_mempolicy(int *mode, unsigned long *nodes, maxnode, addr, flags).
func sysGetMempolicy(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	flags := a[4]
	if flags&^uint64(mpolFNode|mpolFAddr|mpolFMemsAllowed) != 0 ||
		flags&mpolFMemsAllowed != 0 && flags&(mpolFNode|mpolFAddr) != 0 ||
		flags&mpolFAddr == 0 && a[3] != 0 || a.Addr(1) != 0 && a[2] == 0 {
		return 0, linux.EINVAL
	}
	s := t.Sched()
	mode, nodes := s.MemPolicy, s.MemNodes
	switch {
	case flags&mpolFMemsAllowed != 0:
		mode, nodes = 0, 1
	case flags&mpolFAddr != 0:
		var b [1]byte
		if _, e := t.Mem.CopyIn(b[:], a.Addr(3)); e != 0 {
			return 0, e
		}
		mode, nodes = mpolDefault, 0
	}
	if flags&mpolFNode != 0 {
		if flags&mpolFAddr == 0 && mode&^mpolModeFlags != mpolInterleave {
			return 0, linux.EINVAL
		}
		mode = 0 // the node
	}
	if addr := a.Addr(0); addr != 0 {
		if e := writeU32(t, addr, mode); e != 0 {
			return 0, e
		}
	}
	if addr := a.Addr(1); addr != 0 {
		n := (a[2] - 1 + 63) / 64
		if a[2]-1 > maxNodeBits {
			return 0, linux.EINVAL
		}
		//maxlive:len 4096 because maxNodeBits is a page of them
		b := make([]byte, 8*n)
		if len(b) > 0 {
			binary.LittleEndian.PutUint64(b, nodes)
		}
		_, e := t.Mem.CopyOut(addr, b)
		return 0, e
	}
	return 0, 0
}

// sysMbind is mbind(addr, len, mode, const unsigned long *nodes, maxnode, flags).
func sysMbind(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a[0]&4095 != 0 || a[5]&^uint64(mpolMFValid) != 0 || a[0]+a[1] < a[0] {
		return 0, linux.EINVAL
	}
	nodes, e := readNodes(t, a.Addr(3), a[4])
	if e != 0 {
		return 0, e
	}
	return 0, checkPolicy(a.Uint(2), nodes)
}

// sysMigratePages is migrate_pages(int pid, maxnode, old nodes, new nodes); it
// returns how many pages could not be moved.
func sysMigratePages(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if _, e := readNodes(t, a.Addr(2), a[1]); e != 0 {
		return 0, e
	}
	to, e := readNodes(t, a.Addr(3), a[1])
	if e != 0 {
		return 0, e
	}
	if tid := a.Int(0); tid != 0 {
		p, u := target(tid)
		if p == nil {
			return 0, linux.ESRCH
		}
		if !p.Inspect(u, &t.Ctx, proc.RealCreds, nil) {
			return 0, linux.EPERM
		}
	}
	if to&1 == 0 {
		return 0, linux.EINVAL
	}
	return 0, 0
}
