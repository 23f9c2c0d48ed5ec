// Package pagecache caches the pages of files on disks; read, write, mmap and exec share
// them. A file system embeds a File in each of its regular files and gives it a Store.
//
// # Pages
//
// A page is a word (slot): frame number and state. Words are in leaves, leaves in a
// tree that grows and shrinks under File.mu and is read without a lock.
//
//	bits  0–31  frame; 0: the page is not in the cache
//	      32    busy: the frame is being filled and its content is nobody's yet
//	      33    dirty: newer than on disk
//	      34    writing: on its way to the disk
//	      35    used since the clock's hand passed
//	      36    backed: all its blocks are allocated on disk
//	      37    shared: some address space may store to it
//	      38    waited: somebody sleeps until busy ends
//	      40–43 blocks reserved for it, of the file system's size
//	      48–63 pins
//
// A pin keeps the word from being emptied. Look-ups pin for the few instructions
// that it takes to get a reference of the frame; only who writes to a file, and so
// keeps it from being cut (the file system's lock of the inode), holds a pin longer.
//
// Who changes what: 0 → busy under File.mu; busy → ready by whoever filled it; dirty is
// set by writers (after the size covers what they wrote) and by the fault that makes
// a mapping writable; dirty → writing by whoever writes back (File.writing held); a
// clean page without pins is emptied by anyone (eviction), any other page only with
// the gate held alone.
//
// # Locks
//
// The file system's lock of the inode; File.gate; File.writing; File.mu; cache.dirty.mu;
// clock.mu. Mappings are zapped or protected under the gate. No lock of this package
// is held while user memory is touched. The gate is held shared to fill and to write
// back, and alone to cut, to punch, and to go past the cache: so no page of what was
// cut can come back, and no write-back uses the size of before.
//
// # Writing back
//
// A leaf with dirty pages is in its file's list, a file with some in the cache's. The
// page at the end of a file is written from a copy whose rest is zeros. Limits, who is
// made to wait, and the goroutines that write are in dirty.go.
//
// Eviction takes clean pages only and none of the locks above clock.mu, so it may run
// wherever a frame is allocated. Pages that are mapped are unmapped first, by the
// goroutine that runs in the background alone.
package pagecache

import (
	"runtime"
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/errseq"
	"hardtack/kernel/base/mem"
)

const pageMask = mem.PageSize - 1

// State bits of a slot.
const (
	frameBits = 1<<32 - 1
	busy      = 1 << 32
	dirty     = 1 << 33
	writing   = 1 << 34
	used      = 1 << 35
	backed    = 1 << 36
	shared    = 1 << 37
	waited    = 1 << 38

	reservedShift = 40
	reservedMask  = 15 << reservedShift
	pinShift      = 48
	pin           = 1 << pinShift
	pinMask       = uint64(1<<16-1) << pinShift
)

// slot is one page.
type slot struct{ w atomic.Uint64 }

func frameOf(w uint64) mem.Frame { return mem.Frame(w & frameBits) }

// Store is the file system's side of a file. Errors are its errno.
type Store interface {
	// ReadPages fills pages with the file's bytes from off on, zeros in holes and
	// beyond the end.
	ReadPages(pages [][]byte, off int64) linux.Errno
	// WritePages writes whole blocks from off on, in a file of size bytes. It takes
	// over as many reserved blocks, and gives back those that it does not need.
	WritePages(pages [][]byte, off, size, reserved int64) linux.Errno
	// Reserve sets blocks aside for pages that get dirty; ENOSPC.
	Reserve(blocks int64) linux.Errno
	Unreserve(blocks int64)
	// MakeRoom is called without locks where a fault finds that Reserve fails; true: it
	// is worth another try.
	MakeRoom() bool
	// Missing is how many blocks of page n have no place on disk. It is asked where
	// Reserve fails: a page whose blocks are there can be written on a full disk.
	Missing(n uint64) (int64, linux.Errno)
	// Stored notes that a mapping of the file is about to be stored to, for its
	// times; EROFS if that may not be.
	Stored() linux.Errno
	// Punch makes pages first … first+n-1 a hole, with locks of its own (madvise).
	Punch(first, n uint64) linux.Errno
}

// File is the pages of one file.
type File struct {
	store     Store         // immutable
	size      *atomic.Int64 // immutable; the file's length, which the file system sets
	blockSize int64         // immutable
	owner     any           // immutable; the file system, for WriteAll

	gate    sync.RWMutex // see the package comment
	ended   bool         // by Drop; guarded by gate
	writing sync.Mutex   // one write-back at a time
	maps    mem.Mappings

	mu       sync.Mutex
	first    atomic.Pointer[leaf] // pages 0 … leafPages-1; changed under mu
	root     atomic.Pointer[node] // the others; changed under mu
	unclean  *leaf                // leaves with dirty pages; guarded by mu
	pages    atomic.Int64         // in the cache
	dirty    atomic.Int64
	reserved atomic.Int64 // blocks, of dirty pages
	since    atomic.Int64 // monotonic nanoseconds: how long the oldest is dirty, about

	errors errseq.Seq

	next, prev *File // in cache.dirty; these are guarded by its mu
	listed     bool
	claimed    bool // a background goroutine writes it
}

// Init prepares a File. size is the file's length; blockSize, at most a page, is the
// unit of Reserve; owner is whom WriteAll knows it by.
func (f *File) Init(s Store, size *atomic.Int64, blockSize int, owner any) {
	f.store, f.size, f.blockSize, f.owner = s, size, int64(blockSize), owner
}

// Pages returns how many pages are in memory.
func (f *File) Pages() int64 { return f.pages.Load() }

// Unwritten reports whether one of them is newer than on disk, or on its way there.
func (f *File) Unwritten() bool { return f.dirty.Load() != 0 || !cacheIdle(f) }

// Reserved is how many blocks dirty pages may still take, for st_blocks.
func (f *File) Reserved() int64 {
	if f.dirty.Load() == 0 {
		return 0
	}
	return f.reserved.Load()
}

// pin takes a pin of a page that is ready; false: it is absent or being filled (w says).
func (s *slot) pin() (w uint64, ok bool) {
	for {
		w = s.w.Load()
		if w&frameBits == 0 || w&busy != 0 {
			return w, false
		}
		if w&pinMask == pinMask {
			runtime.Gosched()
			continue
		}
		if s.w.CompareAndSwap(w, (w+pin)|used) {
			return w, true
		}
	}
}

// unpin gives the pin back.
func (s *slot) unpin() { s.w.Add(^uint64(pin - 1)) }

// get returns a page's frame with a reference, if it is ready.
func (s *slot) get() (mem.Frame, bool) {
	w, ok := s.pin()
	if !ok {
		return 0, false
	}
	f := frameOf(w)
	f.Get()
	s.unpin()
	return f, true
}

// change replaces state bits of a page that somebody else cannot empty.
func (s *slot) change(clear, set uint64) (was uint64) {
	for {
		w := s.w.Load()
		if s.w.CompareAndSwap(w, w&^clear|set) {
			return w
		}
	}
}

// lookup returns page n with a reference if it is in memory and ready.
func (f *File) lookup(n uint64) (mem.Frame, bool) {
	if s := f.slot(n); s != nil {
		return s.get()
	}
	return 0, false
}

// beds are where goroutines sleep that wait for a page: one of many by its slot's
// number, so that few meet.
var beds [64]struct {
	mu   sync.Mutex
	cond sync.Cond
	_    [40]byte
}

// await sleeps until page n is not busy any more.
func (s *slot) await(n uint64) {
	b := &beds[n%uint64(len(beds))]
	b.mu.Lock()
	b.cond.L = &b.mu
	for {
		w := s.w.Load()
		if w&busy == 0 {
			break
		}
		if w&waited != 0 || s.w.CompareAndSwap(w, w|waited) {
			b.cond.Wait()
		}
	}
	b.mu.Unlock()
}

// wake ends the sleep of those who wait for page n.
func wake(n uint64) {
	b := &beds[n%uint64(len(beds))]
	b.mu.Lock()
	b.cond.Broadcast()
	b.mu.Unlock()
}
