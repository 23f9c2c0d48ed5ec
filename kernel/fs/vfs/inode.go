package vfs

import (
	"sync"
	"sync/atomic"
	"weak"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/errseq"
)

// Inode is a file as such, whatever its names: identity, attributes, and the
// file system's operations. A file system embeds it in its own node.
//
// Attributes are atomics, so that stat, permission checks and path walks take
// no lock. Mu serialises changes: of a directory's names, of a file's content
// (one write at a time), of owner and mode.
type Inode struct {
	Node NodeOps     // immutable
	FS   *FileSystem // immutable
	Ino  uint64      // immutable
	Rdev uint64      // immutable; of device nodes
	Mu   sync.Mutex

	mode  atomic.Uint32 // type and permissions; the type never changes
	uid   atomic.Uint32
	gid   atomic.Uint32
	nlink atomic.Uint32
	size  atomic.Int64
	atime atomic.Int64 // nanoseconds since 1970, as the other times
	mtime atomic.Int64
	ctime atomic.Int64
	btime int64 // immutable

	// refs counts open files, and one for having names; at zero the content
	// goes (Node.Evict). The structure itself is the collector's.
	refs     atomic.Int64
	linkable atomic.Bool // an O_TMPFILE file that may get its first name
	nameless atomic.Bool // names' reference is dropped (FSAttrs)
	// writers counts who has the file open for writing; below zero it counts
	// the programs that run it, which keep writers away.
	writers atomic.Int32
	hint    atomic.Uint32 // RWH_…; a hint that nobody takes

	privMu sync.Mutex
	priv   any // what is bound here (a FIFO's pipe, a socket); guarded by privMu
	// place is where a directory is, as long as anybody holds that; kept for
	// file systems whose names may leave the tree. Guarded by privMu.
	place weak.Pointer[Dentry]

	locks   atomic.Pointer[lockTable]  // record locks and flock; made on first use
	watches atomic.Pointer[[]*watch]   // inotify; replaced as a whole
	xattrs  atomic.Pointer[xattrTable] // extended attributes; made on first use
	acl     atomic.Pointer[aclPair]    // access control lists; nil without, replaced under Mu
	attrs   atomic.Uint32              // FS_IMMUTABLE_FL …; changed under Mu
	caps    atomic.Uint32              // what is known of the attribute fileCaps: capsUnknown …
}

// NodeOps is what a file system does for one inode. Name operations are called
// on the directory with its Mu held, after permissions were checked and the
// name tree was consulted; the vfs updates tree, link counts and times when they succeed.
type NodeOps interface {
	// Lookup finds a name that the tree does not hold. It is not called for
	// file systems whose names are all in the tree (FSInTree).
	Lookup(c *caller.Ctx, dir *Inode, name string) (*Inode, linux.Errno)
	// Create makes an inode for a new name; n says what. An empty name is O_TMPFILE's.
	Create(c *caller.Ctx, dir *Inode, name string, n NewNode) (*Inode, linux.Errno)
	// Link, Unlink and Rename agree to a change of names.
	Link(c *caller.Ctx, dir *Inode, name string, i *Inode) linux.Errno
	Unlink(c *caller.Ctx, dir *Inode, name string, i *Inode) linux.Errno
	Rename(c *caller.Ctx, from *Inode, oldName string, to *Inode, newName string, flags uint32) linux.Errno
	// ReadLink returns a symbolic link's text.
	ReadLink(c *caller.Ctx, i *Inode) (string, linux.Errno)
	// Open returns the operations of a newly opened file; devices, FIFOs and
	// sockets are opened by the vfs itself.
	Open(c *caller.Ctx, p Path, flags uint32) (Ops, linux.Errno)
	// SetAttr changes attributes, most simply with i.Apply.
	SetAttr(c *caller.Ctx, i *Inode, a *Attr) linux.Errno
	// Blocks is how many units of 512 bytes the content takes.
	Blocks(i *Inode) int64
	// Evict frees the content: no name and no open file is left.
	Evict(i *Inode)
}

// Jumper is a symbolic link that leads to a file directly, not through a text
// (/proc/PID/exe, /proc/PID/fd/N).
type Jumper interface {
	Jump(c *caller.Ctx, i *Inode) (Path, linux.Errno)
}

// NewNode describes an inode to be made.
type NewNode struct {
	Mode     uint32 // type and permissions
	UID, GID uint32
	Rdev     uint64
	Links    uint32 // if it is not 1, or 2 for a directory
	Target   string // of a symbolic link
}

// Attr is a change of attributes; Mask says which fields count.
type Attr struct {
	Mask                AttrMask
	Mode                uint32 // permissions only
	UID, GID            uint32
	Size                int64
	Atime, Mtime, Ctime int64
}

// AttrMask tells the fields of an Attr that are to be set.
type AttrMask uint32

// Fields of Attr.
const (
	AttrMode AttrMask = 1 << iota
	AttrUID
	AttrGID
	AttrSize
	AttrAtime
	AttrMtime
	AttrCtime
)

// Init prepares an embedded inode: one reference for its name, one link (two
// for a directory), all times now.
func (i *Inode) Init(fs *FileSystem, node NodeOps, n *NewNode) {
	i.Node, i.FS, i.Rdev = node, fs, n.Rdev
	i.Ino = fs.nextIno.Add(1)
	i.mode.Store(n.Mode)
	i.uid.Store(n.UID)
	i.gid.Store(n.GID)
	links := uint32(1)
	if n.Mode&linux.S_IFMT == linux.S_IFDIR {
		links = 2
	}
	if n.Links != 0 {
		links = n.Links
	}
	i.nlink.Store(links)
	now := clocks.Realtime()
	i.atime.Store(now)
	i.mtime.Store(now)
	i.ctime.Store(now)
	i.btime = now
	i.refs.Store(1)
}

// InitDisk prepares an embedded inode of a file system on a disk from what the
// disk says (FSAttrs); st.Dev is not used. btime is the time of creation.
func (i *Inode) InitDisk(fs *FileSystem, node NodeOps, st *linux.Stat, btime int64) {
	i.Node, i.FS, i.Ino, i.Rdev, i.btime = node, fs, st.Ino, st.Rdev, btime
	i.refs.Store(1)
	i.Adopt(st)
	i.size.Store(st.Size)
	i.atime.Store(st.Atime.Nano())
}

// Adopt takes over what the disk says of an inode, but for size and access time,
// which may be newer here.
func (i *Inode) Adopt(st *linux.Stat) {
	i.mode.Store(st.Mode)
	i.uid.Store(st.UID)
	i.gid.Store(st.GID)
	i.nlink.Store(uint32(st.Nlink))
	i.mtime.Store(st.Mtime.Nano())
	i.ctime.Store(st.Ctime.Nano())
}

// AdoptLinks takes over the number of names and the time of their change only.
func (i *Inode) AdoptLinks(st *linux.Stat) {
	i.nlink.Store(uint32(st.Nlink))
	i.ctime.Store(st.Ctime.Nano())
}

// Length is the size as the page cache shares it.
func (i *Inode) Length() *atomic.Int64 { return &i.size }

// Btime returns the time of creation, nanoseconds since 1970.
func (i *Inode) Btime() int64 { return i.btime }

// countLink counts n more names (of a directory, for its children's "..").
func (i *Inode) countLink(n int32) {
	if i.FS.Flags&FSAttrs == 0 {
		i.nlink.Add(uint32(n))
	}
}

// Mode returns type and permissions.
func (i *Inode) Mode() uint32 { return i.mode.Load() }

// Type returns S_IFREG, S_IFDIR ….
func (i *Inode) Type() uint32 { return i.mode.Load() & linux.S_IFMT }

// IsDir reports whether the inode is a directory.
func (i *Inode) IsDir() bool { return i.Type() == linux.S_IFDIR }

// UID and GID return the owners.
func (i *Inode) UID() uint32 { return i.uid.Load() }

// GID returns the group.
func (i *Inode) GID() uint32 { return i.gid.Load() }

// SetIDs returns mode and owners as they were at one moment, for exec: a change
// of owner takes the set-id bits first.
func (i *Inode) SetIDs() (mode, uid, gid uint32) {
	if mode = i.Mode(); mode&(linux.S_ISUID|linux.S_ISGID) == 0 {
		return mode, i.UID(), i.GID()
	}
	i.Mu.Lock()
	defer i.Mu.Unlock()
	return i.Mode(), i.UID(), i.GID()
}

// Nlink returns the number of names.
func (i *Inode) Nlink() uint32 { return i.nlink.Load() }

// SetOwner is for nodes made by the kernel; it changes owner, group and mode.
func (i *Inode) SetOwner(uid, gid, mode uint32) {
	i.uid.Store(uid)
	i.gid.Store(gid)
	i.mode.Store(i.Type() | mode&^linux.S_IFMT)
}

// Size returns the length in bytes.
func (i *Inode) Size() int64 { return i.size.Load() }

// SetSize is the file system's.
func (i *Inode) SetSize(n int64) { i.size.Store(n) }

// WriteHint is F_GET_RW_HINT.
func (i *Inode) WriteHint() uint32 { return i.hint.Load() }

// SetWriteHint is F_SET_RW_HINT.
func (i *Inode) SetWriteHint(hint uint32) { i.hint.Store(hint) }

// Times returns access, modification and change time, nanoseconds since 1970.
func (i *Inode) Times() (atime, mtime, ctime int64) {
	return i.atime.Load(), i.mtime.Load(), i.ctime.Load()
}

// SetTimes sets all three times (archives, procfs).
func (i *Inode) SetTimes(ns int64) {
	i.atime.Store(ns)
	i.mtime.Store(ns)
	i.ctime.Store(ns)
}

// Written notes a change of content now, whoever keeps the attributes.
func (i *Inode) Written() {
	now := clocks.Realtime()
	i.mtime.Store(now)
	i.ctime.Store(now)
}

// Modified notes a change of content now. (With FSAttrs the file system has done so.)
func (i *Inode) Modified() {
	if i.FS.Flags&FSAttrs != 0 {
		return
	}
	now := clocks.Realtime()
	i.mtime.Store(now)
	i.ctime.Store(now)
}

// Changed notes a change of attributes now.
func (i *Inode) Changed() {
	if i.FS.Flags&FSAttrs == 0 {
		i.ctime.Store(clocks.Realtime())
	}
}

// Apply sets the attributes themselves; Size is only stored.
func (i *Inode) Apply(a *Attr) {
	if a.Mask&AttrMode != 0 {
		i.mode.Store(i.Type() | a.Mode&^linux.S_IFMT)
	}
	if a.Mask&AttrUID != 0 {
		i.uid.Store(a.UID)
	}
	if a.Mask&AttrGID != 0 {
		i.gid.Store(a.GID)
	}
	if a.Mask&AttrSize != 0 {
		i.size.Store(a.Size)
	}
	if a.Mask&AttrAtime != 0 {
		i.atime.Store(a.Atime)
	}
	if a.Mask&AttrMtime != 0 {
		i.mtime.Store(a.Mtime)
	}
	if a.Mask&AttrCtime != 0 {
		i.ctime.Store(a.Ctime)
	}
}

// TryGet takes a reference unless the content is gone already.
func (i *Inode) TryGet() bool {
	for {
		n := i.refs.Load()
		if n <= 0 {
			return false
		}
		if i.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Put drops a reference; the last one frees the content.
//
//maxlive:point because the last user of an inode gives up its blocks
func (i *Inode) Put() {
	if n := i.refs.Add(-1); n == 0 {
		notifyEnd(i, linux.IN_DELETE_SELF)
		i.dropXattrs()
		i.dropACL()
		i.Node.Evict(i)
	} else if n < 0 {
		panic("vfs: inode released twice")
	}
}

// getWriter counts one more writer: ETXTBSY while the file is run.
func (i *Inode) getWriter() linux.Errno { return i.countWriter(1) }

// countWriter counts a writer (1) or a program that runs the file (-1): ETXTBSY
// while there are some of the other kind.
func (i *Inode) countWriter(d int32) linux.Errno {
	for {
		n := i.writers.Load()
		if n*d < 0 {
			return linux.ETXTBSY
		}
		if i.writers.CompareAndSwap(n, n+d) {
			return 0
		}
	}
}

// Private returns what is bound to the inode: a FIFO's pipe, a listening
// socket; nil if nothing.
func (i *Inode) Private() any {
	i.privMu.Lock()
	defer i.privMu.Unlock()
	return i.priv
}

// SetPrivate binds something, or with nil nothing.
func (i *Inode) SetPrivate(v any) {
	i.privMu.Lock()
	i.priv = v
	i.privMu.Unlock()
}

// PrivateOr returns what is bound, or binds what make returns.
func (i *Inode) PrivateOr(make func() any) any {
	i.privMu.Lock()
	defer i.privMu.Unlock()
	if i.priv == nil {
		i.priv = make()
	}
	return i.priv
}

// settle makes d, which is new, the place of a directory, or returns the one that it
// has: under the same name, out of the tree just now, with a fresh entry. EUCLEAN if
// that is another name's: no directory has two but on a damaged disk. The parent's Mu
// is held.
func (i *Inode) settle(d *Dentry) (*Dentry, linux.Errno) {
	if i.FS.Flags&(FSInTree|FSNoCache) != 0 {
		return d, 0
	}
	i.privMu.Lock()
	defer i.privMu.Unlock()
	old := i.place.Value()
	if old == nil {
		i.place = weak.Make(d)
		return d, 0
	}
	is, at := old.at.Load(), d.at.Load()
	if old.gone.Load() || is.parent != at.parent || is.name != at.name {
		return nil, linux.EUCLEAN
	}
	at.d.Store(old)
	old.at.Store(at)
	return old, 0
}

// addLink counts one more name unless the last one is gone.
func (i *Inode) addLink() bool {
	for {
		n := i.nlink.Load()
		if n == 0 {
			return false
		}
		if i.nlink.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// dropLink counts one name less (n links: a directory loses two at once) and
// drops the names' reference with the last.
func (i *Inode) dropLink(n uint32) {
	if i.FS.Flags&FSAttrs != 0 {
		if i.nlink.Load() == 0 && i.nameless.CompareAndSwap(false, true) {
			i.Put()
		}
		return
	}
	if i.nlink.Add(^(n - 1)) == 0 {
		i.Put()
	}
}

// FillStat fills a struct stat from the attributes.
func (i *Inode) FillStat(st *linux.Stat) {
	st.Dev, st.Ino, st.Nlink = i.FS.Dev, i.Ino, uint64(i.nlink.Load())
	st.Mode, st.UID, st.GID = i.mode.Load(), i.uid.Load(), i.gid.Load()
	st.Rdev, st.Size, st.Blksize = i.Rdev, i.size.Load(), i.FS.BlockSize
	st.Blocks = i.Node.Blocks(i)
	st.Atime, st.Mtime, st.Ctime = timespec(i.atime.Load()), timespec(i.mtime.Load()), timespec(i.ctime.Load())
}

func timespec(ns int64) linux.Timespec {
	s := ns / 1e9
	n := ns % 1e9
	if n < 0 {
		s, n = s-1, n+1e9
	}
	return linux.Timespec{Sec: s, Nsec: n}
}

// BaseNode refuses everything; embed it.
type BaseNode struct{}

// Lookup finds nothing.
func (BaseNode) Lookup(*caller.Ctx, *Inode, string) (*Inode, linux.Errno) { return nil, linux.ENOENT }

// Create refuses as Linux's directories do that make nothing.
func (BaseNode) Create(_ *caller.Ctx, _ *Inode, name string, n NewNode) (*Inode, linux.Errno) {
	switch {
	case name == "":
		return nil, linux.EOPNOTSUPP
	case n.Mode&linux.S_IFMT == linux.S_IFREG:
		return nil, linux.EACCES
	}
	return nil, linux.EPERM
}

// Link refuses.
func (BaseNode) Link(*caller.Ctx, *Inode, string, *Inode) linux.Errno { return linux.EPERM }

// Unlink refuses.
func (BaseNode) Unlink(*caller.Ctx, *Inode, string, *Inode) linux.Errno { return linux.EPERM }

// Rename refuses.
func (BaseNode) Rename(*caller.Ctx, *Inode, string, *Inode, string, uint32) linux.Errno {
	return linux.EPERM
}

// ReadLink says that this is no link.
func (BaseNode) ReadLink(*caller.Ctx, *Inode) (string, linux.Errno) { return "", linux.EINVAL }

// Open refuses.
func (BaseNode) Open(*caller.Ctx, Path, uint32) (Ops, linux.Errno) { return nil, linux.ENXIO }

// SetAttr refuses.
func (BaseNode) SetAttr(*caller.Ctx, *Inode, *Attr) linux.Errno { return linux.EPERM }

// Blocks is what the size fills.
func (BaseNode) Blocks(i *Inode) int64 { return (i.size.Load() + 511) >> 9 }

// Evict has nothing to free.
func (BaseNode) Evict(*Inode) {}

// FileSystem is one mounted or mountable tree (Linux's super block).
type FileSystem struct {
	Type  string  // immutable: "tmpfs", "proc" …
	Magic int64   // immutable: f_type of statfs
	Dev   uint64  // immutable: st_dev
	Flags FSFlags // immutable
	// MaxBytes is the largest file; immutable once mounted.
	MaxBytes int64
	// BlockSize is st_blksize; immutable once mounted.
	BlockSize int64
	Root      *Dentry // immutable once mounted
	// Stat fills in what statfs shows; may be nil.
	Stat func(st *linux.Statfs)
	// Destroy frees everything when the last mount is gone, and tells what could not
	// be written; may be nil.
	Destroy func() linux.Errno
	// Options are the mount options to show in /proc/mounts; may be nil.
	Options func() string
	// Sync makes everything durable (syncfs) and tells of errors that WriteErrors does
	// not have; may be nil.
	Sync func() linux.Errno
	// WriteErrors are the errors of writing back any of its files, for syncfs.
	WriteErrors errseq.Seq
	// Accessed hears of a new access time; may be nil.
	Accessed func(i *Inode)
	// Handles are its file handles; nil where it has none. Immutable.
	Handles Handles

	nextIno atomic.Uint64
	mounts  atomic.Int32 // mounts and users of detached mounts
	writers atomic.Int64 // regular files open for writing

	readOnly atomic.Bool // all mounts refuse changes
}

// FSFlags tell how the tree deals with a file system's names.
type FSFlags uint32

// Kinds of file systems.
const (
	// FSInTree: the name tree holds all names; there is nothing to look up.
	FSInTree FSFlags = 1 << iota
	// FSNoCache: names come and go by themselves and are not kept.
	FSNoCache
	// FSXattr: inodes may have extended attributes, kept by the vfs unless their
	// nodes are XattrNodes.
	FSXattr
	// FSAttrs: the file system keeps link counts and times of change, and has
	// stored them in the inodes before a name operation returns.
	FSAttrs
	// FSDirect: regular files can be opened with O_DIRECT.
	FSDirect
	// FSAsk: others change the tree, too. What the tree has of it is used only after the
	// file system was asked (Asker), and what does not exist is not kept.
	FSAsk
)

var nextDev atomic.Uint32

// Writers returns how many regular files are open for writing.
func (fs *FileSystem) Writers() int64 { return fs.writers.Load() }

// TryHold keeps a mountable file system, that one more mount is made of, from being
// destroyed meanwhile; false: it has no mount any more.
func (fs *FileSystem) TryHold() bool {
	for {
		n := fs.mounts.Load()
		if n <= 0 {
			return false
		}
		if fs.mounts.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Hold keeps a new file system from being destroyed until Drop.
func (fs *FileSystem) Hold() { fs.mounts.Add(1) }

// Drop ends a hold.
func (fs *FileSystem) Drop() { fs.unmounted() }

// NewFileSystem returns a file system with a device number of its own.
func NewFileSystem(kind string, magic int64, flags FSFlags) *FileSystem {
	return &FileSystem{Type: kind, Magic: magic, Flags: flags, MaxBytes: maxOffset, BlockSize: 4096, Dev: linux.Makedev(0, nextDev.Add(1)+16)}
}
