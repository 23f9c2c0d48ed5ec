package ext4

import (
	"fmt"
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
)

// buffer is one block of metadata in memory. A block that can be changed has at most one
// buffer: a handle looks up the buffers that it changes (or compares cache.gen), and the
// cache evicts only buffers that no open handle can hold.
type buffer struct {
	blk    uint64                 // immutable
	pinned bool                   // never evicted; immutable
	next   atomic.Pointer[buffer] // in its chain of the cache; changed under cache.mu
	used   atomic.Bool            // since the cache's hand passed

	// mu guards the fields, and the bytes of blocks that several files share
	// (inode tables, bitmaps, descriptors). The bytes of a block that one file
	// owns (a directory's, a node of an extent tree) are guarded by the file's lock.
	mu   sync.Mutex
	data []byte // nil: not read yet, or reading failed
	// shared: a committed transaction still needs these bytes, so a change
	// is made in a copy that replaces them.
	shared bool
	gone   bool         // freed; the transaction forgets it
	kind   kind         // as what it has been found right, or was made
	of     uint64       // whose: see Inode.owner; of a bitmap or descriptors the group
	tx     *transaction // the running transaction that it is part of
	// stale has a bit for each record whose checksum must be stored before the
	// commit: an inode, a descriptor. Of other kinds bit 0 stands for the block.
	stale [2]uint64
	good  uint64 // of inodes: those whose checksum was found right
}

// kind is what a block was checked as.
type kind uint8

const (
	kindRaw kind = iota
	kindExtent
	kindDir
	kindRoot  // of a directory's index
	kindIndex // other nodes of it
	kindXattr
	kindBlockBitmap
	kindInodeBitmap
	kindTable // of inodes, each with a checksum
	kindDesc  // of group descriptors, the same
	kindSuper
	kindOrphans // of the file that lists orphans
)

// use is the kind without what tells a directory's blocks apart: all are its content.
func (k kind) use() kind {
	if k == kindRoot || k == kindIndex {
		return kindDir
	}
	return k
}

// bytes returns the present content. The caller holds the lock that guards it.
func (b *buffer) bytes() []byte {
	b.mu.Lock()
	d := b.data
	b.mu.Unlock()
	return d
}

// cache holds the buffers of a file system in a table of chains, which are read without a
// lock. A removed buffer keeps its next pointer, so that a concurrent reader finds the rest
// of the chain. cache.mu is taken before buffer.mu only for a new buffer, which nobody else
// can hold yet.
type cache struct {
	fs     *FS
	chains []atomic.Pointer[buffer] // a power of two of them
	max    int                      // buffers wanted at most; immutable
	// gen counts evictions. While it does not change, a buffer found earlier is still
	// the block's buffer. It does not change while a handle is open.
	gen atomic.Uint64

	mu   sync.Mutex // whoever changes a chain
	n    int        // buffers; guarded by mu
	hand int        // the chain where eviction goes on; guarded by mu
}

func (c *cache) init(fs *FS, most int) {
	size := 64
	for size < most {
		size *= 2
	}
	c.fs, c.max, c.n, c.chains = fs, most, 0, make([]atomic.Pointer[buffer], size)
}

// chain is the index of a block's chain. Neighbouring blocks have neighbouring chains. The
// multiplication separates the tables of different groups, which lie a power of two apart.
func (c *cache) chain(blk uint64) *atomic.Pointer[buffer] {
	return &c.chains[(blk+blk>>15*0x9e37)&uint64(len(c.chains)-1)]
}

// peek returns the buffer of a block, nil if there is none.
func (c *cache) peek(blk uint64) *buffer {
	for b := c.chain(blk).Load(); b != nil; b = b.next.Load() {
		if b.blk == blk {
			return b
		}
	}
	return nil
}

// enter puts a buffer into its chain; mu is held.
func (c *cache) enter(b *buffer) {
	at := c.chain(b.blk)
	b.next.Store(at.Load())
	at.Store(b)
	c.n++
}

// remove takes a buffer out of its chain; mu is held.
func (c *cache) remove(b *buffer) {
	for at := c.chain(b.blk); ; {
		x := at.Load()
		if x == nil {
			return
		}
		if x == b {
			at.Store(b.next.Load())
			c.n--
			return
		}
		at = &x.next
	}
}

// drop takes a block out of the cache: it was freed.
func (c *cache) drop(blk uint64) *buffer {
	c.mu.Lock()
	b := c.peek(blk)
	if b != nil {
		c.remove(b)
	}
	c.mu.Unlock()
	return b
}

// shrink evicts clean buffers until half of the cache is free, those used since the last
// call last. No handle may be open.
func (c *cache) shrink() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n <= c.max {
		return
	}
	c.gen.Add(1)
	for range 2 * len(c.chains) {
		if c.n <= c.max/2 {
			break
		}
		c.hand = (c.hand + 1) & (len(c.chains) - 1)
		for b := c.chains[c.hand].Load(); b != nil; b = b.next.Load() {
			if b.used.Swap(false) || b.pinned || !b.mu.TryLock() {
				continue
			}
			if b.data != nil && b.tx == nil && !b.shared {
				c.remove(b)
			}
			b.mu.Unlock()
		}
	}
}

// read returns the buffer of a block, read from the disk if need be.
func (fs *FS) read(blk uint64) (*buffer, error) {
	if blk >= fs.s.blocks {
		return nil, corrupt("block %d of %d", blk, fs.s.blocks)
	}
	b, full := fs.cache.peek(blk), false
	if b == nil {
		b, full = fs.enter(blk, false)
	}
	b.mu.Lock()
	var err error
	if b.data == nil { // new, or an earlier try failed
		err = fs.load(b)
	}
	b.mu.Unlock()
	if !b.used.Load() {
		b.used.Store(true)
	}
	if full {
		fs.j.evict()
	}
	return b, err
}

// enter makes a block's buffer, or finds the one that was just made concurrently; full
// reports that the cache has too many now.
func (fs *FS) enter(blk uint64, pinned bool) (b *buffer, full bool) {
	c := &fs.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if b = c.peek(blk); b == nil {
		b = &buffer{blk: blk, pinned: pinned}
		c.enter(b)
	}
	return b, c.n > c.max
}

// pin is read for a block that stays in memory.
func (fs *FS) pin(blk uint64, k kind, of uint64) (*buffer, error) {
	if blk >= fs.s.blocks {
		return nil, corrupt("block %d of %d", blk, fs.s.blocks)
	}
	fs.cache.drop(blk) // nobody can have changed it: this is mounting
	b, _ := fs.enter(blk, true)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kind, b.of = k, of
	return b, fs.load(b)
}

// load reads the content; b.mu is held.
func (fs *FS) load(b *buffer) error {
	d := make([]byte, fs.s.blockSize)
	if err := fs.dev.ReadAt([]Transfer{{fs.byteOf(b.blk), d}}); err != nil {
		return ioError(err)
	}
	b.data = d
	return nil
}

// fresh returns a buffer for a newly allocated block, zeroed, as part of h. A block
// that is in memory as somebody's metadata cannot be free, whatever its bitmap says.
func (fs *FS) fresh(h *handle, blk uint64, k kind, of uint64) (*buffer, error) {
	c := &fs.cache
	b := &buffer{blk: blk, kind: k, of: of, data: make([]byte, fs.s.blockSize)}
	b.used.Store(true)
	if old := c.peek(blk); old != nil && old.owned() {
		return nil, corrupt("block %d is marked free and used for metadata", blk)
	}
	c.mu.Lock()
	if old := c.peek(blk); old != nil {
		c.remove(old)
	}
	c.enter(b)
	c.mu.Unlock()
	h.write(b)
	return b, nil
}

// owned reports whether the block is metadata of something.
func (b *buffer) owned() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pinned || b.kind != kindRaw || b.tx != nil || b.shared
}

// checked returns a block's buffer and bytes. It verifies the checksum, and whatever else
// valid examines, once while the block is in memory. A block has one owner and one kind: on
// a damaged disk two files may refer to the same block, and one would change what the other
// has verified.
func (fs *FS) checked(blk uint64, k kind, of uint64, valid func(d []byte) error) (*buffer, []byte, error) {
	b := fs.cache.peek(blk)
	if b == nil {
		if !fs.s.valid(blk, 1) || k != kindTable && fs.zone.meets(blk, 1) {
			return nil, nil, corrupt("block %d of %d used for metadata", blk, fs.s.blocks)
		}
		var err error
		if b, err = fs.read(blk); err != nil {
			return nil, nil, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.used.Load() {
		b.used.Store(true)
	}
	if b.data == nil {
		if err := fs.load(b); err != nil {
			return nil, nil, err
		}
	}
	if b.kind != k || b.of != of {
		if b.kind != kindRaw || b.pinned {
			return nil, nil, corrupt("block %d is used for two things", blk)
		}
		if err := valid(b.data); err != nil {
			return nil, nil, fmt.Errorf("block %d: %w", blk, err)
		}
		b.kind, b.of, b.good = k, of, 0
	}
	return b, b.data, nil
}

// ioError makes an error of the device one with an error number.
func ioError(err error) error {
	if err == nil || Errno(err) != linux.EIO {
		return err
	}
	return fmt.Errorf("%v: %w", err, linux.EIO)
}
