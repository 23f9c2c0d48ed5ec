package ext4fs

import (
	"runtime"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/ext4"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/fs/vfs"
)

// node is an inode in use: of a directory, a symbolic link, a special file, or part
// of a file.
type node struct {
	vfs.BaseNode
	vfs.Inode
	fs     *FS         // immutable
	in     *ext4.Inode // immutable; has a reference
	gone   runtime.Cleanup
	blocks atomic.Int64
}

// based is every kind of node.
type based interface{ base() *node }

func (n *node) base() *node { return n }

func nodeOf(i *vfs.Inode) *node { return i.Node.(based).base() }

// newNode makes a node of what the disk says.
func (fs *FS) newNode(in *ext4.Inode, st *linux.Stat) *vfs.Inode {
	if st.Mode&linux.S_IFMT == linux.S_IFREG {
		f := &file{}
		f.fs, f.in = fs, in
		f.InitDisk(fs.FileSystem, f, st, in.Btime())
		f.adoptRest()
		f.blocks.Store(st.Blocks)
		f.pages.Init(f, f.Length(), fs.ext.BlockSize(), fs)
		f.gone = runtime.AddCleanup(f, fs.collected, in)
		return &f.Inode
	}
	n := &node{fs: fs, in: in}
	n.InitDisk(fs.FileSystem, n, st, in.Btime())
	n.adoptRest()
	n.blocks.Store(st.Blocks)
	n.gone = runtime.AddCleanup(n, fs.collected, in)
	return &n.Inode
}

// adoptRest takes over the flags of a new node, and whether it may have attributes.
func (n *node) adoptRest() {
	n.AdoptAttrs(n.in.Flags())
	if n.in.HasXattrs() {
		n.MayHaveACL()
	}
}

// SetAttrs changes the flags that chattr(1) knows.
func (n *node) SetAttrs(_ *vfs.Inode, attrs uint32) linux.Errno {
	if err := n.fs.ext.SetFlags(n.in, attrs); err != nil {
		return n.fs.errno(err)
	}
	n.AdoptAttrs(n.in.Flags())
	n.adoptLinks()
	return 0
}

// adopt takes over what ext4 has changed of a directory, or of anything whose
// content is not newer in memory.
func (n *node) adopt() {
	var st linux.Stat
	n.in.Stat(&st)
	n.Adopt(&st)
	n.blocks.Store(st.Blocks)
	if n.IsDir() {
		n.SetSize(st.Size)
	}
}

// adoptLinks takes over link count and time of change.
func (n *node) adoptLinks() {
	var st linux.Stat
	n.in.Stat(&st)
	n.AdoptLinks(&st)
}

// Lookup finds a name on disk.
func (n *node) Lookup(_ *caller.Ctx, _ *vfs.Inode, name string) (*vfs.Inode, linux.Errno) {
	ino, err := n.fs.ext.Lookup(n.in, name)
	if err != nil {
		return nil, n.fs.errno(err)
	}
	if ino == 0 {
		return nil, linux.ENOENT
	}
	return n.fs.find(ino)
}

// Create makes an inode, under a name or without.
func (n *node) Create(_ *caller.Ctx, _ *vfs.Inode, name string, x vfs.NewNode) (*vfs.Inode, linux.Errno) {
	ext := n.fs.ext
	ni := ext4.NewInode{Mode: x.Mode, UID: x.UID, GID: x.GID, Rdev: x.Rdev, Target: x.Target}
	var in *ext4.Inode
	var err error
	if name == "" {
		in, err = ext.Tmpfile(n.in, ni)
	} else {
		in, err = ext.Create(n.in, name, ni)
	}
	if err != nil {
		return nil, n.fs.errno(err)
	}
	if name != "" {
		n.adopt()
	}
	return n.fs.enter(in), 0
}

// Link gives a file another name.
func (n *node) Link(_ *caller.Ctx, _ *vfs.Inode, name string, i *vfs.Inode) linux.Errno {
	to := nodeOf(i)
	if err := n.fs.ext.Link(n.in, name, to.in); err != nil {
		return n.fs.errno(err)
	}
	to.adoptLinks()
	n.adopt()
	return 0
}

// Unlink takes a name away.
func (n *node) Unlink(_ *caller.Ctx, _ *vfs.Inode, name string, i *vfs.Inode) linux.Errno {
	to := nodeOf(i)
	if err := n.fs.ext.Unlink(n.in, name, to.in); err != nil {
		return n.fs.errno(err)
	}
	to.adoptLinks()
	n.adopt()
	return 0
}

// RenameInodes moves a name. A file that replaces another is written first: so a
// crash finds the old content or the new one, and not an empty file.
func (n *node) RenameInodes(c *caller.Ctx, dir *vfs.Inode, old string, to *vfs.Inode, name string, flags uint32, source, target *vfs.Inode) linux.Errno {
	if f, ok := source.Node.(*file); ok && target != nil && flags&linux.RENAME_EXCHANGE == 0 {
		f.pages.WriteBack(0, ^uint64(0))
	}
	d := nodeOf(to)
	white := vfs.Whiteout(c, dir)
	if err := n.fs.ext.RenameAs(n.in, old, d.in, name, flags, white.UID, white.GID); err != nil {
		return n.fs.errno(err)
	}
	nodeOf(source).adoptLinks()
	if target != nil {
		nodeOf(target).adoptLinks()
	}
	n.adopt()
	if d != n {
		d.adopt()
	}
	return 0
}

// ReadLink returns a symbolic link's text.
func (n *node) ReadLink(*caller.Ctx, *vfs.Inode) (string, linux.Errno) {
	s, err := n.fs.ext.Readlink(n.in)
	return s, n.fs.errno(err)
}

// Open opens a directory.
func (n *node) Open(*caller.Ctx, vfs.Path, uint32) (vfs.Ops, linux.Errno) {
	if !n.IsDir() {
		return nil, linux.ELOOP
	}
	return (*dir)(n), 0
}

// SetAttr changes mode, owner and times.
func (n *node) SetAttr(_ *caller.Ctx, i *vfs.Inode, a *vfs.Attr) linux.Errno {
	if a.Mask&vfs.AttrSize != 0 {
		return linux.EINVAL
	}
	return n.setAttr(a)
}

// setAttr stores attributes, those that are newer in memory with them.
func (n *node) setAttr(a *vfs.Attr) linux.Errno {
	if n.Attrs()&vfs.Immutable != 0 {
		return linux.EPERM
	}
	a.Atime, a.Mtime = ext4.Clamp(a.Atime), ext4.Clamp(a.Mtime)
	at, mt, ct := n.Times()
	x := ext4.Attr{Atime: &at, Mtime: &mt, Ctime: &ct}
	if a.Mask&vfs.AttrAtime != 0 {
		at = a.Atime
	}
	if a.Mask&vfs.AttrMtime != 0 {
		mt = a.Mtime
	}
	if a.Mask&vfs.AttrCtime != 0 {
		ct = a.Ctime
	}
	if a.Mask&vfs.AttrMode != 0 {
		x.Mode = &a.Mode
	}
	if a.Mask&vfs.AttrUID != 0 {
		x.UID = &a.UID
	}
	if a.Mask&vfs.AttrGID != 0 {
		x.GID = &a.GID
	}
	if err := n.fs.ext.SetAttr(n.in, x); err != nil {
		return n.fs.errno(err)
	}
	n.Apply(a)
	return 0
}

// Blocks is the space on disk.
func (n *node) Blocks(*vfs.Inode) int64 { return n.blocks.Load() }

// Evict ends an inode without names and users: what it has on disk becomes free.
func (n *node) Evict(*vfs.Inode) {
	n.fs.forget(&n.Inode)
	n.release()
}

func (n *node) release() {
	n.gone.Stop()
	n.fs.nodes.Add(-1)
	n.fs.errno(n.fs.ext.Put(n.in))
}

// close ends a node when the file system is unmounted.
func (n *node) close() {
	if f, ok := n.Node.(*file); ok {
		f.pages.Drop()
	}
	n.release()
}

// Xattr returns an extended attribute.
func (n *node) Xattr(_ *vfs.Inode, name string) ([]byte, linux.Errno) {
	v, err := n.fs.ext.Getxattr(n.in, name)
	return v, n.fs.errno(err)
}

// Xattrs returns their names.
func (n *node) Xattrs(*vfs.Inode) ([]string, linux.Errno) {
	names, err := n.fs.ext.Listxattr(n.in)
	return names, n.fs.errno(err)
}

// SetXattr sets or, with nil, removes one.
func (n *node) SetXattr(_ *vfs.Inode, name string, value []byte, flags uint32) linux.Errno {
	if err := n.fs.ext.Setxattr(n.in, name, value, flags); err != nil {
		return n.fs.errno(err)
	}
	n.adoptLinks()
	return 0
}
