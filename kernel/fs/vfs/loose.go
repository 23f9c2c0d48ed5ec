package vfs

import (
	"slices"

	"hardtack/abi/linux"
	"hardtack/kernel/base/settings"
)

// Loose mounts file system fs where no path leads: fsmount's mount, until Move puts it
// into the tree.
func (ns *Namespace) Loose(fs *FileSystem, root *Dentry, source string, flags uint32) (*Mount, linux.Errno) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if !root.Inode.TryGet() {
		return nil, linux.ENOENT
	}
	m := ns.newMount(fs, root, source, flags)
	m.loose.Store(true)
	return m, 0
}

// Copy makes a loose mount of the tree at from; with rec what is mounted below comes too.
func (ns *Namespace) Copy(from Path, rec bool) (*Mount, linux.Errno) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	old := ns.table.Load()
	var below []*Mount
	if rec {
		below = old.below(from)
	}
	switch {
	case !from.Mnt.inTree():
		return nil, linux.EINVAL
	case len(old.list)+len(below) > int(settings.MountMax.Get()):
		return nil, linux.ENOSPC
	case !from.Dentry.Inode.TryGet():
		return nil, linux.ENOENT
	}
	m := ns.newMount(from.Mnt.FS, from.Dentry, from.Mnt.Source, from.Mnt.Flags())
	m.loose.Store(true)
	if len(below) > 0 {
		n := old.copy(len(below))
		ns.copyBelow(n, below, from.Mnt, m)
		ns.table.Store(n)
	}
	return m, 0
}

// copyBelow adds copies of the mounts below one to its copy.
func (ns *Namespace) copyBelow(n *mountTable, below []*Mount, of, copied *Mount) {
	copies := map[*Mount]*Mount{of: copied}
	for _, x := range below { // parents stand before what is mounted on them
		at := *x.at.Load()
		x.Root.Inode.TryGet() // always: x is mounted
		c := ns.newMount(x.FS, x.Root, x.Source, x.Flags())
		n.add(c, Path{copies[at.Mnt], at.Dentry})
		copies[x] = c
	}
}

// inTree reports whether a path leads to the mount, as opposed to one that was taken
// out or is loose. The namespace's mu is held.
func (m *Mount) inTree() bool {
	for at := m.at.Load(); at != nil; at = m.at.Load() {
		m = at.Mnt
	}
	return !m.dead.Load() && !m.loose.Load()
}

// attach puts a loose mount on p.
func (ns *Namespace) attach(m *Mount, p Path) linux.Errno {
	old := ns.table.Load()
	if len(old.list) >= int(settings.MountMax.Get()) {
		return linux.ENOSPC
	}
	n := old.copy(1)
	n.add(m, n.top(p))
	n.sort()
	m.loose.Store(false)
	ns.table.Store(n)
	ns.changed()
	return 0
}

// dissolve ends a loose mount, with what is mounted on it, unless it was put into the
// tree.
func (ns *Namespace) dissolve(m *Mount) {
	var ended []*Mount
	ns.mu.Lock()
	if m.loose.Load() {
		ended = ns.drop(m)
	}
	ns.mu.Unlock()
	for _, x := range ended {
		x.end()
	}
}

// drop is dissolve under mu; it returns the mounts that have ended by that.
func (ns *Namespace) drop(m *Mount) (ended []*Mount) {
	old := ns.table.Load()
	going := map[*Mount]bool{m: true}
	n := &mountTable{at: make(map[Path]*Mount, len(old.at))}
	for _, x := range old.list { // parents stand before what is mounted on them
		at := x.at.Load()
		if at != nil && going[at.Mnt] {
			going[x] = true
			continue
		}
		n.list = append(n.list, x)
		if at != nil {
			n.at[*at] = x
		}
	}
	if len(going) > 1 {
		ns.table.Store(n)
	}
	m.loose.Store(false)
	for x := range going {
		if at := x.at.Swap(nil); at != nil {
			at.Dentry.mounted.Add(-1)
		}
		x.dead.Store(true)
		if x.users.Add(-1) == 0 {
			ended = append(ended, x)
		}
	}
	return ended
}

// loosePath is the O_PATH descriptor of a loose mount, which ends with it.
type loosePath struct {
	pathOps
	m *Mount
}

func (l *loosePath) Release(*File) { l.m.ns.dissolve(l.m) }

// OpenLoose opens a mount that Loose or Copy made: the descriptor keeps it.
func OpenLoose(m *Mount) *File {
	p := Path{m, m.Root}
	p.keep() // always: m has the user that dissolve takes away
	f := NewFile(&loosePath{m: m}, linux.O_PATH)
	f.setPath(p)
	return f
}

// Attrs is what mount_setattr changes of a mount: flags MS_*.
type Attrs struct{ Set, Clear uint32 }

// SetAttrs changes flags of the mount at p, with rec also of those mounted below it: of
// all or, if one of them refuses (EBUSY), of none.
func (ns *Namespace) SetAttrs(p Path, rec bool, a Attrs) linux.Errno {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	m := p.Mnt
	if p.Dentry != m.Root || m.dead.Load() || !m.loose.Load() && !m.inTree() {
		return linux.EINVAL
	}
	all := []*Mount{m}
	if rec {
		all = slices.Concat(all, ns.table.Load().below(p))
	}
	if a.Set&linux.MS_RDONLY != 0 {
		for _, x := range all {
			if !x.ReadOnly() && x.writers.Load() > 0 {
				return linux.EBUSY
			}
		}
	}
	for _, x := range all {
		x.flags.Store(x.flags.Load()&^a.Clear | a.Set)
	}
	ns.changed()
	return 0
}

// OpenPlace opens a place that was found, as O_PATH does.
func OpenPlace(p Path) (*File, linux.Errno) {
	if e := p.keep(); e != 0 {
		return nil, e
	}
	f := NewFile(pathOps{}, linux.O_PATH)
	f.setPath(p)
	return f, 0
}
