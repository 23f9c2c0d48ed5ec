package vfs

import (
	"sync/atomic"

	"hardtack/abi/linux"
)

// Dentry is a place in the name tree: an inode under a name in a directory.
//
// Look-ups take no lock. A directory's names are hash chains of immutable entries linked
// by atomic pointers; changes are made under the directory inode's Mu. A chain grows at
// its head only, an entry that was taken out is never put back, and a name that gets
// another file (rename over it) has its target swapped in place: so a concurrent reader
// finds every name that existed all the time, and what it finds existed at some moment of
// the look-up. Entries that were taken out live until the last reader has left them: that
// is the garbage collector's work.
//
// A directory has one place at a time. When names leave the tree to save memory (Shrink),
// a directory's place may still be in use: a later look-up of the directory finds that
// place again (Inode.place). So the tree stays a tree, also on a damaged disk whose
// directories are in each other.
type Dentry struct {
	Inode *Inode // immutable
	// at is parent and name; replaced by rename under renameMu and the
	// directories' Mu. The root of a file system has no parent.
	at   atomic.Pointer[entry]
	kids *children // immutable; nil for what is not a directory
	own  entry     // the first place, so that it costs no allocation

	mounted atomic.Int32 // mounts on this place
	gone    atomic.Bool  // unlinked or removed: the name leads here no more
	seen    atomic.Bool  // looked up since Shrink came by

	// The directory's listing in order of cookies; guarded by the parent
	// inode's Mu.
	next, prev *Dentry
	cookie     int64
}

// entry is a name in a directory.
type entry struct {
	parent *Dentry                // immutable
	name   string                 // immutable
	hash   uint32                 // immutable
	d      atomic.Pointer[Dentry] // nil: the name is known not to exist
	next   atomic.Pointer[entry]  // changed under the parent's Mu
}

// children are a directory's names.
type children struct {
	table atomic.Pointer[nameTable]
	n     int // entries in the table; guarded by the directory's Mu, as the rest

	head, tail *Dentry // listing
	cookie     int64   // last one given out
	count      int     // of the listing
	absent     int32   // names in the ring of negatives; guarded by negatives.mu
}

// nameTable is an array of chains, a power of two long.
type nameTable struct{ chain []atomic.Pointer[entry] }

// firstChains is the size of a directory's first table.
const firstChains = 4

// firstCookie is the offset of the first name in a listing; 0 and 1 are "." and "..".
const firstCookie = 2

// NewRoot returns the root place of a file system.
func NewRoot(i *Inode) *Dentry {
	d := &Dentry{Inode: i}
	d.at.Store(&d.own)
	d.own.d.Store(d)
	if i.IsDir() {
		d.kids = &children{cookie: firstCookie - 1}
		i.settle(d)
	}
	return d
}

// newDentry returns a place that is not in its parent's table yet.
func newDentry(parent *Dentry, name string, hash uint32, i *Inode) *Dentry {
	d := &Dentry{Inode: i}
	d.own.parent, d.own.name, d.own.hash = parent, name, hash
	d.own.d.Store(d)
	d.at.Store(&d.own)
	if i.IsDir() {
		d.kids = &children{cookie: firstCookie - 1}
	}
	return d
}

// Name returns the last component.
func (d *Dentry) Name() string { return d.at.Load().name }

// Parent returns the directory, or d itself at the root of the file system.
func (d *Dentry) Parent() *Dentry {
	if p := d.at.Load().parent; p != nil {
		return p
	}
	return d
}

// underParent calls change with the Mu of the directory that d is in, or of d itself
// if that is a root: whoever removes or renames d has that.
func (d *Dentry) underParent(change func() linux.Errno) linux.Errno {
	p := d.Parent()
	p.Inode.Mu.Lock()
	for p != d.Parent() { // d was moved meanwhile
		p.Inode.Mu.Unlock()
		p = d.Parent()
		p.Inode.Mu.Lock()
	}
	e := change()
	p.Inode.Mu.Unlock()
	return e
}

// Gone reports whether the name was removed.
func (d *Dentry) Gone() bool { return d.gone.Load() }

// nameHash is FNV-1a; path walks compute it while they look for the slash.
func nameHash(s string) uint32 {
	h := uint32(hashSeed)
	for i := 0; i < len(s); i++ {
		h = (h ^ uint32(s[i])) * hashPrime
	}
	return h
}

const (
	hashSeed  = 2166136261
	hashPrime = 16777619
)

// find returns the entry of a name, or nil. It takes no lock.
func (k *children) find(hash uint32, name string) *entry {
	t := k.table.Load()
	if t == nil {
		return nil
	}
	for e := t.chain[hash&uint32(len(t.chain)-1)].Load(); e != nil; e = e.next.Load() {
		if e.hash == hash && e.name == name {
			return e
		}
	}
	return nil
}

// lookup returns the place of a name that exists, or nil. It takes no lock.
func (d *Dentry) lookup(hash uint32, name string) *Dentry {
	if e := d.kids.find(hash, name); e != nil {
		return e.d.Load()
	}
	return nil
}

// insert adds an entry whose name has none yet; with the directory's Mu held.
func (k *children) insert(e *entry) {
	t := k.table.Load()
	switch {
	case t == nil:
		t = &nameTable{make([]atomic.Pointer[entry], firstChains)}
		k.table.Store(t)
	case k.n >= 2*len(t.chain):
		t = k.grow(t)
	}
	c := &t.chain[e.hash&uint32(len(t.chain)-1)]
	e.next.Store(c.Load())
	c.Store(e)
	k.n++
}

// grow makes a table four times as large of new entries: readers of the old chains must
// not be misled.
func (k *children) grow(old *nameTable) *nameTable {
	t := &nameTable{make([]atomic.Pointer[entry], 4*len(old.chain))}
	fresh := make([]entry, k.n)
	for i := range old.chain {
		for e := old.chain[i].Load(); e != nil; e = e.next.Load() {
			f := &fresh[0]
			fresh = fresh[1:]
			f.parent, f.name, f.hash = e.parent, e.name, e.hash
			d := e.d.Load()
			f.d.Store(d)
			if d != nil {
				d.at.Store(f)
			}
			c := &t.chain[f.hash&uint32(len(t.chain)-1)]
			f.next.Store(c.Load())
			c.Store(f)
		}
	}
	k.table.Store(t)
	return t
}

// remove takes a name's entry out; with the directory's Mu held.
func (k *children) remove(hash uint32, name string) {
	t := k.table.Load()
	if t == nil {
		return
	}
	c := &t.chain[hash&uint32(len(t.chain)-1)]
	for e := c.Load(); e != nil; c, e = &e.next, e.next.Load() {
		if e.hash == hash && e.name == name {
			c.Store(e.next.Load())
			// The entry may be in an array with others that stay, or in the ring of
			// negatives. Whoever still finds it looks in the file system.
			e.d.Store(nil)
			if k.n--; k.n == 0 && len(t.chain) > firstChains {
				k.table.Store(nil) // a large directory's is large
			}
			return
		}
	}
}

// list appends d to its directory's listing; with the directory's Mu held.
func (k *children) list(d *Dentry) {
	k.cookie++
	d.cookie = k.cookie
	d.prev, d.next = k.tail, nil
	if k.tail != nil {
		k.tail.next = d
	} else {
		k.head = d
	}
	k.tail = d
	k.count++
}

// unlist takes d out of its directory's listing; with the directory's Mu held.
func (k *children) unlist(d *Dentry) {
	if d.prev != nil {
		d.prev.next = d.next
	} else {
		k.head = d.next
	}
	if d.next != nil {
		d.next.prev = d.prev
	} else {
		k.tail = d.prev
	}
	d.prev, d.next = nil, nil
	k.count--
}

// attach puts a place with an entry that was never in use into its parent: visible
// from now on. The parent's Mu is held and the name does not exist (it may be known
// not to).
func (d *Dentry) attach() {
	at := d.at.Load()
	k := at.parent.kids
	if e := k.find(at.hash, at.name); e != nil {
		e.d.Store(d)
		d.at.Store(e)
	} else {
		k.insert(at)
	}
	k.list(d)
}

// detach takes a place's name away; the parent's Mu is held.
func (d *Dentry) detach() {
	at := d.at.Load()
	d.gone.Store(true)
	at.parent.kids.remove(at.hash, at.name)
	at.parent.kids.unlist(d)
	if d.kids != nil {
		d.forgetAbsent()
	}
}

// Empty reports whether a directory has no names; its Mu must be held.
func (d *Dentry) empty() bool { return d.kids.count == 0 }

// isAncestor reports whether d is p or above it in the same file system.
func (d *Dentry) isAncestor(p *Dentry) bool {
	for {
		if p == d {
			return true
		}
		up := p.at.Load().parent
		if up == nil {
			return false
		}
		p = up
	}
}

// AddChild puts an inode under a name without permission checks, for trees that
// the kernel itself fills (FSInTree). EEXIST if the name is taken.
func (d *Dentry) AddChild(name string, i *Inode) (*Dentry, linux.Errno) {
	h := nameHash(name)
	d.Inode.Mu.Lock()
	defer d.Inode.Mu.Unlock()
	if d.gone.Load() {
		return nil, linux.ENOENT
	}
	if d.lookup(h, name) != nil {
		return nil, linux.EEXIST
	}
	n := newDentry(d, name, h, i)
	n.attach()
	if i.IsDir() {
		d.Inode.nlink.Add(1)
	}
	return n, 0
}

// LinkChild gives an inode a further name without permission checks.
func (d *Dentry) LinkChild(name string, i *Inode) linux.Errno {
	h := nameHash(name)
	d.Inode.Mu.Lock()
	defer d.Inode.Mu.Unlock()
	if d.lookup(h, name) != nil {
		return linux.EEXIST
	}
	if !i.addLink() {
		return linux.ENOENT
	}
	newDentry(d, name, h, i).attach()
	return 0
}

// Child returns the place of a name that the tree holds, or nil.
func (d *Dentry) Child(name string) *Dentry {
	if d.kids == nil {
		return nil
	}
	return d.lookup(nameHash(name), name)
}

// Each calls fn with the children in listing order; fn must not change the directory.
func (d *Dentry) Each(fn func(*Dentry)) {
	if d.kids == nil {
		return
	}
	d.Inode.Mu.Lock()
	defer d.Inode.Mu.Unlock()
	for c := d.kids.head; c != nil; c = c.next {
		fn(c)
	}
}

// RemoveChild takes a name away without permission checks and drops its link.
func (d *Dentry) RemoveChild(name string) linux.Errno {
	h := nameHash(name)
	d.Inode.Mu.Lock()
	defer d.Inode.Mu.Unlock()
	n := d.lookup(h, name)
	if n == nil {
		return linux.ENOENT
	}
	if n.Inode.IsDir() {
		return linux.EISDIR
	}
	n.detach()
	n.Inode.dropLink(1)
	return 0
}

// RemoveTree takes a name and everything below it away without permission
// checks.
func (d *Dentry) RemoveTree(name string) linux.Errno {
	n := d.Child(name)
	if n == nil {
		return linux.ENOENT
	}
	if n.kids == nil {
		return d.RemoveChild(name)
	}
	for {
		first := ""
		n.Inode.Mu.Lock()
		if n.kids.head != nil {
			first = n.kids.head.Name()
		}
		n.Inode.Mu.Unlock()
		if first == "" {
			break
		}
		if e := n.RemoveTree(first); e != 0 {
			return e
		}
	}
	d.Inode.Mu.Lock()
	defer d.Inode.Mu.Unlock()
	if n.gone.Load() || !n.empty() {
		return linux.EBUSY
	}
	n.detach()
	n.Inode.dropLink(n.Inode.nlink.Load())
	d.Inode.nlink.Add(^uint32(0))
	return 0
}

// DropTree drops the links of everything below the root of a file system that has no
// mount any more. Calls that found a place there before may still be under way: what
// they reach is gone when they ask.
//
// The tree is walked without recursion, because users control its depth.
func DropTree(root *Dentry) {
	for dir := root; ; {
		dir.Inode.Mu.Lock()
		dir.gone.Store(true)
		d := dir.kids.head
		if d != nil {
			d.detach()
		}
		dir.Inode.Mu.Unlock()
		switch {
		case d == nil && dir == root:
			return
		case d == nil:
			up := dir.Parent()
			dir.Inode.dropLink(dir.Inode.nlink.Load())
			dir = up
		case d.kids != nil:
			dir = d
		default:
			d.Inode.dropLink(1)
		}
	}
}

// Below reports whether d is dir or lies under it in the same file system.
func (d *Dentry) Below(dir *Dentry) bool { return dir.isAncestor(d) }
