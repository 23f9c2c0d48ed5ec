// Package tmpfs is the file system in memory: names live in the vfs tree,
// contents in physical frames, which are also what mmap maps.
//
// Lock order: a file's Inode.Mu (one write or change of length at a time), then
// file.mu (the page table, held for moments and never while user memory is
// touched, since a fault in a mapping of the same file takes it). Truncation
// first lowers the size under mu, so that no page beyond it is given out any
// more, then unmaps, then frees.
package tmpfs

import (
	"fmt"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/kern"
	"hardtack/kernel/mem"
	"hardtack/kernel/vfs"
)

// FS is one tmpfs.
type FS struct {
	*vfs.FileSystem
	pages     atomic.Int64 // frames in use
	inodes    atomic.Int64
	maxPages  atomic.Int64
	maxInodes atomic.Int64
	options   Options // immutable but for the limits
}

// Options are what mount says.
type Options struct {
	Type      string // shown in /proc/mounts: tmpfs, devtmpfs, devpts
	Magic     int64
	MaxPages  int64 // 0: half of memory
	MaxInodes int64 // 0: as many as half of memory has pages
	Mode      uint32
	UID, GID  uint32
}

// New makes an empty file system.
func New(o Options) *FS {
	if o.Type == "" {
		o.Type = "tmpfs"
	}
	if o.Magic == 0 {
		o.Magic = linux.TMPFS_MAGIC
	}
	if o.Mode == 0 {
		o.Mode = 0o1777
	}
	half := int64(mem.Total() / 2)
	if o.MaxPages == 0 {
		o.MaxPages = half
	}
	if o.MaxInodes == 0 {
		o.MaxInodes = max(half, 1024)
	}
	fs := &FS{FileSystem: vfs.NewFileSystem(o.Type, o.Magic, vfs.FSInTree|vfs.FSXattr), options: o}
	fs.maxPages.Store(o.MaxPages)
	fs.maxInodes.Store(o.MaxInodes)
	root := fs.newDir(&vfs.NewNode{Mode: linux.S_IFDIR | o.Mode, UID: o.UID, GID: o.GID})
	fs.inodes.Store(1)
	fs.Root = vfs.NewRoot(&root.Inode)
	fs.FileSystem.Stat = fs.statfs
	fs.FileSystem.Destroy = func() linux.Errno {
		vfs.DropTree(fs.Root)
		return 0
	}
	fs.FileSystem.Options = fs.mountOptions
	return fs
}

func (fs *FS) statfs(st *linux.Statfs) {
	free := func(limit, used int64) uint64 { return uint64(max(limit-used, 0)) }
	st.Blocks = uint64(fs.maxPages.Load())
	st.Bfree = free(fs.maxPages.Load(), fs.pages.Load())
	st.Bavail = st.Bfree
	st.Files = uint64(fs.maxInodes.Load())
	st.Ffree = free(fs.maxInodes.Load(), fs.inodes.Load())
}

func (fs *FS) mountOptions() string {
	s := fmt.Sprintf(",size=%dk", fs.maxPages.Load()*mem.PageSize/1024)
	if fs.options.Mode != 0o1777 {
		s += fmt.Sprintf(",mode=%o", fs.options.Mode)
	}
	return s
}

// SetMaxPages changes the size limit (mount -o remount,size=).
func (fs *FS) SetMaxPages(n int64) { fs.maxPages.Store(n) }

// Used returns how many frames the files hold.
func (fs *FS) Used() int64 { return fs.pages.Load() }

// allPages counts the frames of all file systems.
var allPages atomic.Int64

// Pages returns how many frames the files of all file systems hold.
func Pages() int64 { return allPages.Load() }

// charge counts one more frame, if the limit allows.
func (fs *FS) charge() bool {
	if fs.pages.Add(1) > fs.maxPages.Load() {
		fs.pages.Add(-1)
		return false
	}
	allPages.Add(1)
	return true
}

// release counts n frames less.
func (fs *FS) release(n int) {
	fs.pages.Add(-int64(n))
	allPages.Add(-int64(n))
}

// dir is a directory.
type dir struct {
	vfs.BaseNode
	vfs.Inode
	fs *FS // immutable
}

func (fs *FS) newDir(n *vfs.NewNode) *dir {
	d := &dir{fs: fs}
	d.Init(fs.FileSystem, d, n)
	return d
}

// Create makes an inode of any type.
func (d *dir) Create(_ *kern.Ctx, _ *vfs.Inode, _ string, n vfs.NewNode) (*vfs.Inode, linux.Errno) {
	return d.fs.Make(&n)
}

// Make makes an inode without a name.
func (fs *FS) Make(n *vfs.NewNode) (*vfs.Inode, linux.Errno) {
	if fs.inodes.Add(1) > fs.maxInodes.Load() {
		fs.inodes.Add(-1)
		return nil, linux.ENOSPC
	}
	switch n.Mode & linux.S_IFMT {
	case linux.S_IFREG:
		f := &file{fs: fs}
		f.Init(fs.FileSystem, f, n)
		return &f.Inode, 0
	case linux.S_IFDIR:
		return &fs.newDir(n).Inode, 0
	default:
		s := &special{fs: fs, target: n.Target}
		if len(n.Target) > maxShortLink {
			if !fs.charge() {
				fs.inodes.Add(-1)
				return nil, linux.ENOSPC
			}
			f, ok := mem.Alloc()
			if !ok {
				fs.release(1)
				fs.inodes.Add(-1)
				return nil, linux.ENOMEM
			}
			copy(f.Bytes(), n.Target)
			s.target, s.long = "", f
		}
		s.Init(fs.FileSystem, s, n)
		s.SetSize(int64(len(n.Target)))
		return &s.Inode, 0
	}
}

// Link agrees.
func (d *dir) Link(*kern.Ctx, *vfs.Inode, string, *vfs.Inode) linux.Errno { return 0 }

// Unlink agrees.
func (d *dir) Unlink(*kern.Ctx, *vfs.Inode, string, *vfs.Inode) linux.Errno { return 0 }

// Rename agrees.
func (d *dir) Rename(*kern.Ctx, *vfs.Inode, string, *vfs.Inode, string, uint32) linux.Errno { return 0 }

// Open opens for listing.
func (d *dir) Open(*kern.Ctx, vfs.Path, uint32) (vfs.Ops, linux.Errno) { return vfs.DirOps{}, 0 }

// SetAttr sets what is asked for.
func (d *dir) SetAttr(_ *kern.Ctx, i *vfs.Inode, a *vfs.Attr) linux.Errno {
	i.Apply(a)
	return 0
}

// Evict gives the inode back.
func (d *dir) Evict(*vfs.Inode) { d.fs.inodes.Add(-1) }

// special is a symbolic link, device node, FIFO or socket.
type special struct {
	vfs.BaseNode
	vfs.Inode
	fs     *FS       // immutable
	target string    // immutable; of a symbolic link up to maxShortLink
	long   mem.Frame // immutable; holds the text of a longer one
}

// maxShortLink is the longest text of a symbolic link that is kept in the
// kernel's heap.
const maxShortLink = 128

// ReadLink returns the link's text.
func (s *special) ReadLink(*kern.Ctx, *vfs.Inode) (string, linux.Errno) {
	if s.Type() != linux.S_IFLNK {
		return "", linux.EINVAL
	}
	if s.long != 0 {
		if !s.TryGet() {
			return "", linux.ENOENT
		}
		defer s.Put()
		return string(s.long.Bytes()[:s.Size()]), 0
	}
	return s.target, 0
}

// SetAttr sets what is asked for.
func (s *special) SetAttr(_ *kern.Ctx, i *vfs.Inode, a *vfs.Attr) linux.Errno {
	if a.Mask&vfs.AttrSize != 0 {
		return linux.EINVAL
	}
	i.Apply(a)
	return 0
}

// Blocks counts the page of a long link.
func (s *special) Blocks(*vfs.Inode) int64 {
	if s.long != 0 {
		return mem.PageSize / 512
	}
	return 0
}

// Evict gives the inode back.
func (s *special) Evict(*vfs.Inode) {
	if s.long != 0 {
		s.long.Put()
		s.fs.release(1)
	}
	s.fs.inodes.Add(-1)
}
