package vfs

// Shrink takes about want names that were not looked up lately out of the tree of a
// file system on a disk (not FSInTree), and returns how many: files, and directories
// of which no name is left. drop is called for each inode whose name may go, with its
// directory's Mu held: it lets go of what else keeps the inode in memory, or says that
// the name must stay.
//
// A walk may be holding such a name just now. A file's leads to the same inode as
// before (the file system finds that again while anybody has it), so nothing but the
// text of /proc/PID/fd could be told apart; a directory's is put back by whoever
// looks it up next (Inode.settle).
func (fs *FileSystem) Shrink(want int, drop func(i *Inode) bool) (n int) {
	type step struct {
		dir  *Dentry
		done bool // with its names
	}
	steps := []step{{dir: fs.Root}}
	for len(steps) > 0 && n < want {
		s := steps[len(steps)-1]
		steps = steps[:len(steps)-1]
		if s.done {
			if s.dir.forgetDir(drop) {
				n++
			}
			continue
		}
		if s.dir != fs.Root {
			steps = append(steps, step{s.dir, true})
		}
		s.dir.Inode.Mu.Lock()
		for d := s.dir.kids.head; d != nil; {
			next := d.next
			if d.kids != nil {
				steps = append(steps, step{dir: d})
			} else if d.forget(drop) {
				n++
			}
			d = next
		}
		s.dir.Inode.Mu.Unlock()
	}
	letGo()
	return n
}

// forget takes a name out of the tree if it was not looked up since the last time
// and nothing needs it; the parent's Mu is held.
func (d *Dentry) forget(drop func(i *Inode) bool) bool {
	if d.seen.Swap(false) || d.mounted.Load() != 0 || !d.Inode.idle() || !drop(d.Inode) {
		return false
	}
	at := d.at.Load()
	at.parent.kids.remove(at.hash, at.name)
	at.parent.kids.unlist(d)
	return true
}

// forgetDir is forget for a directory, if it has no names in the tree.
func (d *Dentry) forgetDir(drop func(i *Inode) bool) bool {
	parent := d.Parent()
	parent.Inode.Mu.Lock()
	defer parent.Inode.Mu.Unlock()
	if at := d.at.Load(); at.parent != parent || at.d.Load() != d || d.gone.Load() {
		return false // moved, or out already
	}
	d.Inode.Mu.Lock()
	defer d.Inode.Mu.Unlock()
	if !d.empty() {
		d.seen.Store(false)
		return false
	}
	if !d.forget(drop) {
		return false
	}
	d.kids.table.Store(nil) // what is known not to exist
	d.kids.n = 0
	return true
}

// idle reports whether nothing but its names keeps an inode.
func (i *Inode) idle() bool {
	if i.refs.Load() != 1 || i.locks.Load() != nil {
		return false
	}
	if w := i.watches.Load(); w != nil && len(*w) > 0 {
		return false
	}
	return i.Private() == nil
}
