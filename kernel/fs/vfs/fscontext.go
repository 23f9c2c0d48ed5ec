package vfs

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
)

// FSContext is root directory, working directory and umask (Linux's
// fs_struct), shared by the threads of a process.
type FSContext struct {
	users atomic.Int32
	umask atomic.Uint32
	mu    sync.Mutex   // serialises changes of dirs
	execs atomic.Int32 // calls of exec that count on there being no new user; grows under mu
	dirs  atomic.Pointer[contextDirs]
}

// contextDirs is replaced as a whole, so that a walk sees both of one moment.
type contextDirs struct{ root, cwd Path }

// keep holds a directory for a context: its mount, and its place in the tree of
// names (see Shrink). ENOENT if it is gone.
func (p Path) keep() linux.Errno {
	if !p.Dentry.Inode.TryGet() {
		return linux.ENOENT
	}
	if !p.tryHold() {
		p.Dentry.Inode.Put()
		return linux.ENOENT
	}
	return 0
}

func (p Path) unkeep() {
	p.Dentry.Inode.Put()
	p.unhold()
}

// NewFSContext returns a context with one user, at the given root, umask 022.
func NewFSContext(root Path) *FSContext {
	f := &FSContext{}
	f.users.Store(1)
	f.umask.Store(0o022)
	root.keep()
	root.keep()
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
	d.root.keep()
	d.cwd.keep()
	f.mu.Unlock()
	n.dirs.Store(d)
	return n
}

// Share adds a user (CLONE_FS); EAGAIN while one of them is in exec.
func (f *FSContext) Share() linux.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.execs.Load() > 0 {
		return linux.EAGAIN
	}
	f.users.Add(1)
	return 0
}

// BeginExec reports whether there are users besides the n threads of a process
// that is about to become another program. If not, none comes until EndExec.
func (f *FSContext) BeginExec(n int) (shared bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if int(f.users.Load()) > n {
		return true
	}
	f.execs.Add(1)
	return false
}

// EndExec ends what a BeginExec began that returned false.
func (f *FSContext) EndExec() { f.execs.Add(-1) }

// Users returns how many share the context.
func (f *FSContext) Users() int { return int(f.users.Load()) }

// Release drops a user.
func (f *FSContext) Release() {
	if f.Leave() {
		f.End()
	}
}

// Leave is Release without its work, which End does where Leave says true.
func (f *FSContext) Leave() bool { return f.users.Add(-1) == 0 }

// End gives the directories up when the last user has left.
func (f *FSContext) End() {
	d := f.dirs.Load()
	d.root.unkeep()
	d.cwd.unkeep()
}

// Root returns the root directory.
func (f *FSContext) Root() Path { return f.dirs.Load().root }

// Cwd returns the working directory.
func (f *FSContext) Cwd() Path { return f.dirs.Load().cwd }

// Umask returns the file creation mask.
func (f *FSContext) Umask() uint32 { return f.umask.Load() }

// SetUmask replaces the mask and returns the old one.
func (f *FSContext) SetUmask(m uint32) uint32 { return f.umask.Swap(m & 0o777) }

// set replaces one of the directories; pick says which.
func (f *FSContext) set(p Path, pick func(d *contextDirs) *Path) linux.Errno {
	if e := p.keep(); e != 0 {
		return e
	}
	f.mu.Lock()
	n := *f.dirs.Load()
	at := pick(&n)
	old := *at
	*at = p
	f.dirs.Store(&n)
	f.mu.Unlock()
	old.unkeep()
	return 0
}

// Enter makes the root of the mounts the root and the working directory (setns).
func (f *FSContext) Enter() linux.Errno {
	top := f.Root().Namespace().Root()
	if e := f.set(top, func(d *contextDirs) *Path { return &d.root }); e != 0 {
		return e
	}
	return f.set(top, func(d *contextDirs) *Path { return &d.cwd })
}

// Chdir makes p the working directory.
func (f *FSContext) Chdir(c *caller.Ctx, p Path) linux.Errno {
	if !p.Dentry.Inode.IsDir() {
		return linux.ENOTDIR
	}
	if e := Permission(c, p.Dentry.Inode, MayExec); e != 0 {
		return e
	}
	return f.set(p, func(d *contextDirs) *Path { return &d.cwd })
}

// Chroot makes p the root directory.
func (f *FSContext) Chroot(c *caller.Ctx, p Path) linux.Errno {
	if !p.Dentry.Inode.IsDir() {
		return linux.ENOTDIR
	}
	if e := Permission(c, p.Dentry.Inode, MayExec); e != 0 {
		return e
	}
	if !c.Cred().Has(creds.CapSysChroot) {
		return linux.EPERM
	}
	return f.set(p, func(d *contextDirs) *Path { return &d.root })
}
