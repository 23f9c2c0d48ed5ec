package vfs

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
)

// WalkFlags govern a path walk.
type WalkFlags uint32

// What a walk does and what it refuses.
const (
	FollowLast   WalkFlags = 1 << iota // follow a symbolic link at the end
	EmptyPath                          // "" is the directory or file itself (AT_EMPTY_PATH)
	NoXDev                             // RESOLVE_NO_XDEV
	NoMagicLinks                       // RESOLVE_NO_MAGICLINKS
	NoSymlinks                         // RESOLVE_NO_SYMLINKS
	Beneath                            // RESOLVE_BENEATH
	InRoot                             // RESOLVE_IN_ROOT
)

// maxLinks is how many symbolic links one walk follows.
const maxLinks = 40

// walk is one path walk. It takes no lock and holds no reference.
type walk struct {
	c     *caller.Ctx
	cred  *creds.Cred
	root  Path // "/" and where ".." ends
	cur   Path // always a directory when a component is looked up
	start Path // for Beneath and InRoot
	flags WalkFlags
	links int
	// The last component, which parent leaves to the caller: "" is the root
	// itself. lastDir: a slash follows.
	last     string
	lastHash uint32
	lastDir  bool
}

// begin starts a walk of path from at (nil: the working directory).
func (w *walk) begin(c *caller.Ctx, fs *FSContext, at *File, path string, flags WalkFlags) linux.Errno {
	d := fs.dirs.Load()
	w.c, w.cred, w.root, w.flags = c, c.Cred(), d.root, flags
	if len(path) > 0 && path[0] == '/' && flags&(Beneath|InRoot) == 0 {
		w.cur = d.root
		return 0
	}
	if at == nil {
		w.cur = d.cwd
	} else {
		if at.Path.Zero() {
			if flags&EmptyPath != 0 && path == "" {
				w.cur = anonPath(at)
				return 0
			}
			return linux.ENOTDIR
		}
		w.cur = at.Path
	}
	if flags&InRoot != 0 {
		w.root = w.cur
	}
	w.start = w.cur
	return 0
}

// parent walks to the directory of the last component.
func (w *walk) parent(path string) linux.Errno {
	i, more, e := w.enter(path)
	for e == 0 && more {
		dir := w.cur.Dentry
		if dir.kids == nil {
			return linux.ENOTDIR
		}
		if e = searchable(w.cred, dir.Inode); e != 0 {
			return e
		}
		from, h := i, uint32(hashSeed)
		for i < len(path) && path[i] != '/' {
			h = (h ^ uint32(path[i])) * hashPrime
			i++
		}
		name := path[from:i]
		end := i
		for i < len(path) && path[i] == '/' {
			i++
		}
		if i == len(path) {
			w.last, w.lastHash, w.lastDir = name, h, end < i
			return 0
		}
		var p Path
		if p, e = w.step(name, h); e != 0 {
			return e
		}
		switch p.Dentry.Inode.Type() {
		case linux.S_IFDIR:
			w.cur = p
		case linux.S_IFLNK:
			text, jumped, e := w.readLink(p)
			if e != 0 {
				return e
			}
			if jumped {
				continue
			}
			// The rest of the path follows the link's text.
			if len(text)+len(path)-end > 4*linux.PATH_MAX {
				return linux.ENAMETOOLONG
			}
			path = text + path[end:]
			if i, more, e = w.enter(path); e != 0 {
				return e
			}
		default:
			return linux.ENOTDIR
		}
	}
	return e
}

// enter begins a text: an absolute one at the root. It returns where the first
// component is; there is none in "/".
func (w *walk) enter(path string) (i int, more bool, e linux.Errno) {
	if path[0] != '/' {
		return 0, true, 0
	}
	if w.flags&Beneath != 0 || w.flags&NoXDev != 0 && w.cur.Mnt != w.root.Mnt {
		return 0, false, linux.EXDEV
	}
	w.cur = w.root
	for i < len(path) && path[i] == '/' {
		i++
	}
	if i == len(path) {
		w.last, w.lastDir = "", true
		return i, false, 0
	}
	return i, true, 0
}

// step looks a component up in the current directory, following mounts but
// not links.
func (w *walk) step(name string, hash uint32) (Path, linux.Errno) {
	if name[0] == '.' {
		if len(name) == 1 {
			return w.cur, 0
		}
		if len(name) == 2 && name[1] == '.' {
			return w.dotdot()
		}
	}
	d := w.cur.Dentry.lookup(hash, name)
	if d == nil || !d.seen.Load() {
		var e linux.Errno
		if d, e = w.cur.Dentry.find(w.c, d, hash, name); e != 0 {
			return Path{}, e
		}
	}
	p := Path{w.cur.Mnt, d}
	if d.mounted.Load() != 0 {
		if p = p.top(); w.flags&NoXDev != 0 && p.Mnt != w.cur.Mnt {
			return Path{}, linux.EXDEV
		}
	}
	return p, 0
}

func (w *walk) dotdot() (Path, linux.Errno) {
	if w.flags&Beneath != 0 && w.cur == w.start {
		return Path{}, linux.EXDEV
	}
	p, e := w.cur.up(w.root)
	if e != 0 {
		return Path{}, e
	}
	if w.flags&NoXDev != 0 && p.Mnt != w.cur.Mnt {
		return Path{}, linux.EXDEV
	}
	// The current directory may have been moved out of where the walk has to stay.
	if w.flags&(Beneath|InRoot) != 0 && !p.within(w.start) {
		return Path{}, linux.EAGAIN
	}
	return p, 0
}

// readLink reads the link at p. A magic link has jumped: w.cur is its target.
func (w *walk) readLink(p Path) (text string, jumped bool, e linux.Errno) {
	if w.links++; w.links > maxLinks || w.flags&NoSymlinks != 0 {
		return "", false, linux.ELOOP
	}
	if p.Mnt != nil && p.Mnt.flags.Load()&linux.MS_NOSYMFOLLOW != 0 {
		return "", false, linux.ELOOP
	}
	i := p.Dentry.Inode
	if j, ok := i.Node.(Jumper); ok {
		if w.flags&NoMagicLinks != 0 {
			return "", false, linux.ELOOP
		}
		if w.flags&(Beneath|InRoot) != 0 {
			return "", false, linux.EXDEV
		}
		to, e := j.Jump(w.c, i)
		if e != 0 {
			return "", false, e
		}
		if w.flags&NoXDev != 0 && to.Mnt != p.Mnt {
			return "", false, linux.EXDEV
		}
		w.cur = to
		return "", true, 0
	}
	p.Accessed()
	if text, e = i.Node.ReadLink(w.c, i); e == 0 && text == "" {
		e = linux.ENOENT
	}
	return text, false, e
}

// resolve walks path to its end.
func (w *walk) resolve(path string) (Path, linux.Errno) {
	if path == "" {
		if w.flags&EmptyPath == 0 {
			return Path{}, linux.ENOENT
		}
		return w.cur, 0
	}
	for {
		if e := w.parent(path); e != 0 {
			return Path{}, e
		}
		p := w.cur
		if w.last != "" {
			var e linux.Errno
			if p, e = w.step(w.last, w.lastHash); e != 0 {
				return Path{}, e
			}
		}
		switch p.Dentry.Inode.Type() {
		case linux.S_IFDIR:
			return p, 0
		case linux.S_IFLNK:
			if w.flags&FollowLast == 0 && !w.lastDir {
				return p, 0
			}
			dir := w.lastDir
			if e := w.mayFollow(p.Dentry.Inode); e != 0 {
				return Path{}, e
			}
			text, jumped, e := w.readLink(p)
			if e != 0 {
				return Path{}, e
			}
			if jumped {
				if dir && !w.cur.Dentry.Inode.IsDir() {
					return Path{}, linux.ENOTDIR
				}
				return w.cur, 0
			}
			if dir {
				text += "/"
			}
			path = text
		default:
			if w.lastDir {
				return Path{}, linux.ENOTDIR
			}
			return p, 0
		}
	}
}

// Lookup finds a path. at is the directory of the *at calls; nil means the
// working directory.
func Lookup(c *caller.Ctx, fs *FSContext, at *File, path string, flags WalkFlags) (Path, linux.Errno) {
	var w walk
	if e := w.begin(c, fs, at, path, flags); e != 0 {
		return Path{}, e
	}
	return w.resolve(path)
}

// find is the rest of a look-up: what the tree has is d, or nil.
func (d *Dentry) find(c *caller.Ctx, n *Dentry, hash uint32, name string) (*Dentry, linux.Errno) {
	if n != nil {
		if n, e := n.unseen(c, d); n != nil || e != 0 {
			return n, e
		}
	}
	n, e := d.lookupSlow(c, hash, name)
	if e == 0 && !n.Inode.asks() {
		n.seen.Store(true)
	}
	return n, e
}

// lookupSlow asks the file system for a name that the tree does not hold.
func (d *Dentry) lookupSlow(c *caller.Ctx, hash uint32, name string) (*Dentry, linux.Errno) {
	if len(name) > linux.NAME_MAX {
		return nil, linux.ENAMETOOLONG
	}
	fs := d.Inode.FS
	if fs.Flags&FSInTree != 0 {
		return nil, linux.ENOENT
	}
	if fs.Flags&FSNoCache != 0 {
		i, e := d.Inode.Node.Lookup(c, d.Inode, name)
		if e != 0 {
			return nil, e
		}
		return newDentry(d, name, hash, i), 0
	}
	if d.kids.find(hash, name) != nil {
		return nil, linux.ENOENT // known not to exist
	}
	d.Inode.Mu.Lock()
	defer d.Inode.Mu.Unlock()
	return d.fill(c, hash, name)
}

// lookupLocked looks a name up under the directory's Mu; nil without an error
// when it does not exist.
func (d *Dentry) lookupLocked(c *caller.Ctx, hash uint32, name string) (*Dentry, linux.Errno) {
	if n := d.lookup(hash, name); n != nil {
		if !n.Inode.asks() {
			return n, 0
		}
		if still, e := n.still(c, d); still || e != 0 {
			return n, e
		}
		n.outdated(d)
	}
	if len(name) > linux.NAME_MAX {
		return nil, linux.ENAMETOOLONG
	}
	fs := d.Inode.FS
	if fs.Flags&FSInTree != 0 {
		return nil, 0
	}
	n, e := d.fill(c, hash, name)
	if e == linux.ENOENT && fs.Flags&FSNoCache == 0 { // nobody makes names in the others
		return nil, 0
	}
	return n, e
}

// fill is a look-up in the file system, whose answer the tree keeps; the
// directory's Mu is held.
func (d *Dentry) fill(c *caller.Ctx, hash uint32, name string) (*Dentry, linux.Errno) {
	e := d.kids.find(hash, name)
	if e != nil {
		if n := e.d.Load(); n != nil {
			return n, 0
		}
		return nil, linux.ENOENT
	}
	i, err := d.Inode.Node.Lookup(c, d.Inode, name)
	switch {
	case err == 0 && d.Inode.FS.Flags&FSNoCache != 0:
		return newDentry(d, name, hash, i), 0
	case err == 0:
		n := newDentry(d, name, hash, i)
		if i.IsDir() {
			if n, err = i.settle(n); err != 0 {
				return nil, err
			}
		}
		n.attach()
		return n, 0
	case err == linux.ENOENT && d.Inode.FS.Flags&(FSNoCache|FSAsk) == 0:
		d.remember(hash, name)
	}
	return nil, err
}
