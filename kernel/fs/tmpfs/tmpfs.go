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
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/fs/vfs"
)

// FS is one tmpfs.
type FS struct {
	*vfs.FileSystem
	pages     atomic.Int64 // frames in use
	inodes    atomic.Int64
	maxPages  atomic.Int64
	maxInodes atomic.Int64
	options   Options // immutable but for the limits

	// Limits that mount did not name are shared by users; immutable.
	sharePages, shareInodes bool

	mu       sync.Mutex          // a leaf
	accounts map[uint32]*account // guarded by mu: of the users who have had files
	recent   atomic.Pointer[account]
}

// Options are what mount says.
type Options struct {
	Type      string // shown in /proc/mounts: tmpfs, devtmpfs, devpts
	Magic     int64
	MaxPages  int64 // 0: half of memory
	MaxInodes int64 // 0: as many as half of memory has pages
	Shared    bool  // users share MaxPages as they do a limit that nobody named
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
	sharePages, shareInodes := o.Shared || o.MaxPages == 0, o.MaxInodes == 0
	half := int64(mem.Total() / 2)
	if o.MaxPages == 0 {
		o.MaxPages = half
	}
	if o.MaxInodes == 0 {
		o.MaxInodes = max(half, 1024)
	}
	fs := &FS{FileSystem: vfs.NewFileSystem(o.Type, o.Magic, vfs.FSInTree|vfs.FSXattr), options: o,
		sharePages: sharePages, shareInodes: shareInodes, accounts: map[uint32]*account{}}
	fs.maxPages.Store(o.MaxPages)
	fs.maxInodes.Store(o.MaxInodes)
	root := fs.newDir(fs.enter(o.UID), &vfs.NewNode{Mode: linux.S_IFDIR | o.Mode, UID: o.UID, GID: o.GID})
	fs.Root = vfs.NewRoot(&root.Inode)
	fs.FileSystem.Stat = fs.statfs
	fs.register()
	fs.FileSystem.Destroy = func() linux.Errno {
		fs.unregister()
		vfs.DropTree(fs.Root)
		return 0
	}
	fs.FileSystem.Options = fs.mountOptions
	fs.FileSystem.Handles = vfs.NewTreeHandles(uint32(fs.Dev)<<24 ^ uint32(clocks.Realtime()))
	return fs
}

func (fs *FS) statfs(st *linux.Statfs) {
	free := func(limit, used int64) uint64 { return uint64(max(limit-used, 0)) }
	st.Blocks = uint64(fs.maxPages.Load())
	st.Bfree = free(fs.maxPages.Load(), fs.pages.Load())
	st.Bavail = available(fs.maxPages.Load(), fs.pages.Load(), fs.sharePages)
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

// Used returns how many frames the files hold.
func (fs *FS) Used() int64 { return fs.pages.Load() }

// dir is a directory.
type dir struct {
	vfs.BaseNode
	vfs.Inode
	account *account // guarded by Inode.Mu
	fs      *FS      // immutable
}

func (fs *FS) newDir(a *account, n *vfs.NewNode) *dir {
	d := &dir{account: a, fs: fs}
	d.Init(fs.FileSystem, d, n)
	return d
}

// RootNode is what the file system does for its root.
func (fs *FS) RootNode() vfs.NodeOps {
	d, _ := fs.Root.Inode.Node.(*dir)
	return d
}

// Create makes an inode of any type.
func (d *dir) Create(_ *caller.Ctx, _ *vfs.Inode, _ string, n vfs.NewNode) (*vfs.Inode, linux.Errno) {
	return d.fs.Make(&n)
}

// Make makes an inode without a name.
func (fs *FS) Make(n *vfs.NewNode) (*vfs.Inode, linux.Errno) {
	a := fs.enter(n.UID)
	if a == nil {
		return nil, linux.ENOSPC
	}
	switch n.Mode & linux.S_IFMT {
	case linux.S_IFREG:
		f := &file{account: a, seals: linux.F_SEAL_SEAL} // only MemFD makes files that can be sealed
		f.Init(fs.FileSystem, f, n)
		return &f.Inode, 0
	case linux.S_IFDIR:
		return &fs.newDir(a, n).Inode, 0
	}
	s := &special{account: a, target: n.Target}
	if len(n.Target) > maxShortLink {
		if e := s.keep(n.Target); e != 0 {
			a.leave()
			return nil, e
		}
	}
	s.Init(fs.FileSystem, s, n)
	s.SetSize(int64(len(n.Target)))
	return &s.Inode, 0
}

// Link agrees.
func (d *dir) Link(*caller.Ctx, *vfs.Inode, string, *vfs.Inode) linux.Errno { return 0 }

// Unlink agrees.
func (d *dir) Unlink(*caller.Ctx, *vfs.Inode, string, *vfs.Inode) linux.Errno { return 0 }

// Rename agrees.
func (d *dir) Rename(*caller.Ctx, *vfs.Inode, string, *vfs.Inode, string, uint32) linux.Errno {
	return 0
}

// Open opens for listing.
func (d *dir) Open(*caller.Ctx, vfs.Path, uint32) (vfs.Ops, linux.Errno) { return vfs.DirOps{}, 0 }

// SetAttr sets what is asked for.
func (d *dir) SetAttr(_ *caller.Ctx, i *vfs.Inode, a *vfs.Attr) linux.Errno {
	if a.Mask&vfs.AttrUID != 0 {
		d.account = d.account.move(a.UID, 0)
	}
	i.Apply(a)
	return 0
}

// Evict gives the inode back.
func (d *dir) Evict(*vfs.Inode) { d.account.leave() }

// special is a symbolic link, device node, FIFO or socket.
type special struct {
	vfs.BaseNode
	vfs.Inode
	account *account  // guarded by Inode.Mu
	target  string    // immutable; of a symbolic link up to maxShortLink
	long    mem.Frame // immutable; holds the text of a longer one
}

// maxShortLink is the longest text of a symbolic link that is kept in the
// kernel's heap.
const maxShortLink = 128

// keep puts the text of a long symbolic link into a frame.
func (s *special) keep(target string) linux.Errno {
	if !s.account.charge() {
		return linux.ENOSPC
	}
	f, ok := mem.Alloc()
	if !ok {
		s.account.release(1)
		return linux.ENOMEM
	}
	copy(f.Bytes(), target)
	s.target, s.long = "", f
	return 0
}

// ReadLink returns the link's text.
func (s *special) ReadLink(*caller.Ctx, *vfs.Inode) (string, linux.Errno) {
	if s.Type() != linux.S_IFLNK {
		return "", linux.EINVAL
	}
	if s.long != 0 {
		if !s.TryGet() {
			return "", linux.ENOENT
		}
		defer s.Put()
		//maxlive:len 4096 because a link has at most PATH_MAX bytes
		return string(s.long.Bytes()[:s.Size()]), 0
	}
	return s.target, 0
}

// SetAttr sets what is asked for.
func (s *special) SetAttr(_ *caller.Ctx, i *vfs.Inode, a *vfs.Attr) linux.Errno {
	if a.Mask&vfs.AttrSize != 0 {
		return linux.EINVAL
	}
	if a.Mask&vfs.AttrUID != 0 {
		s.account = s.account.move(a.UID, s.Blocks(i)/(mem.PageSize/512))
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
		s.account.release(1)
	}
	s.account.leave()
}
