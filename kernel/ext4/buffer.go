package ext4

import (
	"fmt"
	"sync"

	"hardtack/abi/linux"
)

// buffer is one block of metadata in memory. There is at most one for a block
// that anybody may change: buffers to be changed are looked up inside the
// handle that changes them, and only what no open handle can hold is evicted.
type buffer struct {
	blk uint64 // immutable

	// mu guards the fields, and the bytes of blocks that several files share
	// (inode tables, bitmaps, descriptors). The bytes of a block that one file
	// owns (a directory's, a node of an extent tree) are guarded by the file's lock.
	mu   sync.Mutex
	data []byte // nil: not read yet, or reading failed
	// shared: a committed transaction still needs these bytes, so a change
	// goes to a copy that takes their place.
	shared bool
	tx     *transaction // the running transaction that it is part of
	gone   bool         // freed; the transaction forgets it
	kind   kind         // whose checksum has been found right
}

// kind is what a block was checked as.
type kind uint8

const (
	kindRaw kind = iota
	kindExtent
	kindDir
	kindIndex
	kindXattr
	kindBitmap
	kindTable // inode tables and descriptors, whose records have checksums each
)

// bytes returns the present content, to be read by who holds the lock that guards it.
func (b *buffer) bytes() []byte {
	b.mu.Lock()
	d := b.data
	b.mu.Unlock()
	return d
}

// cache holds the buffers of a file system. cache.mu comes before buffer.mu
// only where a new buffer is made (nobody else can hold that one yet).
type cache struct {
	fs  *FS
	mu  sync.Mutex
	m   map[uint64]*buffer // guarded by mu
	max int                // buffers wanted at most; immutable
}

// read returns the buffer of a block, read from the disk if need be.
func (fs *FS) read(blk uint64) (*buffer, error) {
	if blk >= fs.s.blocks {
		return nil, corrupt("block %d of %d", blk, fs.s.blocks)
	}
	c := &fs.cache
	c.mu.Lock()
	b := c.m[blk]
	if b == nil {
		b = &buffer{blk: blk}
		b.mu.Lock()
		c.m[blk] = b
		full := len(c.m) > c.max
		c.mu.Unlock()
		err := fs.load(b)
		b.mu.Unlock()
		if full {
			fs.j.evict()
		}
		return b, err
	}
	c.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.data == nil {
		return b, fs.load(b) // an earlier try failed
	}
	return b, nil
}

// load reads the content; b.mu is held.
func (fs *FS) load(b *buffer) error {
	d := make([]byte, fs.s.blockSize)
	if err := fs.dev.ReadAt([]Transfer{{int64(b.blk) << (10 + fs.s.logBlock), d}}); err != nil {
		return ioError(err)
	}
	b.data = d
	return nil
}

// fresh returns a buffer for a newly allocated block, zeroed, as part of h.
func (fs *FS) fresh(h *handle, blk uint64, k kind) *buffer {
	c := &fs.cache
	c.mu.Lock()
	b := &buffer{blk: blk, kind: k, data: make([]byte, fs.s.blockSize)}
	c.m[blk] = b
	c.mu.Unlock()
	h.write(b)
	return b
}

// drop takes a block out of the cache: it was freed.
func (c *cache) drop(blk uint64) *buffer {
	c.mu.Lock()
	b := c.m[blk]
	delete(c.m, blk)
	c.mu.Unlock()
	return b
}

func (c *cache) peek(blk uint64) *buffer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.m[blk]
}

// shrink evicts half of the buffers that are the same on disk. No handle may be open.
func (c *cache) shrink() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.m) <= c.max {
		return
	}
	for blk, b := range c.m { // the order is random
		if len(c.m) <= c.max/2 {
			break
		}
		if !b.mu.TryLock() {
			continue
		}
		if b.data != nil && b.tx == nil && !b.shared {
			delete(c.m, blk)
		}
		b.mu.Unlock()
	}
}

// checked returns a block's buffer after its checksum (and whatever else valid
// looks at) has been found right once.
func (fs *FS) checked(blk uint64, k kind, valid func(d []byte) error) (*buffer, error) {
	if !fs.s.valid(blk, 1) {
		return nil, corrupt("block %d of %d used for metadata", blk, fs.s.blocks)
	}
	b, err := fs.read(blk)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kind != k {
		if err := valid(b.data); err != nil {
			return nil, fmt.Errorf("block %d: %w", blk, err)
		}
		b.kind = k
	}
	return b, nil
}

// ioError makes an error of the device one with an error number.
func ioError(err error) error {
	if err == nil || Errno(err) != linux.EIO {
		return err
	}
	return fmt.Errorf("%v: %w", err, linux.EIO)
}
