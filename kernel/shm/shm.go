// Package shm is System V shared memory: segments that programs find by key and
// attach to their address spaces.
//
// A segment lives until it was removed (IPC_RMID) and the last attachment is
// gone. Its pages come at the first touch.
//
// Lock order: an address space's locks, then mu (a fork counts its attachments),
// then the pages' own. Nothing here calls an address space with mu held.
package shm

import (
	"fmt"
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/kern"
	"hardtack/kernel/mem"
	"hardtack/kernel/vm"
)

const (
	// maxSegments is the most that kernel.shmmni may be; seqStep tells apart segments
	// that had the same place in the table.
	maxSegments = linux.IPCMNI
	seqStep     = linux.IPCMNI
)

// Segment is a shared memory segment; a mem.Object whose mappings are counted.
type Segment struct {
	user *kern.User // who is charged; immutable

	pages *vm.Shared // immutable
	size  uint64     // as asked for; immutable
	id    int32      // immutable
	cpid  int32      // immutable

	perm                linux.IPCPerm // guarded by mu; Key is immutable
	atime, dtime, ctime int64         // guarded by mu
	lpid                int32         // guarded by mu
	attached            int           // guarded by mu
	removed             bool          // guarded by mu: goes with the last attachment
}

var (
	mu    sync.Mutex
	table []*Segment                        // guarded by mu; as long as it was ever needed
	pool  = kern.NewPool(kern.ShmMni.Get()) // of table, which users share
	seqs  []uint16                          // guarded by mu; grows when a place is used again
	used  int                               // guarded by mu
	total atomic.Int64                      // pages of all segments, touched or not
)

// Page implements mem.Object.
func (g *Segment) Page(i uint64, write bool) (mem.Frame, linux.Errno) { return g.pages.Page(i, write) }

// Cached implements mem.Cacher.
func (g *Segment) Cached(i uint64) (mem.Frame, bool) { return g.pages.Cached(i) }

// Punch implements mem.Puncher.
func (g *Segment) Punch(first, n uint64) linux.Errno { return g.pages.PunchOf(g, first, n) }

// Mappings implements mem.Object.
func (g *Segment) Mappings() *mem.Mappings { return g.pages.Mappings() }

// Attach implements mem.Counted.
func (g *Segment) Attach() {
	mu.Lock()
	g.attached++
	mu.Unlock()
}

// Detach implements mem.Counted.
func (g *Segment) Detach() {
	mu.Lock()
	g.dtime = now()
	g.drop()
	mu.Unlock()
}

// drop takes an attachment away. The caller holds mu.
func (g *Segment) drop() {
	if g.attached--; g.attached == 0 && g.removed {
		g.free()
	}
}

// free forgets a segment that nobody has attached. The caller holds mu.
func (g *Segment) free() {
	i := g.id % seqStep
	table[i] = nil
	used--
	pool.Release(g.user, 1)
	total.Add(-int64(pagesOf(g.size)))
	g.pages.Detach()
}

func now() int64 { return kern.Realtime() / 1e9 }

func pagesOf(size uint64) uint64 {
	n := size >> mem.PageShift
	if size&(mem.PageSize-1) != 0 {
		n++
	}
	return n
}

// Get is shmget(2).
func Get(c *kern.Ctx, key int32, size uint64, flags uint32) (int32, linux.Errno) {
	mu.Lock()
	defer mu.Unlock()
	if key != linux.IPC_PRIVATE {
		for _, g := range table {
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
	if size == 0 || size > uint64(kern.ShmMax.Get()) || size > 1<<63-1 || flags&linux.SHM_HUGETLB != 0 {
		return 0, linux.EINVAL
	}
	n := pagesOf(size)
	if all := uint64(total.Load()); all+n < all || all+n > uint64(kern.ShmAll.Get()) {
		return 0, linux.ENOSPC
	}
	i := 0
	for i < len(table) && table[i] != nil {
		i++
	}
	u := c.User()
	if used >= int(kern.ShmMni.Get()) || i == maxSegments || !pool.Charge(u, 1) {
		return 0, linux.ENOSPC
	}
	pages := vm.NewSegment(n, flags&linux.SHM_NORESERVE == 0)
	if pages == nil {
		pool.Release(u, 1)
		return 0, linux.ENOMEM
	}
	if i < len(table) {
		seqs[i] = (seqs[i] + 1) & 0x7fff
	} else {
		table, seqs = append(table, nil), append(seqs, 0)
	}
	cred := c.Cred()
	g := &Segment{pages: pages, size: size, id: int32(seqs[i])*seqStep + int32(i), cpid: c.PID, ctime: now(), user: u}
	g.perm = linux.IPCPerm{Key: key, UID: cred.EUID, GID: cred.EGID, CUID: cred.EUID, CGID: cred.EGID,
		Mode: flags & 0o777, Seq: seqs[i]}
	table[i] = g
	used++
	total.Add(int64(n))
	return g.id, 0
}

// lookup returns a segment by its number. The caller holds mu.
func lookup(id int32) (*Segment, linux.Errno) {
	if id < 0 || int(id%seqStep) >= len(table) {
		return nil, linux.EINVAL
	}
	g := table[id%seqStep]
	if g == nil {
		return nil, linux.EINVAL
	}
	if g.id != id {
		return nil, linux.EIDRM
	}
	return g, 0
}

// At is shmat(2). As on Linux a removed segment can be attached while others
// have it.
func At(c *kern.Ctx, s *vm.Space, id int32, addr uint64, flags uint32) (uint64, linux.Errno) {
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
	mu.Lock()
	g, e := lookup(id)
	if e == 0 && !c.Cred().MayIPC(&g.perm, want) {
		e = linux.EACCES
	}
	if e != 0 {
		mu.Unlock()
		return 0, e
	}
	g.attached++ // keeps it while it is being mapped
	mu.Unlock()
	if addr != 0 && flags&linux.SHM_REMAP == 0 && m.Addr+g.size < m.Addr {
		e = linux.EINVAL // unlike other bad addresses
	}
	m.Object, m.Length = g, g.size
	m.Name = fmt.Sprintf("/SYSV%08x (deleted)", uint32(g.perm.Key))
	var at uint64
	if e == 0 {
		at, e = s.Mmap(c, &m)
	}
	mu.Lock()
	if e == 0 {
		g.atime, g.lpid = now(), c.PID
	}
	g.drop()
	mu.Unlock()
	if e == linux.EEXIST {
		e = linux.EINVAL
	}
	return at, e
}

// Dt is shmdt(2).
func Dt(c *kern.Ctx, s *vm.Space, addr uint64) linux.Errno {
	if addr%mem.PageSize != 0 {
		return linux.EINVAL
	}
	o, e := s.UnmapObject(addr, func(o mem.Object) bool { _, ok := o.(*Segment); return ok })
	if e != 0 {
		return e
	}
	g := o.(*Segment)
	mu.Lock()
	g.lpid, g.dtime = c.PID, now()
	mu.Unlock()
	return 0
}

// stat fills in what shmctl IPC_STAT tells. The caller holds mu.
func (g *Segment) stat() linux.ShmidDS {
	d := linux.ShmidDS{Perm: g.perm, Size: g.size, ATime: g.atime, DTime: g.dtime, CTime: g.ctime,
		CPID: g.cpid, LPID: g.lpid, Attached: uint64(max(g.attached, 0))}
	if g.removed {
		d.Perm.Key = linux.IPC_PRIVATE
		d.Perm.Mode |= linux.SHM_DEST
	}
	return d
}

// Stat is shmctl IPC_STAT.
func Stat(c *kern.Ctx, id int32) (linux.ShmidDS, linux.Errno) {
	mu.Lock()
	defer mu.Unlock()
	g, e := lookup(id)
	if e != 0 {
		return linux.ShmidDS{}, e
	}
	if !c.Cred().MayIPC(&g.perm, 0o444) {
		return linux.ShmidDS{}, linux.EACCES
	}
	return g.stat(), 0
}

// StatIndex is shmctl SHM_STAT and, with anyone, SHM_STAT_ANY: it takes a place
// in the table and returns the segment's number too.
func StatIndex(c *kern.Ctx, i int32, anyone bool) (int32, linux.ShmidDS, linux.Errno) {
	mu.Lock()
	defer mu.Unlock()
	if i < 0 || int(i) >= len(table) || table[i] == nil {
		return 0, linux.ShmidDS{}, linux.EINVAL
	}
	g := table[i]
	if !anyone && !c.Cred().MayIPC(&g.perm, 0o444) {
		return 0, linux.ShmidDS{}, linux.EACCES
	}
	return g.id, g.stat(), 0
}

// owned returns a segment that c may change or remove. The caller holds mu.
func owned(c *kern.Ctx, id int32) (*Segment, linux.Errno) {
	g, e := lookup(id)
	if e != 0 {
		return nil, e
	}
	cred := c.Cred()
	if cred.EUID != g.perm.UID && cred.EUID != g.perm.CUID && !cred.Has(kern.CapSysAdmin) {
		return nil, linux.EPERM
	}
	return g, 0
}

// Set is shmctl IPC_SET.
func Set(c *kern.Ctx, id int32, uid, gid, mode uint32) linux.Errno {
	mu.Lock()
	defer mu.Unlock()
	g, e := owned(c, id)
	if e != 0 {
		return e
	}
	if e := g.perm.Set(uid, gid, mode); e != 0 {
		return e
	}
	g.ctime = now()
	return 0
}

// Remove is shmctl IPC_RMID.
func Remove(c *kern.Ctx, id int32) linux.Errno {
	mu.Lock()
	defer mu.Unlock()
	g, e := owned(c, id)
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

// Lock is shmctl SHM_LOCK and SHM_UNLOCK: memory is never swapped out, so only
// the mark changes.
func Lock(c *kern.Ctx, id int32, on bool) linux.Errno {
	mu.Lock()
	defer mu.Unlock()
	g, e := lookup(id)
	if e != 0 {
		return e
	}
	cred := c.Cred()
	if !cred.Has(kern.CapIPCLock) && cred.EUID != g.perm.UID && cred.EUID != g.perm.CUID {
		return linux.EPERM
	}
	g.perm.Mode &^= linux.SHM_LOCKED
	if on {
		g.perm.Mode |= linux.SHM_LOCKED
	}
	return 0
}

// Usage is shmctl SHM_INFO and IPC_INFO: how many segments there are, the
// highest used place in the table, and the pages asked for and present.
func Usage() (segments, highest int, pages, resident uint64) {
	mu.Lock()
	defer mu.Unlock()
	for i, g := range table {
		if g != nil {
			highest = i
			resident += uint64(g.pages.Resident())
		}
	}
	return used, highest, uint64(total.Load()), resident
}

// Limits returns SHMMAX, SHMMNI and SHMALL.
func Limits() (size, segments, all uint64) {
	return uint64(kern.ShmMax.Get()), uint64(kern.ShmMni.Get()), uint64(kern.ShmAll.Get())
}

// SetSegments changes kernel.shmmni.
func SetSegments(n int64) {
	kern.ShmMni.Set(n)
	pool.SetMax(max(n, 1))
}

// Each calls f for every segment (/proc/sysvipc/shm), with its number.
func Each(f func(id int32, d linux.ShmidDS, resident int64)) {
	for i := range maxSegments {
		mu.Lock()
		if i >= len(table) {
			mu.Unlock()
			return
		}
		g := table[i]
		if g == nil {
			mu.Unlock()
			continue
		}
		id, d := g.id, g.stat()
		mu.Unlock()
		f(id, d, g.pages.Resident())
	}
}
