package mem

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
)

// Object is what a mapping maps: the pages of a file, a device's memory, or
// anonymous memory that several processes share.
type Object interface {
	// Page returns page number i (of the object, not the mapping) with a
	// reference for the caller. With write it is a page that may be stored
	// to; holes are then filled. EFAULT means beyond the end (the thread gets
	// SIGBUS), ENOMEM that memory is exhausted.
	Page(i uint64, write bool) (Frame, linux.Errno)
	// Mappings is the register of address spaces that map the object.
	Mappings() *Mappings
}

// What an object may do beyond that; address spaces ask with a type assertion.
type (
	// Cacher says which pages are in memory already, without blocking: for
	// mapping around a fault, and mincore. Cached has a reference for the
	// caller. An object without it is asked for single pages only.
	Cacher interface {
		Cached(i uint64) (Frame, bool)
	}
	// Puncher frees pages in the middle (madvise MADV_REMOVE); it calls
	// Mappings().Zap itself.
	Puncher interface {
		Punch(first, n uint64) linux.Errno
	}
	// Counted hears of each mapping that comes and goes, for objects that
	// are mapped without an open file (shared memory segments).
	Counted interface {
		Attach()
		Detach()
	}
	// Sealed decides about shared mappings by a file's seals, and counts those
	// that may be stored to, now or after mprotect: while there are some, it
	// cannot be sealed against writing. MapShared is asked for a new mapping
	// that wants to be written to at once (write) or perhaps later (later); it
	// returns whether later holds, and has counted the mapping if so.
	Sealed interface {
		MapShared(write, later bool) (writable bool, e linux.Errno)
		// AddWriters counts n more mappings like one that was counted; or fewer.
		AddWriters(n int)
	}
	// ReadOnly is an object whose mappings, private ones too, can neither be stored to nor
	// run: EPERM, and EACCES from mprotect.
	ReadOnly interface {
		ReadOnly()
	}
)

// Anonymous is returned by a file whose mappings are anonymous memory (/dev/zero).
var Anonymous Object = anonymous{}

type anonymous struct{}

func (anonymous) Page(uint64, bool) (Frame, linux.Errno) { return 0, linux.EFAULT }
func (anonymous) Mappings() *Mappings                    { return nil }

// Mapper is an address space, as an object sees it.
type Mapper interface {
	// Protect takes the right to store to the object's pages first … first+n-1
	// away: the next store is a fault, of which the object hears. Called with
	// Mappings.mu held.
	Protect(o Object, first, n uint64)
	// Zap unmaps the object's pages first … first+n-1 wherever they are
	// mapped; with copies, private copies of them too. Called with Mappings.mu
	// held.
	Zap(o Object, first, n uint64, copies bool)
}

// Mappings registers who maps an object, so that truncation can unmap.
// Lock order: an object's own lock, Mappings.mu, then the address space's page
// table lock. An address space must hold no lock that Zap takes while calling
// Add or Remove.
type Mappings struct {
	mu   sync.Mutex
	few  []mapped       // guarded by mu; the spaces, while they are few
	many map[Mapper]int // guarded by mu; used instead once there were more
	id   atomic.Uint64  // 0 until somebody asks
}

// mapped is a space and the number of its mappings of the object.
type mapped struct {
	s Mapper
	n int
}

// maxFew spaces are searched one by one.
const maxFew = 16

var lastID atomic.Uint64

// NewID returns a number that was never returned before.
func NewID() uint64 { return lastID.Add(1) }

// ID returns a number that identifies the object for ever (NewID's: it is no
// address space's either).
func (m *Mappings) ID() uint64 {
	if id := m.id.Load(); id != 0 {
		return id
	}
	m.id.CompareAndSwap(0, NewID())
	return m.id.Load()
}

// Mapped reports whether any address space maps the object.
func (m *Mappings) Mapped() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.few)+len(m.many) > 0
}

// Add registers n more mappings of the object in s.
func (m *Mappings) Add(s Mapper, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.many != nil {
		m.many[s] += n
		return
	}
	for i := range m.few {
		if m.few[i].s == s {
			m.few[i].n += n
			return
		}
	}
	m.few = append(m.few, mapped{s, n})
	if len(m.few) > maxFew {
		m.many = make(map[Mapper]int)
		for _, x := range m.few {
			m.many[x.s] = x.n
		}
		m.few = nil
	}
}

// Remove undoes an Add.
func (m *Mappings) Remove(s Mapper, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.many != nil {
		if m.many[s] -= n; m.many[s] <= 0 {
			delete(m.many, s)
		}
		if len(m.many) == 0 {
			m.many = nil
		}
		return
	}
	for i := range m.few {
		if m.few[i].s != s {
			continue
		}
		if m.few[i].n -= n; m.few[i].n <= 0 {
			last := len(m.few) - 1
			m.few[i] = m.few[last]
			m.few[last] = mapped{}
			m.few = m.few[:last]
		}
		return
	}
}

// Zap unmaps pages everywhere; private copies stay (hole punching, eviction).
func (m *Mappings) Zap(o Object, first, n uint64) { m.zap(o, first, n, false) }

// Truncate unmaps the pages from first on everywhere, private copies too: beyond
// a file's end there is nothing, and nothing comes back if the file grows.
func (m *Mappings) Truncate(o Object, first uint64) { m.zap(o, first, ^uint64(0)-first, true) }

func (m *Mappings) zap(o Object, first, n uint64, copies bool) {
	m.mu.Lock()
	for i := range m.few {
		m.few[i].s.Zap(o, first, n, copies)
	}
	for s := range m.many {
		s.Zap(o, first, n, copies)
	}
	m.mu.Unlock()
}

// Protect has the next store to each of some pages be a fault (write-back).
func (m *Mappings) Protect(o Object, first, n uint64) {
	m.mu.Lock()
	for i := range m.few {
		m.few[i].s.Protect(o, first, n)
	}
	for s := range m.many {
		s.Protect(o, first, n)
	}
	m.mu.Unlock()
}
