package vfs

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
)

// asks reports whether what the tree knows of the inode's file system has to be asked for
// again.
func (i *Inode) asks() bool { return i.FS.Flags&FSAsk != 0 }

// Renew renews the attributes of what a path led to, unless the walk has just asked for
// them: the root of a file system and the working directory are found without a question.
func (p Path) Renew(c *caller.Ctx, path string) {
	i := p.Dentry.Inode
	if last := len(path) - 1; last >= 0 && path[last] != '.' && path[last] != '/' && p.Dentry.Parent() != p.Dentry {
		return
	}
	if n, ok := i.Node.(Asker); ok {
		n.Renew(c, i)
	}
}

// Asked reports whether Renew may have something to do.
func (p Path) Asked() bool { return p.Dentry.Inode.asks() }

// unseen is called for a name that was found in directory dir, and of which it is not known
// that somebody found it before. It returns nil where the name has gone meanwhile, and is
// out of the tree then.
func (d *Dentry) unseen(c *caller.Ctx, dir *Dentry) (*Dentry, linux.Errno) {
	if !d.Inode.asks() {
		d.seen.Store(true)
		return d, 0
	}
	still, e := d.still(c, dir)
	if e != 0 || still {
		return d, e
	}
	dir.Inode.Mu.Lock()
	d.outdated(dir)
	dir.Inode.Mu.Unlock()
	return nil, 0
}

// still asks the file system. What something is mounted on stays.
func (d *Dentry) still(c *caller.Ctx, dir *Dentry) (bool, linux.Errno) {
	n, ok := d.Inode.Node.(Asker)
	if !ok || d.mounted.Load() != 0 {
		return true, 0
	}
	return n.Still(c, dir.Inode, d.Inode, d.Name())
}

// outdated takes a name out of the tree that somebody else has removed; dir's Mu is held.
func (d *Dentry) outdated(dir *Dentry) {
	if at := d.at.Load(); at.parent != dir || at.d.Load() != d || d.gone.Load() {
		return
	}
	d.detach()
	if d.Inode.nlink.Load() == 0 {
		d.Inode.dropLink(1)
	}
}
