package vfs

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/kern"
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

	mu     sync.Mutex
	chunks atomic.Pointer[[]chunkRef] // the array is replaced under mu, when it grows
	next   int                        // no free slot below; guarded by mu
	max    int                        // slots in use end here; guarded by mu
}

const (
	chunkShift = 6
	chunkSlots = 1 << chunkShift
)

// chunk is a piece of the table; once made it stays.
type chunk [chunkSlots]slot

type chunkRef = atomic.Pointer[chunk]

type slot struct {
	f       atomic.Pointer[File]
	cloexec atomic.Bool
	taken   bool // reserved by Reserve, or in use; guarded by the table's mu
}

// MaxFDs is the highest RLIMIT_NOFILE that is granted (fs.nr_open).
const MaxFDs = 1 << 20

// NewFDTable returns an empty table with one user.
func NewFDTable() *FDTable {
	t := &FDTable{}
	t.users.Store(1)
	c := make([]chunkRef, 1)
	c[0].Store(new(chunk))
	t.chunks.Store(&c)
	return t
}

// slot returns the place of a descriptor, nil where there was never one.
func (t *FDTable) slot(fd int32) *slot {
	c := *t.chunks.Load()
	if k := uint(fd) >> chunkShift; k < uint(len(c)) {
		if p := c[k].Load(); p != nil {
			return &p[fd&(chunkSlots-1)]
		}
	}
	return nil
}

// grow returns the place of a descriptor, which it makes; called with mu held.
func (t *FDTable) grow(fd int) *slot {
	c := *t.chunks.Load()
	k := fd >> chunkShift
	if k >= len(c) {
		n := make([]chunkRef, max(2*len(c), k+1))
		for i := range c {
			n[i].Store(c[i].Load())
		}
		t.chunks.Store(&n)
		c = n
	}
	p := c[k].Load()
	if p == nil {
		p = new(chunk)
		c[k].Store(p)
	}
	return &p[fd&(chunkSlots-1)]
}

// Get returns the file at fd with a reference, or nil. The caller Puts it.
func (t *FDTable) Get(fd int32) *File {
	s := t.slot(fd)
	if s == nil {
		return nil
	}
	for {
		f := s.f.Load()
		if f == nil {
			return nil
		}
		if f.TryGet() {
			// The slot may have been reused between the two loads.
			if s.f.Load() == f {
				return f
			}
			f.Put()
		}
	}
}

// Reserve takes the lowest free descriptor from min on, below limit
// (RLIMIT_NOFILE): EMFILE when there is none, ENFILE when the system has too
// many open files. Install or Unreserve follows.
func (t *FDTable) Reserve(min int, limit uint64) (int32, linux.Errno) {
	if n, most := Files(); n >= most {
		return -1, linux.ENFILE
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	fd := max(min, t.next)
	for fd < t.max {
		s := t.slot(int32(fd))
		if s == nil || !s.taken {
			break
		}
		fd++
	}
	if uint64(fd) >= limit || fd >= MaxFDs {
		return -1, linux.EMFILE
	}
	t.grow(fd).taken = true
	if min <= t.next {
		t.next = fd + 1
	}
	t.max = max(t.max, fd+1)
	return int32(fd), 0
}

// Install puts a file, whose reference it takes over, into a reserved slot.
func (t *FDTable) Install(fd int32, f *File, cloexec bool) {
	s := t.slot(fd)
	s.cloexec.Store(cloexec)
	s.f.Store(f)
}

// Unreserve gives a reserved descriptor back.
func (t *FDTable) Unreserve(fd int32) {
	t.mu.Lock()
	t.free(fd)
	t.mu.Unlock()
}

func (t *FDTable) free(fd int32) {
	t.slot(fd).taken = false
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
// was there. EBUSY if fd is only reserved, EBADF beyond the limit.
func (t *FDTable) Replace(c *kern.Ctx, fd int32, f *File, limit uint64, cloexec bool) linux.Errno {
	if fd < 0 || uint64(fd) >= limit || fd >= MaxFDs {
		return linux.EBADF
	}
	t.mu.Lock()
	s := t.grow(int(fd))
	old := s.f.Load()
	if old == nil && s.taken {
		t.mu.Unlock()
		return linux.EBUSY
	}
	s.taken = true
	s.cloexec.Store(cloexec)
	s.f.Store(f)
	t.max = max(t.max, int(fd)+1)
	t.mu.Unlock()
	if old != nil {
		t.closeFile(c, old)
	}
	return 0
}

// Close empties a slot.
func (t *FDTable) Close(c *kern.Ctx, fd int32) linux.Errno {
	s := t.slot(fd)
	if s == nil {
		return linux.EBADF
	}
	t.mu.Lock()
	f := s.f.Load()
	if f == nil {
		t.mu.Unlock()
		return linux.EBADF
	}
	s.f.Store(nil)
	t.free(fd)
	t.mu.Unlock()
	t.closeFile(c, f)
	return 0
}

func (t *FDTable) closeFile(c *kern.Ctx, f *File) {
	if f.remembered {
		t.Changes.Add(1)
	}
	if fl, ok := f.Ops.(Flusher); ok {
		fl.Flush(c, f)
	}
	f.closed(t)
	f.Put()
}

// CloseOnExec reads the flag of an open descriptor.
func (t *FDTable) CloseOnExec(fd int32) (bool, linux.Errno) {
	s := t.slot(fd)
	if s == nil || s.f.Load() == nil {
		return false, linux.EBADF
	}
	return s.cloexec.Load(), 0
}

// SetCloseOnExec sets the flag of an open descriptor.
func (t *FDTable) SetCloseOnExec(fd int32, on bool) linux.Errno {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.slot(fd)
	if s == nil || s.f.Load() == nil {
		return linux.EBADF
	}
	s.cloexec.Store(on)
	return 0
}

// Fork returns a copy with a reference to every file.
func (t *FDTable) Fork() *FDTable {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := *t.chunks.Load()
	n := &FDTable{next: t.next, max: t.max}
	n.users.Store(1)
	c := make([]chunkRef, max(1, (t.max+chunkSlots-1)>>chunkShift))
	for k := range min(len(old), len(c)) {
		from := old[k].Load()
		if from == nil {
			continue
		}
		to := new(chunk)
		used := false
		for i := range from {
			f := from[i].f.Load()
			if f == nil {
				if from[i].taken { // only reserved: free in the copy
					n.next = min(n.next, k<<chunkShift+i)
				}
				continue
			}
			f.Get()
			to[i].f.Store(f)
			to[i].cloexec.Store(from[i].cloexec.Load())
			to[i].taken = true
			used = true
		}
		if used {
			c[k].Store(to)
		}
	}
	n.chunks.Store(&c)
	return n
}

// Share adds a user of the table (CLONE_FILES).
func (t *FDTable) Share() { t.users.Add(1) }

// Users returns how many share the table.
func (t *FDTable) Users() int { return int(t.users.Load()) }

// Release drops a user; the last one closes everything.
func (t *FDTable) Release(c *kern.Ctx) {
	if t.users.Add(-1) == 0 {
		t.CloseRange(c, 0, MaxFDs-1, nil)
	}
}

// CloseExec closes what is marked close-on-exec.
func (t *FDTable) CloseExec(c *kern.Ctx) {
	t.CloseRange(c, 0, MaxFDs-1, func(s *slot) bool { return s.cloexec.Load() })
}

// CloseRange closes the open descriptors first … last that which accepts; nil
// accepts all.
func (t *FDTable) CloseRange(c *kern.Ctx, first, last int, which func(*slot) bool) {
	for fd := t.nextOpen(first, last); fd >= 0; fd = t.nextOpen(fd+1, last) {
		s := t.slot(int32(fd))
		t.mu.Lock()
		f := s.f.Load()
		if f == nil || which != nil && !which(s) {
			t.mu.Unlock()
			continue
		}
		s.f.Store(nil)
		t.free(int32(fd))
		t.mu.Unlock()
		t.closeFile(c, f)
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
		if p[fd&(chunkSlots-1)].f.Load() != nil {
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
