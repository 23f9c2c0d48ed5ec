package vfs

import (
	"sync"
	"weak"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
)

// Handles is how a file system names its files in file handles, which find them again
// without a path.
type Handles interface {
	// Handle returns type and words of a file's handle.
	Handle(d *Dentry) (kind int32, words []uint32)
	// Find returns a place of the file; ESTALE where the handle leads to none. Both
	// arguments may be anything.
	Find(c *caller.Ctx, kind int32, words []uint32) (*Dentry, linux.Errno)
}

// Types of handles (Linux's enum fid_type).
const (
	HandleInode       = 1
	HandleInodeParent = 2
	HandleInvalid     = 255
)

// OpenHandle opens the file that a handle names in the file system of the mount of at.
func OpenHandle(c *caller.Ctx, fs *FSContext, m *Mount, d *Dentry, flags uint32) (*File, linux.Errno) {
	i := d.Inode
	if flags&linux.O_PATH == 0 && flags&linux.O_TMPFILE == linux.O_TMPFILE {
		if !i.IsDir() {
			return nil, linux.ENOTDIR
		}
		at, e := openAt(c, Path{m, d}, &OpenHow{Flags: linux.O_PATH | linux.O_DIRECTORY}, false)
		if e != 0 {
			return nil, e
		}
		defer at.Put()
		return Open(c, fs, at, ".", flags, 0)
	}
	if flags&linux.O_PATH == 0 && i.Type() != linux.S_IFLNK && flags&(linux.O_CREAT|linux.O_EXCL) == linux.O_CREAT|linux.O_EXCL {
		return nil, linux.EEXIST
	}
	f, e := openAt(c, Path{m, d}, &OpenHow{Flags: flags}, false)
	if e == linux.ENOENT && i.nlink.Load() == 0 {
		e = linux.ESTALE // it went just now
	}
	return f, e
}

// Place returns where a directory is, if anybody holds that.
func (i *Inode) Place() *Dentry {
	i.privMu.Lock()
	defer i.privMu.Unlock()
	return i.place.Value()
}

// Find returns the place of a name in a directory.
func (d *Dentry) Find(c *caller.Ctx, name string) (*Dentry, linux.Errno) {
	if d.kids == nil {
		return nil, linux.ENOTDIR
	}
	h := nameHash(name)
	if n := d.lookup(h, name); n != nil {
		return n, 0
	}
	return d.lookupSlow(c, h, name)
}

// TreeHandles are the handles of a file system whose files are in memory only. It knows
// the files that were asked for.
type TreeHandles struct {
	generation uint32 // immutable: no handle of another one fits

	mu    sync.Mutex          // a leaf
	files map[uint64]exported // guarded by mu, by number
	sweep int                 // guarded by mu: how many there are when those that went are taken out
}

type exported struct {
	place weak.Pointer[Dentry]
	inode weak.Pointer[Inode]
}

// NewTreeHandles returns an empty table; generation is random.
func NewTreeHandles(generation uint32) *TreeHandles {
	return &TreeHandles{generation: generation, files: map[uint64]exported{}, sweep: 64}
}

// Handle is generation and number.
func (t *TreeHandles) Handle(d *Dentry) (int32, []uint32) {
	i := d.Inode
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, ok := t.files[i.Ino]; !ok || old.place.Value() == nil || old.place.Value().gone.Load() {
		t.files[i.Ino] = exported{weak.Make(d), weak.Make(i)}
	}
	if len(t.files) > t.sweep {
		for n, x := range t.files {
			if x.inode.Value() == nil {
				delete(t.files, n)
			}
		}
		t.sweep = max(64, 2*len(t.files))
	}
	return HandleInode, []uint32{t.generation, uint32(i.Ino), uint32(i.Ino >> 32)}
}

// Find honours the words only, as Linux does.
func (t *TreeHandles) Find(_ *caller.Ctx, _ int32, words []uint32) (*Dentry, linux.Errno) {
	if len(words) < 3 || words[0] != t.generation {
		return nil, linux.ESTALE
	}
	t.mu.Lock()
	x := t.files[uint64(words[1])|uint64(words[2])<<32]
	t.mu.Unlock()
	i := x.inode.Value()
	if i == nil || !i.TryGet() {
		return nil, linux.ESTALE
	}
	i.Put() // whoever opens it looks again
	if d := x.place.Value(); d != nil {
		return d, 0
	}
	if i.IsDir() { // its place went with its name
		return nil, linux.ESTALE
	}
	return NewRoot(i), 0
}
