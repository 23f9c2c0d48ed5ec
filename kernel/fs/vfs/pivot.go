package vfs

import (
	"slices"

	"hardtack/abi/linux"
)

// Pivot puts the mount at fresh where the mount at root is, and that one on old, a
// directory below fresh (pivot_root).
func (ns *Namespace) Pivot(root, fresh, old Path) linux.Errno {
	old = old.top()
	return old.Dentry.underParent(func() linux.Errno { return ns.pivot(root, fresh, old) }) // as in Mount
}

// pivot is Pivot under the lock of old's parent.
func (ns *Namespace) pivot(root, fresh, old Path) linux.Errno {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	switch from := ns.table.Load().top(old); {
	case root.Mnt.dead.Load() || fresh.Mnt.dead.Load() || old.Mnt.dead.Load():
		return linux.EINVAL
	case fresh.Dentry.gone.Load() || old.Dentry.gone.Load():
		return linux.ENOENT
	case fresh.Mnt == root.Mnt || from.Mnt == root.Mnt:
		return linux.EBUSY
	case root.Dentry != root.Mnt.Root || fresh.Dentry != fresh.Mnt.Root:
		return linux.EINVAL
	case root.Mnt.at.Load() == nil && root.Mnt.FS.Type == "rootfs": // nothing is below it
		return linux.EINVAL
	case fresh.Mnt.at.Load() == nil, !from.within(fresh), !fresh.within(root):
		return linux.EINVAL
	default:
		old = from
	}
	n := ns.table.Load().copy(0)
	n.takeOff(fresh.Mnt)
	below := root.Mnt.at.Load()
	if below != nil {
		n.takeOff(root.Mnt)
	}
	n.add(root.Mnt, old)
	if below != nil {
		n.add(fresh.Mnt, *below)
	} else { // the first of all mounts now
		fresh.Mnt.at.Store(nil)
		n.list = append(n.list, fresh.Mnt)
	}
	n.sort()
	ns.table.Store(n)
	ns.changed()
	return 0
}

// takeOff takes a mount off its place, which it still knows, and out of the list.
func (t *mountTable) takeOff(m *Mount) {
	at := m.at.Load()
	delete(t.at, *at)
	at.Dentry.mounted.Add(-1)
	t.list = slices.DeleteFunc(t.list, func(x *Mount) bool { return x == m })
}

// Move makes to the root and working directory where those are from.
func (f *FSContext) Move(from, to Path) {
	for _, pick := range []func(d *contextDirs) *Path{
		func(d *contextDirs) *Path { return &d.root },
		func(d *contextDirs) *Path { return &d.cwd },
	} {
		f.mu.Lock()
		n := *f.dirs.Load()
		at := pick(&n)
		if *at != from || to.keep() != 0 {
			f.mu.Unlock()
			continue
		}
		*at = to
		f.dirs.Store(&n)
		f.mu.Unlock()
		from.unkeep()
	}
}

// TryShare adds a user, unless the last one has left.
func (f *FSContext) TryShare() bool {
	for {
		n := f.users.Load()
		if n == 0 {
			return false
		}
		if f.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}
