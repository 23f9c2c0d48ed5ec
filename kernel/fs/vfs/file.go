// Package vfs is the file layer: open files and descriptor tables, the tree of
// names, mounts, permission checks, locks and watches. File systems plug in
// below (NodeOps for an inode, Ops for an open file), system calls above.
//
// Path walks take no lock and hold no reference (dentry.go says why that is safe). An
// open file holds its inode (Inode.TryGet) and mount; an inode's content is freed when it
// has neither a name nor an open file.
//
// Lock order: renameMu; Inode.Mu of directories, an ancestor before what is
// below it, unrelated ones by number; Inode.Mu of a file; a file system's own
// locks. Leaves, taken under any of them: Namespace.mu, lockTable.mu before Async.mu
// before dirGroups.mu before watchMu before Inotify.mu, ioSignals.mu, xattrTable.mu,
// negatives.mu, FSContext.mu. File.PosMu comes before all;
// FDTable.mu is never held while a file is closed. User memory may be touched
// under PosMu and a file's Inode.Mu, since page faults take neither.
package vfs

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
)

// File is an open file description (what dup shares and fork inherits). It is
// counted: descriptors, mappings and messages in flight hold references, and
// the last one to go calls Ops.Release.
//
// Its fields are ordered so that it takes 112 bytes, a size class of Go's allocator.
type File struct {
	Ops Ops // immutable

	refs  atomic.Int64
	flags atomic.Uint32 // O_APPEND, O_NONBLOCK, O_DIRECT … and the access mode

	// PosMu serialises calls that use and move Pos (as Linux's f_pos_lock).
	PosMu  sync.Mutex
	locked atomic.Bool // flock was used
	Pos    int64       // guarded by PosMu

	// Path is where the file was found; zero for pipes, sockets and the like.
	Path Path // immutable

	synced atomic.Uint32 // what syncfs has told of the file system's WriteErrors

	writer     int8 // immutable: what release takes from the inode's writers
	holds      bool // immutable: the file has a reference of Path's inode and mount
	seekable   bool // immutable: Ops is a Seeker
	remembered bool // immutable once it has a descriptor: the nucleus knows descriptors of it

	async     atomic.Pointer[Async] // F_SETOWN, F_SETSIG; made on first use
	lockInode atomic.Pointer[Inode] // where locks are, of a file without a path; made on first use

	owner *accounts.User // who is charged; set before anybody else has the file, by its first descriptor

	watches watches // who wants to hear of the end (epoll); guarded by its own lock
}

// Ops is what an open file does. A stream ignores offsets. All sizes and
// offsets are checked for sign by the caller; the Vec's length is the count
// asked for. A transfer that moved something returns the count and no error.
type Ops interface {
	// Read moves bytes at off from the file into v.
	Read(c *caller.Ctx, f *File, v *uio.Vec, off int64) (int, linux.Errno)
	// Write moves bytes from v into the file at off. With O_APPEND the file
	// chooses the offset itself and sets f.Pos to the end of what it wrote.
	Write(c *caller.Ctx, f *File, v *uio.Vec, off int64) (int, linux.Errno)
	// Ready returns which of the readiness events hold now.
	Ready(f *File) wait.Events
	// Queue announces changes of readiness; nil if the file is always ready.
	Queue(f *File) *wait.Queue
	// Ioctl is ioctl(2); ENOTTY for unknown requests.
	Ioctl(c *caller.Ctx, f *File, cmd uint32, arg uint64) (uint64, linux.Errno)
	// Release ends the open file after its last reference.
	Release(f *File)
}

// Optional interfaces of a file beyond Ops, which system calls find by type assertion.
type (
	// Seeker has a position: lseek, pread, pwrite work. Files without are
	// streams (ESPIPE).
	Seeker interface {
		Seek(c *caller.Ctx, f *File, off int64, whence int) (int64, linux.Errno)
	}
	// DirReader lists names. It calls emit from f.Pos on until emit says
	// false, and leaves f.Pos behind the last name that was taken.
	DirReader interface {
		ReadDir(c *caller.Ctx, f *File, emit func(d *Dirent) bool) linux.Errno
	}
	// Mapper can be mapped: Object gives the pages.
	Mapper interface {
		Map(c *caller.Ctx, f *File) (mem.Object, linux.Errno)
	}
	// WholeMapper can be mapped only as a whole: EINVAL if off and length are not that.
	WholeMapper interface {
		MapWhole(off, length uint64) (mem.Object, linux.Errno)
	}
	// Stater answers fstat itself (sockets, pipes, anonymous files); other
	// files answer with Path's inode.
	Stater interface {
		Stat(c *caller.Ctx, f *File, st *linux.Stat) linux.Errno
	}
	// Syncer has something to write back.
	Syncer interface {
		Sync(c *caller.Ctx, f *File, dataOnly bool) linux.Errno
	}
	// FlagSetter is notified of F_SETFL and FIONBIO changes.
	FlagSetter interface {
		SetFlags(f *File, old, flags uint32) linux.Errno
	}
	// Unpositioned is a file of which lseek succeeds and does nothing (an eventfd).
	Unpositioned interface{ NoPosition() }
	// Namer gives the text of /proc/self/fd/N for a file without a path:
	// "pipe:[123]", "socket:[7]", "anon_inode:[eventpoll]".
	Namer interface {
		Name(f *File) string
	}
)

// Dirent is one name of a directory.
type Dirent struct {
	Ino  uint64
	Off  int64 // f.Pos after this entry
	Type uint8 // DT_*
	Name string
}

// minFiles is granted on the smallest machine.
const minFiles = 32768

// files counts the system's open files, which users share; tables counts the memory of
// descriptor tables, in chunks.
var (
	files  = accounts.NewPool(minFiles)
	tables = accounts.NewPool(minFiles)
)

// SetMemory limits open files by the machine's memory in pages, before there are
// programs: one file per page, because each takes a few hundred bytes of kernel heap, and
// a 16th of memory for descriptor tables.
func SetMemory(pages int) {
	files.SetMax(max(int64(pages), minFiles))
	tables.SetMax(int64(pages) * (mem.PageSize / 16) / chunkCost)
}

// Files returns how many files are open and how many may be (fs.file-max). Descriptor
// tables refuse new descriptors beyond that (ENFILE), and earlier for most users: the
// last ones are for CAP_SYS_ADMIN and for users with few.
func Files() (n, max int64) { return files.Used(), files.Max() }

// SetMaxFiles changes fs.file-max.
func SetMaxFiles(n int64) { files.SetMax(n) }

// NewFile returns an open file with one reference.
func NewFile(ops Ops, flags uint32) *File {
	f := NewStream(ops, flags)
	_, f.seekable = ops.(Seeker)
	return f
}

// NewStream is NewFile where ops is no Seeker, which need not be asked.
func NewStream(ops Ops, flags uint32) *File {
	files.Note(1)
	f := &File{Ops: ops}
	f.refs.Store(1)
	f.flags.Store(flags)
	return f
}

// SetRemembered makes descriptor tables count changes that concern the file. It has
// no descriptor yet.
func (f *File) SetRemembered() { f.remembered = true }

// Get adds a reference; the caller already has one.
func (f *File) Get() { f.refs.Add(1) }

// SyncFS is syncfs(2): it makes the file's whole file system durable, and reports once a
// write that failed since the file was opened.
func (f *File) SyncFS() (e linux.Errno) {
	if f.Path.Zero() {
		return 0
	}
	fs := f.Path.Inode().FS
	if fs.Sync != nil {
		e = fs.Sync()
	}
	if lost := fs.WriteErrors.Check(&f.synced); e == 0 {
		e = lost
	}
	return e
}

// TryGet adds a reference unless the last one is gone.
func (f *File) TryGet() bool {
	for {
		n := f.refs.Load()
		if n <= 0 {
			return false
		}
		if f.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Put drops a reference.
func (f *File) Put() {
	if n := f.refs.Add(-1); n == 0 {
		files.Note(-1)
		if f.owner != nil {
			files.Hold(f.owner, -1)
		}
		if f.watches.list.Load() != nil {
			f.watches.end()
		}
		f.release()
	} else if n < 0 {
		panic("vfs: file released twice")
	}
}

// Refs returns the number of references.
func (f *File) Refs() int64 { return f.refs.Load() }

// Flags returns O_* as fcntl F_GETFL shows them.
func (f *File) Flags() uint32 { return f.flags.Load() }

// Seekable reports whether the file has a position.
func (f *File) Seekable() bool { return f.seekable }

// NonBlock reports O_NONBLOCK.
func (f *File) NonBlock() bool { return f.flags.Load()&linux.O_NONBLOCK != 0 }

// Readable and Writable report what the access mode of open allows.
func (f *File) Readable() bool {
	m := f.flags.Load() & (linux.O_ACCMODE | linux.O_PATH)
	return m == linux.O_RDONLY || m == linux.O_RDWR
}

// Writable reports whether the file was opened for writing.
func (f *File) Writable() bool {
	m := f.flags.Load() & (linux.O_ACCMODE | linux.O_PATH)
	return m == linux.O_WRONLY || m == linux.O_RDWR
}

// UpdateFlags sets the flags under mask to v.
func (f *File) UpdateFlags(mask, v uint32) {
	for {
		old := f.flags.Load()
		if f.flags.CompareAndSwap(old, old&^mask|v&mask) {
			return
		}
	}
}

// BaseOps gives the answers of a file that can do nothing; embed it.
type BaseOps struct{}

// Read refuses.
func (BaseOps) Read(*caller.Ctx, *File, *uio.Vec, int64) (int, linux.Errno) { return 0, linux.EINVAL }

// Write refuses.
func (BaseOps) Write(*caller.Ctx, *File, *uio.Vec, int64) (int, linux.Errno) { return 0, linux.EINVAL }

// Ready says always ready.
func (BaseOps) Ready(*File) wait.Events { return wait.In | wait.Out | wait.RdNorm | wait.WrNorm }

// Queue says that readiness never changes.
func (BaseOps) Queue(*File) *wait.Queue { return nil }

// Ioctl knows none.
func (BaseOps) Ioctl(*caller.Ctx, *File, uint32, uint64) (uint64, linux.Errno) {
	return 0, linux.ENOTTY
}

// Release has nothing to release.
func (BaseOps) Release(*File) {}
