package vfs

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/kern"
)

// FSContext is root directory, working directory and umask (Linux's
// fs_struct), shared by the threads of a process.
type FSContext struct {
	users atomic.Int32
	umask atomic.Uint32
	mu    sync.Mutex // serialises changes of dirs
	dirs  atomic.Pointer[contextDirs]
}

// contextDirs is replaced as a whole, so that a walk sees both of one moment.
type contextDirs struct{ root, cwd Path }

// NewFSContext returns a context with one user, at the given root, umask 022.
func NewFSContext(root Path) *FSContext {
	f := &FSContext{}
	f.users.Store(1)
	f.umask.Store(0o022)
	root.hold()
	root.hold()
	f.dirs.Store(&contextDirs{root, root})
	return f
}

// Clone returns a copy with one user.
func (f *FSContext) Clone() *FSContext {
	n := &FSContext{}
	n.users.Store(1)
	n.umask.Store(f.umask.Load())
	f.mu.Lock()
	d := f.dirs.Load()
	d.root.hold()
	d.cwd.hold()
	f.mu.Unlock()
	n.dirs.Store(d)
	return n
}

// Share adds a user (CLONE_FS).
func (f *FSContext) Share() { f.users.Add(1) }

// Users returns how many share the context.
func (f *FSContext) Users() int { return int(f.users.Load()) }

// Release drops a user.
func (f *FSContext) Release() {
	if f.users.Add(-1) == 0 {
		d := f.dirs.Load()
		d.root.unhold()
		d.cwd.unhold()
	}
}

// Root returns the root directory.
func (f *FSContext) Root() Path { return f.dirs.Load().root }

// Cwd returns the working directory.
func (f *FSContext) Cwd() Path { return f.dirs.Load().cwd }

// Umask returns the file creation mask.
func (f *FSContext) Umask() uint32 { return f.umask.Load() }

// SetUmask replaces the mask and returns the old one.
func (f *FSContext) SetUmask(m uint32) uint32 { return f.umask.Swap(m & 0o777) }

func (f *FSContext) set(root, cwd *Path) {
	f.mu.Lock()
	old := f.dirs.Load()
	n := *old
	if root != nil {
		n.root = *root
		root.hold()
		old.root.unhold()
	}
	if cwd != nil {
		n.cwd = *cwd
		cwd.hold()
		old.cwd.unhold()
	}
	f.dirs.Store(&n)
	f.mu.Unlock()
}

// Chdir makes p the working directory.
func (f *FSContext) Chdir(c *kern.Ctx, p Path) linux.Errno {
	if !p.Dentry.Inode.IsDir() {
		return linux.ENOTDIR
	}
	if e := Permission(c, p.Dentry.Inode, MayExec); e != 0 {
		return e
	}
	f.set(nil, &p)
	return 0
}

// Chroot makes p the root directory.
func (f *FSContext) Chroot(c *kern.Ctx, p Path) linux.Errno {
	if !p.Dentry.Inode.IsDir() {
		return linux.ENOTDIR
	}
	if e := Permission(c, p.Dentry.Inode, MayExec); e != 0 {
		return e
	}
	if !c.Cred().Has(kern.CapSysChroot) {
		return linux.EPERM
	}
	f.set(&p, nil)
	return 0
}
