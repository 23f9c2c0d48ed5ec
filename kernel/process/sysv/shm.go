package sysv

import (
	"fmt"
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/mm/vm"
)

// maxSegments is the most that kernel.shmmni may be.
const maxSegments = linux.IPCMNI

// ShmSegment is a shared memory segment; a mem.Object whose mappings are counted.
type ShmSegment struct {
	user *accounts.User // who is charged; immutable

	pages *vm.Shared // immutable
	size  uint64     // as asked for; immutable
	id    int32      // immutable
	cpid  int32      // immutable

	perm                linux.IPCPerm // guarded by shmMu; Key is immutable
	atime, dtime, ctime int64         // guarded by shmMu
	lpid                int32         // guarded by shmMu
	attached            int           // guarded by shmMu
	removed             bool          // guarded by shmMu: goes with the last attachment
}

var (
	shmMu      sync.Mutex
	shmTable   []*ShmSegment                             // guarded by shmMu; as long as it was ever needed
	shmPool    = accounts.NewPool(settings.ShmMni.Get()) // of table, which users share
	shmNumbers numbers                                   // guarded by shmMu
	shmUsed    int                                       // guarded by shmMu
	shmPages   atomic.Int64                              // pages of all segments, touched or not
)

// Page implements mem.Object.
func (g *ShmSegment) Page(i uint64, write bool) (mem.Frame, linux.Errno) {
	return g.pages.Page(i, write)
}

// Cached implements mem.Cacher.
func (g *ShmSegment) Cached(i uint64) (mem.Frame, bool) { return g.pages.Cached(i) }

// Punch implements mem.Puncher.
func (g *ShmSegment) Punch(first, n uint64) linux.Errno { return g.pages.PunchOf(g, first, n) }

// Mappings implements mem.Object.
func (g *ShmSegment) Mappings() *mem.Mappings { return g.pages.Mappings() }

// Attach implements mem.Counted.
func (g *ShmSegment) Attach() {
	shmMu.Lock()
	g.attached++
	shmMu.Unlock()
}

// Detach implements mem.Counted.
func (g *ShmSegment) Detach() {
	shmMu.Lock()
	g.dtime = now()
	g.drop()
	shmMu.Unlock()
}

// drop takes an attachment away. The caller holds shmMu.
func (g *ShmSegment) drop() {
	if g.attached--; g.attached == 0 && g.removed {
		g.free()
	}
}

// free forgets a segment that nobody has attached. The caller holds shmMu.
func (g *ShmSegment) free() {
	i := g.id % seqStep
	shmTable[i], shmNumbers.free = nil, min(shmNumbers.free, int(i))
	shmUsed--
	shmPool.Release(g.user, 1)
	shmPages.Add(-int64(pagesOf(g.size)))
	g.pages.Detach()
}

func pagesOf(size uint64) uint64 {
	n := size >> mem.PageShift
	if size&(mem.PageSize-1) != 0 {
		n++
	}
	return n
}

// ShmGet is shmget(2).
func ShmGet(c *caller.Ctx, key int32, size uint64, flags uint32) (int32, linux.Errno) {
	shmMu.Lock()
	defer shmMu.Unlock()
	if key != linux.IPC_PRIVATE {
		for _, g := range shmTable {
			if g == nil || g.perm.Key != key || g.removed {
				continue
			}
			switch {
			case flags&linux.IPC_CREAT != 0 && flags&linux.IPC_EXCL != 0:
				return 0, linux.EEXIST
			case size > g.size:
				return 0, linux.EINVAL
			case !c.Cred().MayIPC(&g.perm, flags&0o777):
				return 0, linux.EACCES
			}
			return g.id, 0
		}
		if flags&linux.IPC_CREAT == 0 {
			return 0, linux.ENOENT
		}
	}
	if size == 0 || size > uint64(settings.ShmMax.Get()) || size > 1<<63-1 || flags&linux.SHM_HUGETLB != 0 {
		return 0, linux.EINVAL
	}
	n := pagesOf(size)
	if all := uint64(shmPages.Load()); all+n < all || all+n > uint64(settings.ShmAll.Get()) {
		return 0, linux.ENOSPC
	}
	u := c.User()
	if shmUsed >= int(settings.ShmMni.Get()) || !shmPool.Charge(u, 1) {
		return 0, linux.ENOSPC
	}
	i, seq, ok := shmNumbers.place(len(shmTable), func(i int) bool { return shmTable[i] != nil })
	if !ok {
		shmPool.Release(u, 1)
		return 0, linux.ENOSPC
	}
	pages := vm.NewSegment(n, flags&linux.SHM_NORESERVE == 0, u)
	if pages == nil {
		shmPool.Release(u, 1)
		return 0, linux.ENOMEM
	}
	if n := i + 1 - len(shmTable); n > 0 {
		//maxlive:len 32768 because there are at most IPCMNI
		shmTable = append(shmTable, make([]*ShmSegment, n)...)
	}
	shmNumbers.take(i, seq)
	cred := c.Cred()
	g := &ShmSegment{pages: pages, size: size, id: int32(seq)*seqStep + int32(i), cpid: c.PID, ctime: now(), user: u}
	g.perm = linux.IPCPerm{Key: key, UID: cred.EUID, GID: cred.EGID, CUID: cred.EUID, CGID: cred.EGID,
		Mode: flags & 0o777, Seq: seq}
	shmTable[i] = g
	shmUsed++
	shmPages.Add(int64(n))
	return g.id, 0
}

// lookup returns a segment by its number. The caller holds shmMu.
func findShm(id int32) (*ShmSegment, linux.Errno) {
	if id < 0 || int(id%seqStep) >= len(shmTable) {
		return nil, linux.EINVAL
	}
	g := shmTable[id%seqStep]
	if g == nil {
		return nil, linux.EINVAL
	}
	if g.id != id {
		return nil, linux.EIDRM
	}
	return g, 0
}

// ShmAt is shmat(2). As on Linux a removed segment can be attached while others
// have it.
func ShmAt(c *caller.Ctx, s *vm.Space, id int32, addr uint64, flags uint32) (uint64, linux.Errno) {
	m := vm.MapArgs{Addr: addr, Prot: linux.PROT_READ | linux.PROT_WRITE, Flags: linux.MAP_SHARED}
	want := uint32(0o666)
	if flags&linux.SHM_RDONLY != 0 {
		m.Prot, m.NoWrite, want = linux.PROT_READ, true, 0o444
	}
	if flags&linux.SHM_EXEC != 0 {
		m.Prot |= linux.PROT_EXEC
		want |= 0o111
	}
	switch {
	case addr == 0:
		if flags&linux.SHM_REMAP != 0 {
			return 0, linux.EINVAL
		}
	case addr%mem.PageSize != 0 && flags&linux.SHM_RND == 0:
		return 0, linux.EINVAL
	default:
		m.Addr = addr &^ (mem.PageSize - 1)
		m.Flags |= linux.MAP_FIXED_NOREPLACE
		if flags&linux.SHM_REMAP != 0 {
			m.Flags = linux.MAP_SHARED | linux.MAP_FIXED
		}
	}
	shmMu.Lock()
	g, e := findShm(id)
	if e == 0 && !c.Cred().MayIPC(&g.perm, want) {
		e = linux.EACCES
	}
	if e != 0 {
		shmMu.Unlock()
		return 0, e
	}
	g.attached++ // keeps it while it is being mapped
	shmMu.Unlock()
	if addr != 0 && flags&linux.SHM_REMAP == 0 && m.Addr+g.size < m.Addr {
		e = linux.EINVAL // unlike other bad addresses
	}
	m.Object, m.Length = g, g.size
	m.Name = fmt.Sprintf("/SYSV%08x (deleted)", uint32(g.perm.Key))
	var at uint64
	if e == 0 {
		at, e = s.Mmap(c, &m)
	}
	shmMu.Lock()
	if e == 0 {
		g.atime, g.lpid = now(), c.PID
	}
	g.drop()
	shmMu.Unlock()
	if e == linux.EEXIST {
		e = linux.EINVAL
	}
	return at, e
}

// ShmDt is shmdt(2).
func ShmDt(c *caller.Ctx, s *vm.Space, addr uint64) linux.Errno {
	if addr%mem.PageSize != 0 {
		return linux.EINVAL
	}
	o, e := s.UnmapObject(addr, func(o mem.Object) bool { _, ok := o.(*ShmSegment); return ok })
	if e != 0 {
		return e
	}
	g := o.(*ShmSegment)
	shmMu.Lock()
	g.lpid, g.dtime = c.PID, now()
	shmMu.Unlock()
	return 0
}

// stat fills in what shmctl IPC_STAT tells. The caller holds shmMu.
func (g *ShmSegment) stat() linux.ShmidDS {
	d := linux.ShmidDS{Perm: g.perm, Size: g.size, ATime: g.atime, DTime: g.dtime, CTime: g.ctime,
		CPID: g.cpid, LPID: g.lpid, Attached: uint64(max(g.attached, 0))}
	if g.removed {
		d.Perm.Key = linux.IPC_PRIVATE
		d.Perm.Mode |= linux.SHM_DEST
	}
	return d
}

// ShmStat is shmctl IPC_STAT.
func ShmStat(c *caller.Ctx, id int32) (linux.ShmidDS, linux.Errno) {
	shmMu.Lock()
	defer shmMu.Unlock()
	g, e := findShm(id)
	if e != 0 {
		return linux.ShmidDS{}, e
	}
	if !c.Cred().MayIPC(&g.perm, 0o444) {
		return linux.ShmidDS{}, linux.EACCES
	}
	return g.stat(), 0
}

// ShmStatIndex is shmctl SHM_STAT and, with anyone, SHM_STAT_ANY: it takes a place
// in the table and returns the segment's number too.
func ShmStatIndex(c *caller.Ctx, i int32, anyone bool) (int32, linux.ShmidDS, linux.Errno) {
	shmMu.Lock()
	defer shmMu.Unlock()
	if i < 0 || int(i) >= len(shmTable) || shmTable[i] == nil {
		return 0, linux.ShmidDS{}, linux.EINVAL
	}
	g := shmTable[i]
	if !anyone && !c.Cred().MayIPC(&g.perm, 0o444) {
		return 0, linux.ShmidDS{}, linux.EACCES
	}
	return g.id, g.stat(), 0
}

// owned returns a segment that c may change or remove. The caller holds shmMu.
func ownedShm(c *caller.Ctx, id int32) (*ShmSegment, linux.Errno) {
	g, e := findShm(id)
	if e != 0 {
		return nil, e
	}
	cred := c.Cred()
	if cred.EUID != g.perm.UID && cred.EUID != g.perm.CUID && !cred.Has(creds.CapSysAdmin) {
		return nil, linux.EPERM
	}
	return g, 0
}

// ShmChange is shmctl IPC_SET.
func ShmChange(c *caller.Ctx, id int32, uid, gid, mode uint32) linux.Errno {
	shmMu.Lock()
	defer shmMu.Unlock()
	g, e := ownedShm(c, id)
	if e != 0 {
		return e
	}
	if e := g.perm.Set(uid, gid, mode); e != 0 {
		return e
	}
	g.ctime = now()
	return 0
}

// ShmRemove is shmctl IPC_RMID.
func ShmRemove(c *caller.Ctx, id int32) linux.Errno {
	shmMu.Lock()
	defer shmMu.Unlock()
	g, e := ownedShm(c, id)
	if e != 0 {
		return e
	}
	if !g.removed {
		g.removed = true
		if g.attached == 0 {
			g.free()
		}
	}
	return 0
}

// ShmLock is shmctl SHM_LOCK and SHM_UNLOCK: memory is never swapped out, so only
// the mark changes.
func ShmLock(c *caller.Ctx, id int32, on bool) linux.Errno {
	shmMu.Lock()
	defer shmMu.Unlock()
	g, e := findShm(id)
	if e != 0 {
		return e
	}
	cred := c.Cred()
	if !cred.Has(creds.CapIPCLock) && cred.EUID != g.perm.UID && cred.EUID != g.perm.CUID {
		return linux.EPERM
	}
	g.perm.Mode &^= linux.SHM_LOCKED
	if on {
		g.perm.Mode |= linux.SHM_LOCKED
	}
	return 0
}

// ShmUsage is shmctl SHM_INFO and IPC_INFO: how many segments there are, the
// highest used place in the table, and the pages asked for and present.
func ShmUsage() (segments, highest int, pages, resident uint64) {
	shmMu.Lock()
	defer shmMu.Unlock()
	for i, g := range shmTable {
		if g != nil {
			highest = i
			resident += uint64(g.pages.Resident())
		}
	}
	return shmUsed, highest, uint64(shmPages.Load()), resident
}

// ShmLimits returns SHMMAX, SHMMNI and SHMALL.
func ShmLimits() (size, segments, all uint64) {
	return uint64(settings.ShmMax.Get()), uint64(settings.ShmMni.Get()), uint64(settings.ShmAll.Get())
}

// SetShmMni changes kernel.shmmni.
func SetShmMni(n int64) {
	settings.ShmMni.Set(n)
	shmPool.SetMax(max(n, 1))
}

// EachShm calls f for every segment (/proc/sysvipc/shm), with its number.
func EachShm(f func(id int32, d linux.ShmidDS, resident int64)) {
	for i := range maxSegments {
		shmMu.Lock()
		if i >= len(shmTable) {
			shmMu.Unlock()
			return
		}
		g := shmTable[i]
		if g == nil {
			shmMu.Unlock()
			continue
		}
		id, d := g.id, g.stat()
		shmMu.Unlock()
		f(id, d, g.pages.Resident())
	}
}
