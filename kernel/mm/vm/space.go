// Package vm implements virtual memory: address spaces, their mappings and page faults.
//
// A Space is a list of mappings (what may be at an address) and a tree of page tables
// (what is there now). The tables are the hardware's own four levels, written with
// ordinary stores into frames of package mem, so all of it runs and is tested on the host
// too; what only the machine can do is in the functions of MMU.
//
// # Locks
//
// Order: Space.mu, then an object's own locks and mem.Mappings.mu, then
// Space.pt.
//
//   - mu guards the list of mappings. A fault holds it for reading and may add
//     entries to empty slots by compare-and-swap.
//   - pt guards what present entries point to: whoever follows an entry to its
//     frame (copies to and from user memory) holds it for reading; whoever
//     removes or replaces a present entry holds it for writing. Upgrades of an
//     entry that keep its frame hold either lock for reading.
//   - Both are held for writing to change the list, so that Zap, which is called
//     under an object's locks and so may take pt only, can read it.
//
// mem.Object.Page is called with mu held for reading: an object must not copy
// from or to user memory while it holds a lock that Page takes.
//
// # Invariants
//
//   - An entry that is not 0 holds a reference of its frame, except for the
//     shared zero page. Present or not: PROT_NONE clears the present bit only.
//   - An entry with pteAnon is a private page: fork shares it copy-on-write, and
//     one reference means it may be written in place.
//   - A frame is freed after all CPUs have flushed its translation.
//   - A writable entry's frame may be stored to by every user of the space.
package vm

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/hook"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/fs/vfs"
	"hardtack/nucleus"
)

const (
	pageSize  = mem.PageSize
	pageMask  = pageSize - 1
	pageShift = mem.PageShift

	// userTop is the first address that user programs cannot map (Linux's
	// TASK_SIZE).
	userTop = 0x7ffffffff000
)

// lowest is the lowest address that may be mapped.
func lowest() uint64 { return uint64(settings.MmapMinAddr.Get()) }

// mmu is what the machine does for address spaces. On the host it does nothing.
var mmu = MMU{
	FillUpper:  func(*[512]uint64) {},
	Invalidate: func(*nucleus.AddressSpace, uint64, uint64) {},
	Retire:     func(*nucleus.AddressSpace) {},
}

var mmuSet bool

// SetMMU sets what the machine does, once, before the first process.
func SetMMU(m MMU) {
	if mmuSet {
		panic("vm: the MMU is set twice")
	}
	mmu, mmuSet = m, true
}

// MMU is the nucleus's functions that page tables need.
type MMU struct {
	// FillUpper writes the kernel's entries 256…511 of a root table (KernelPML4).
	FillUpper func(root *[512]uint64)
	// Invalidate makes all CPUs forget translations of [start, end).
	Invalidate func(as *nucleus.AddressSpace, start, end uint64)
	// Retire makes sure that no CPU has the space loaded.
	Retire func(as *nucleus.AddressSpace)
}

// OutOfMemory kills a process for its memory, where set. (A fault says FaultOOM
// to its caller instead.)
var OutOfMemory hook.Of[func()]

// Space is an address space.
type Space struct {
	// AS is the nucleus's view; its Root is immutable.
	AS nucleus.AddressSpace
	// Limits gives RLIMIT_* of the owning process; nil: no limits but a stack
	// of 8 MiB. Set before the space is used by threads (after New and after
	// Fork).
	Limits func(resource int) uint64

	id    uint64       // identifies the space in futex keys; immutable
	root  *table       // the PML4; the pointer is immutable
	users atomic.Int64 // threads that have it, and lookers; it ends with the last of both

	dumpable atomic.Int32 // DumpNone or DumpUser

	// Barriers are the commands of membarrier that somebody with this memory has
	// registered for.
	Barriers atomic.Uint32

	doomed atomic.Bool   // see Doom
	owner  atomic.Uint32 // the user whose program it is; for Await

	mu   sync.RWMutex
	pt   sync.RWMutex
	vmas list // sorted, disjoint; guarded by mu and pt

	size      uint64 // sum of the mappings' lengths; guarded by mu
	peak      uint64 // greatest size; guarded by mu
	locked    uint64 // bytes under mlock; guarded by mu
	committed int64  // bytes of private writable mappings; guarded by mu
	lockNext  uint32 // vma flags of mappings to come (mlockall); guarded by mu
	brkStart  uint64 // guarded by mu
	brk       uint64 // guarded by mu

	mmapBase uint64 // mappings go below it; guarded by mu
	holeTop  uint64 // every hole between it and mmapBase … guarded by mu
	holeMin  uint64 // … is smaller than this; guarded by mu

	born []backing // new mappings to register before mu is released; guarded by mu
	dead []backing // what removed mappings held; released after mu; guarded by mu

	leaves leafCache
	hint   atomic.Uint32 // index of the mapping found last
	ahead  atomic.Uint64 // address that a sequential fault hits next | pages it got
	zapped atomic.Uint64 // grows with each Zap, under pt

	tables            atomic.Int64 // page-table frames besides the root
	anon, file, shmem atomic.Int64 // resident pages by kind
	hwm               atomic.Int64 // greatest number of resident pages seen
}

// backing is what a mapping refers to.
type backing struct {
	obj    mem.Object
	file   *vfs.File
	writes bool // a shared mapping that may be written to, which a mem.Sealed counts
}

// FaultResult is how a page fault ended.
type FaultResult uint8

// Results of Fault.
const (
	FaultOK     FaultResult = iota
	FaultMapErr             // SIGSEGV, SEGV_MAPERR
	FaultAccErr             // SIGSEGV, SEGV_ACCERR
	FaultBus                // SIGBUS, BUS_ADRERR
	FaultOOM                // out of memory: somebody must be killed
)

// Signal returns the signal and si_code of a failed fault: 0, 0 for FaultOK,
// SIGKILL for FaultOOM.
func (r FaultResult) Signal() (sig, code int32) {
	switch r {
	case FaultMapErr:
		return int32(linux.SIGSEGV), linux.SEGV_MAPERR
	case FaultAccErr:
		return int32(linux.SIGSEGV), linux.SEGV_ACCERR
	case FaultBus:
		return int32(linux.SIGBUS), linux.BUS_ADRERR
	case FaultOOM:
		return int32(linux.SIGKILL), 0
	}
	return 0, 0
}

var (
	zeroOnce  sync.Once
	zeroFrame mem.Frame // a page of zeroes that all spaces map read-only
)

// lowerHalf is the number of root entries that are the user's. (A variable for
// the reason that mem.Frame.Zero gives.)
var lowerHalf = 256

// reserveFrames must be free beyond mem's floor for a new address space: the
// last pages go to those that run already.
const reserveFrames = 32

// New returns an empty address space with one user.
func New() (*Space, linux.Errno) {
	zeroOnce.Do(func() { zeroFrame, _ = mem.AllocZeroed() })
	if zeroFrame == 0 || mem.Spare() < reserveFrames && mem.Available() < reserveFrames {
		return nil, linux.ENOMEM
	}
	root, ok := mem.Alloc()
	if !ok {
		return nil, linux.ENOMEM
	}
	s := &Space{id: mem.NewID(), root: (*table)(root.Words())}
	clear(s.root[:lowerHalf])
	mmu.FillUpper((*[512]uint64)(s.root))
	s.AS.Root = root.Phys()
	s.users.Store(1)
	s.dumpable.Store(DumpUser)
	s.setBase(userTop - 128<<20)
	return s, 0
}

// Share adds a user (CLONE_VM). Release undoes it.
func (s *Space) Share() { s.users.Add(1) }

// looker is one of those who look into the space but do not run in it, as users counts.
const looker = 1 << 32

// Look keeps the space for somebody who does not run in it. EndLook undoes it.
func (s *Space) Look() { s.users.Add(looker) }

// TryLook is Look for somebody who does not know whether the space is still there.
func (s *Space) TryLook() bool {
	for {
		n := s.users.Load()
		if n <= 0 {
			return false
		}
		if s.users.CompareAndSwap(n, n+looker) {
			return true
		}
	}
}

// EndLook drops a looker.
func (s *Space) EndLook() { s.drop(looker, nil) }

// Release drops a user.
func (s *Space) Release() { s.drop(1, nil) }

// End is Release by a thread that leaves the space.
func (s *Space) End(c *caller.Ctx) { s.drop(1, c) }

// pruneSpan is the part of a mapping whose tables are given back without a rest.
const pruneSpan = 1 << 32

// drop drops a user or a looker; the last one tears the space down, which may be long work of
// c's.
func (s *Space) drop(one int64, c *caller.Ctx) {
	n := s.users.Add(-one)
	if n > 0 {
		return
	}
	if n < 0 {
		panic("vm: address space released twice")
	}
	mmu.Retire(&s.AS)
	s.lock()
	g := s.gather()
	g.quiet, g.rests, g.caller = true, true, c
	for i := range s.vmas.len() {
		v := s.vmas.at(i)
		s.zapRange(g, v, v.start, v.end, zapAll)
	}
	for i := 0; i < s.vmas.len(); i++ {
		start, end := s.vmas.at(i).start, s.vmas.at(i).end
		for i+1 < s.vmas.len() && s.vmas.at(i+1).start-end < leafSpan {
			i++
			end = s.vmas.at(i).end
		}
		_, hi := s.hole(i, i+1)
		for stop := start; start < end; start = stop {
			if stop = min(start+pruneSpan, end); stop < end {
				s.prune(g, start, stop, 0, stop) // nothing is left below
			} else {
				s.prune(g, start, stop, 0, hi)
			}
			g.rest()
		}
	}
	gone := s.vmas
	s.vmas = list{}
	pace := g.pace
	g.done()
	s.unlock()
	for i := 0; i < gone.len(); i++ {
		b := gone.at(i).backing()
		n := 1
		for i+1 < gone.len() && b.same(gone.at(i+1)) {
			i++
			n++
		}
		b.release(s, n)
		if i%restLooks == 0 && pace.Due() {
			pace.Rest(c)
		}
	}
	allMaps.Add(-int64(gone.len()))
	allCommitted.Add(-s.committed)
	mem.FrameOf(s.AS.Root).Put()
}

// lock takes the space for a change of its mappings; unlock ends that, and
// then releases what the removed mappings held.
func (s *Space) lock() {
	s.mu.Lock()
	s.pt.Lock()
}

func (s *Space) unlock() {
	born, dead := s.born, s.dead
	s.born, s.dead = nil, nil
	s.pt.Unlock()
	for i := range born {
		born[i].register(s, 1)
	}
	s.mu.Unlock()
	for i := range dead {
		dead[i].release(s, 1)
	}
}

func (v *vma) backing() backing { return backing{v.obj, v.file, v.writes()} }

// same reports whether v has the same backing. (The same open file has the same
// object; comparing interfaces takes longer.)
func (b *backing) same(v *vma) bool {
	return b.file == v.file && (b.file != nil || b.obj == v.obj) && b.writes == v.writes()
}

// hold takes what n more mappings need, except for the registration.
func (b *backing) hold(n int) {
	if b.file != nil {
		for range n {
			b.file.Get()
		}
		b.addWriters(n)
	} else if b.obj != nil {
		if c, ok := b.obj.(mem.Counted); ok {
			for range n {
				c.Attach()
			}
		}
	}
}

// register says that the object has n more mappings in s.
func (b *backing) register(s *Space, n int) {
	if b.obj != nil {
		if m := b.obj.Mappings(); m != nil {
			m.Add(s, n)
		}
	}
}

// release gives back what n mappings held.
func (b *backing) release(s *Space, n int) {
	if b.obj != nil {
		if m := b.obj.Mappings(); m != nil {
			m.Remove(s, n)
		}
	}
	b.drop(n)
}

// drop undoes hold.
func (b *backing) drop(n int) {
	if b.file != nil {
		b.addWriters(-n)
		for range n {
			b.file.Put()
		}
	} else if b.obj != nil {
		if c, ok := b.obj.(mem.Counted); ok {
			for range n {
				c.Detach()
			}
		}
	}
}

func (b *backing) addWriters(n int) {
	if !b.writes {
		return
	}
	if s, ok := b.obj.(mem.Sealed); ok {
		s.AddWriters(n)
	}
}

// limit returns a resource limit of the owner.
func (s *Space) limit(resource int) uint64 {
	if s.Limits != nil {
		return s.Limits(resource)
	}
	if resource == linux.RLIMIT_STACK {
		return 8 << 20
	}
	return ^uint64(0)
}
