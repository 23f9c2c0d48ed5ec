package vfs

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/settings"
)

// FDTable is a descriptor table, shared by the threads of a process (or by
// clone with CLONE_FILES). Look-ups take no lock: the table is an array of
// pointers to chunks, replaced as a whole when it grows, and a chunk is made
// when a descriptor in it is first used; so a high descriptor costs little.
type FDTable struct {
	users atomic.Int32 // processes and threads that share the table

	// Changes counts the remembered files that a descriptor named and no longer
	// does. It grows before the call that closed one returns.
	Changes atomic.Uint64

	payer      atomic.Pointer[accounts.User] // who is charged; changed under mu
	privileged atomic.Bool                   // CAP_SYS_ADMIN

	mu      sync.Mutex
	charged int64                      // what payer is charged for the table; guarded by mu
	chunks  atomic.Pointer[[]chunkRef] // the array is replaced under mu, when it grows
	next    int                        // no free slot below; guarded by mu
	max     int                        // slots in use end here; guarded by mu
}

const (
	chunkShift = 6
	chunkSlots = 1 << chunkShift

	// chunkCost is what a chunk takes of the heap.
	chunkCost = 576
)

// chunk is a piece of the table; once made it stays. A bit of its words belongs to
// each slot.
type chunk struct {
	f       [chunkSlots]atomic.Pointer[File]
	cloexec atomic.Uint64
	taken   uint64 // reserved by Reserve, or in use; guarded by the table's mu
}

type chunkRef = atomic.Pointer[chunk]

// MaxFDs is the most that fs.nr_open may be, which bounds RLIMIT_NOFILE.
const MaxFDs = 1 << 30

// NewFDTable returns an empty table with one user, whose credentials say who pays.
func NewFDTable(cr *creds.Cred) *FDTable {
	t := &FDTable{}
	t.users.Store(1)
	t.payer.Store(accounts.UserOf(cr.UID))
	t.privileged.Store(cr.Has(creds.CapSysAdmin))
	c := make([]chunkRef, 1)
	c[0].Store(new(chunk))
	t.chunks.Store(&c)
	return t
}

// SetOwner charges the table, and files that it gets from now on, to another user.
func (t *FDTable) SetOwner(cr *creds.Cred) {
	t.mu.Lock()
	t.privileged.Store(cr.Has(creds.CapSysAdmin))
	if old := t.payer.Load(); old.UID != cr.UID {
		n := accounts.UserOf(cr.UID)
		t.payer.Store(n)
		tables.Move(old, n, t.charged)
	}
	t.mu.Unlock()
}

// chunkOf returns the chunk of a descriptor, nil where there was never one.
func (t *FDTable) chunkOf(fd int32) *chunk {
	c := *t.chunks.Load()
	if k := uint(fd) >> chunkShift; k < uint(len(c)) {
		return c[k].Load()
	}
	return nil
}

// bit is a descriptor's in the words of its chunk.
func bit(fd int32) uint64 { return 1 << (uint32(fd) & (chunkSlots - 1)) }

// at returns the slot of a descriptor.
func (p *chunk) at(fd int32) *atomic.Pointer[File] { return &p.f[fd&(chunkSlots-1)] }

// setCloexec sets or clears the flag of a descriptor.
func (p *chunk) setCloexec(fd int32, on bool) {
	switch b := bit(fd); {
	case on:
		p.cloexec.Or(b)
	case p.cloexec.Load()&b != 0:
		p.cloexec.And(^b)
	}
}

// arrayCost is what an array of so many chunks is charged; the first chunk of a table
// and its array are free.
func arrayCost(chunks int) int64 { return int64(chunks / chunkSlots) }

// beyond reports whether the table would have to grow further than fs.nr_open says.
func (t *FDTable) beyond(fd int) bool {
	return fd>>chunkShift >= len(*t.chunks.Load()) && int64(fd) >= settings.NrOpen.Get()
}

// grow returns the chunk of a descriptor, which it makes; nil if the user may have no
// more. Called with mu held.
func (t *FDTable) grow(fd int) *chunk {
	c := *t.chunks.Load()
	k := fd >> chunkShift
	if k < len(c) {
		if p := c[k].Load(); p != nil {
			return p
		}
	}
	size := len(c)
	if k >= size {
		size = max(2*size, k+1)
	}
	cost := 1 + arrayCost(size) - arrayCost(len(c))
	if !tables.Charge(t.payer.Load(), cost) {
		return nil
	}
	t.charged += cost
	if size > len(c) {
		n := make([]chunkRef, size)
		for i := range c {
			n[i].Store(c[i].Load())
		}
		t.chunks.Store(&n)
		c = n
	}
	p := new(chunk)
	c[k].Store(p)
	return p
}

// Get returns the file at fd with a reference, or nil. The caller Puts it.
func (t *FDTable) Get(fd int32) *File {
	p := t.chunkOf(fd)
	if p == nil {
		return nil
	}
	s := p.at(fd)
	for {
		f := s.Load()
		if f == nil {
			return nil
		}
		if f.TryGet() {
			// The slot may have been reused between the two loads.
			if s.Load() == f {
				return f
			}
			f.Put()
		}
	}
}

// Hold is Get for a caller with locks under which no file may end: it never drops
// a reference, as Get may when the descriptor is closed meanwhile. It returns the
// close-on-exec flag too.
func (t *FDTable) Hold(fd int32) (f *File, cloexec bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.chunkOf(fd)
	if p == nil {
		return nil, false
	}
	if f = p.at(fd).Load(); f == nil {
		return nil, false
	}
	f.Get() // the slot's own reference goes after mu was held
	return f, p.cloexec.Load()&bit(fd) != 0
}

// Reserve takes the lowest free descriptor from min on, below limit
// (RLIMIT_NOFILE): EMFILE when there is none, ENFILE when the system or the user has
// too many open files, ENOMEM when the user's tables are too large. Install or
// Unreserve follows.
func (t *FDTable) Reserve(min int, limit uint64) (int32, linux.Errno) {
	if !files.Room(t.payer.Load(), 1, t.privileged.Load()) {
		return -1, linux.ENFILE
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	fd := max(min, t.next)
	p := t.chunkOf(int32(fd))
	if p == nil || p.taken&bit(int32(fd)) != 0 {
		fd, p = t.lowest(fd), nil
	}
	if uint64(fd) >= limit || t.beyond(fd) {
		return -1, linux.EMFILE
	}
	if p == nil {
		if p = t.grow(fd); p == nil {
			return -1, linux.ENOMEM
		}
	}
	p.taken |= bit(int32(fd))
	if min <= t.next {
		t.next = fd + 1
	}
	t.max = max(t.max, fd+1)
	return int32(fd), 0
}

// lowest returns the first free descriptor from fd on; called with mu held.
func (t *FDTable) lowest(fd int) int {
	for fd < t.max {
		p := t.chunkOf(int32(fd))
		if p == nil {
			break
		}
		off := fd & (chunkSlots - 1)
		if free := ^p.taken >> off; free != 0 {
			fd += bits.TrailingZeros64(free)
			break
		}
		fd += chunkSlots - off
	}
	return fd
}

// Install puts a file, whose reference it takes over, into a reserved slot.
func (t *FDTable) Install(fd int32, f *File, cloexec bool) {
	t.own(f)
	p := t.chunkOf(fd)
	p.setCloexec(fd, cloexec)
	p.at(fd).Store(f)
}

// own charges a new file to the table's user.
func (t *FDTable) own(f *File) {
	if f.owner == nil {
		f.owner = t.payer.Load()
		files.Hold(f.owner, 1)
	}
}

// Unreserve gives a reserved descriptor back.
func (t *FDTable) Unreserve(fd int32) {
	t.mu.Lock()
	t.free(fd)
	t.mu.Unlock()
}

func (t *FDTable) free(fd int32) {
	t.chunkOf(fd).taken &^= bit(fd)
	t.next = min(t.next, int(fd))
}

// Add reserves the lowest descriptor from min on and installs f in it, whose
// reference it takes over only when it succeeds.
func (t *FDTable) Add(f *File, min int, limit uint64, cloexec bool) (int32, linux.Errno) {
	fd, e := t.Reserve(min, limit)
	if e == 0 {
		t.Install(fd, f, cloexec)
	}
	return fd, e
}

// Replace is dup2: it puts f (taking over the reference) at fd and closes what
// was there. EBUSY if fd is only reserved, EBADF beyond the limit, ENOMEM when
// the user's tables are too large.
func (t *FDTable) Replace(c *caller.Ctx, fd int32, f *File, limit uint64, cloexec bool) linux.Errno {
	if fd < 0 || uint64(fd) >= limit || t.beyond(int(fd)) {
		return linux.EBADF
	}
	t.mu.Lock()
	p := t.grow(int(fd))
	if p == nil {
		t.mu.Unlock()
		return linux.ENOMEM
	}
	old := p.at(fd).Load()
	if old == nil && p.taken&bit(fd) != 0 {
		t.mu.Unlock()
		return linux.EBUSY
	}
	t.own(f)
	p.taken |= bit(fd)
	p.setCloexec(fd, cloexec)
	p.at(fd).Store(f)
	t.max = max(t.max, int(fd)+1)
	t.mu.Unlock()
	if old != nil {
		t.closeFile(c, old)
	}
	return 0
}

// Close empties a slot.
func (t *FDTable) Close(c *caller.Ctx, fd int32) linux.Errno {
	p := t.chunkOf(fd)
	if p == nil {
		return linux.EBADF
	}
	t.mu.Lock()
	f := p.at(fd).Load()
	if f == nil {
		t.mu.Unlock()
		return linux.EBADF
	}
	p.at(fd).Store(nil)
	t.free(fd)
	t.mu.Unlock()
	t.closeFile(c, f)
	return 0
}

func (t *FDTable) closeFile(c *caller.Ctx, f *File) {
	if f.remembered {
		t.Changes.Add(1)
	}
	f.Closed(t)
	f.Put()
}

// CloseOnExec reads the flag of an open descriptor.
func (t *FDTable) CloseOnExec(fd int32) (bool, linux.Errno) {
	p := t.chunkOf(fd)
	if p == nil || p.at(fd).Load() == nil {
		return false, linux.EBADF
	}
	return p.cloexec.Load()&bit(fd) != 0, 0
}

// SetCloseOnExec sets the flag of an open descriptor.
func (t *FDTable) SetCloseOnExec(fd int32, on bool) linux.Errno {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.chunkOf(fd)
	if p == nil || p.at(fd).Load() == nil {
		return linux.EBADF
	}
	p.setCloexec(fd, on)
	return 0
}

// Fork returns a copy with a reference to every file; ENOMEM when the user's tables
// are too large, EMFILE when one is open beyond what fs.nr_open came to be.
func (t *FDTable) Fork() (*FDTable, linux.Errno) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := *t.chunks.Load()
	size := min(len(old), max(1, (t.max+chunkSlots-1)>>chunkShift))
	for size > 1 && !old[size-1].Load().used() {
		size--
	}
	if size > 1 && int64(size-1)<<chunkShift >= settings.NrOpen.Get() {
		return nil, linux.EMFILE
	}
	cost := arrayCost(size)
	for k := 1; k < size; k++ {
		if old[k].Load().used() {
			cost++
		}
	}
	payer := t.payer.Load()
	if cost > 0 && !tables.Charge(payer, cost) {
		return nil, linux.ENOMEM
	}
	n := &FDTable{next: t.next, max: min(t.max, size<<chunkShift), charged: cost}
	n.users.Store(1)
	n.payer.Store(payer)
	n.privileged.Store(t.privileged.Load())
	c := make([]chunkRef, size)
	for k := range c {
		from := old[k].Load()
		if from == nil {
			continue
		}
		if to := from.fork(); to != nil {
			c[k].Store(to)
			if only := from.taken &^ to.taken; only != 0 { // reserved there, free here
				n.next = min(n.next, k<<chunkShift+bits.TrailingZeros64(only))
			}
		} else {
			n.next = min(n.next, k<<chunkShift)
		}
	}
	n.chunks.Store(&c)
	return n, 0
}

// used reports whether a chunk has descriptors; called with the table's mu held.
func (p *chunk) used() bool { return p != nil && p.taken != 0 }

// fork returns a copy, nil of a chunk without files; called with the table's mu held.
func (p *chunk) fork() *chunk {
	var n *chunk
	for left := p.taken; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		f := p.f[i].Load()
		if f == nil {
			continue // only reserved
		}
		if n == nil {
			n = new(chunk)
		}
		f.Get()
		n.f[i].Store(f)
		n.taken |= 1 << i
	}
	if n != nil {
		n.cloexec.Store(p.cloexec.Load() & n.taken)
	}
	return n
}

// Share adds a user of the table (CLONE_FILES).
func (t *FDTable) Share() { t.users.Add(1) }

// Users returns how many share the table.
func (t *FDTable) Users() int { return int(t.users.Load()) }

// Release drops a user; the last one closes everything.
func (t *FDTable) Release(c *caller.Ctx) {
	if t.users.Add(-1) == 0 {
		t.CloseRange(c, 0, MaxFDs-1, false)
		tables.Release(t.payer.Load(), t.charged)
	}
}

// CloseExec closes what is marked close-on-exec.
func (t *FDTable) CloseExec(c *caller.Ctx) {
	t.CloseRange(c, 0, MaxFDs-1, true)
}

// CloseRange closes the open descriptors first … last, or those among them that are
// marked close-on-exec.
func (t *FDTable) CloseRange(c *caller.Ctx, first, last int, marked bool) {
	var pace caller.Pace
	for fd := t.nextOpen(first, last); fd >= 0; fd = t.nextOpen(fd+1, last) {
		p := t.chunkOf(int32(fd))
		t.mu.Lock()
		f := p.at(int32(fd)).Load()
		if f == nil || marked && p.cloexec.Load()&bit(int32(fd)) == 0 {
			t.mu.Unlock()
			continue
		}
		p.at(int32(fd)).Store(nil)
		t.free(int32(fd))
		t.mu.Unlock()
		t.closeFile(c, f)
		if fd%someFiles == someFiles-1 && pace.Due() {
			pace.Rest(c) // what a process leaves may be much
		}
	}
}

// nextOpen returns the first open descriptor in first … last, or -1.
func (t *FDTable) nextOpen(first, last int) int {
	c := *t.chunks.Load()
	for fd := first; fd <= last && fd>>chunkShift < len(c); fd++ {
		p := c[fd>>chunkShift].Load()
		if p == nil {
			fd |= chunkSlots - 1
			continue
		}
		if p.at(int32(fd)).Load() != nil {
			return fd
		}
	}
	return -1
}

// Next returns the first open descriptor from fd on, or -1.
func (t *FDTable) Next(fd int32) int32 { return int32(t.nextOpen(max(int(fd), 0), MaxFDs-1)) }

// MarkCloseOnExec sets the flag on the open descriptors first … last.
func (t *FDTable) MarkCloseOnExec(first, last int) {
	for fd := t.nextOpen(first, last); fd >= 0; fd = t.nextOpen(fd+1, last) {
		t.SetCloseOnExec(int32(fd), true)
	}
}

// Each calls fn for every open descriptor in order, with a reference that fn
// must not keep.
func (t *FDTable) Each(fn func(fd int32, f *File) bool) {
	for fd := t.nextOpen(0, MaxFDs-1); fd >= 0; fd = t.nextOpen(fd+1, MaxFDs-1) {
		if f := t.Get(int32(fd)); f != nil {
			more := fn(int32(fd), f)
			f.Put()
			if !more {
				return
			}
		}
	}
}

// Size returns how many descriptors the table has room for now; higher ones
// are not open.
func (t *FDTable) Size() int { return len(*t.chunks.Load()) << chunkShift }
