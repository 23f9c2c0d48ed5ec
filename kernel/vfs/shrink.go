package vfs

// Shrink takes about want names of files that were not looked up lately out of the
// tree of a file system on a disk (not FSInTree), and returns how many. drop is called
// for each file whose name may go, with its directory's Mu held: it lets go of what else
// keeps the inode in memory, or says that the name must stay.
//
// A walk may be holding such a name just now. It leads to the same inode as before
// (the file system finds that again while anybody has it), so nothing but the text of
// /proc/PID/fd could be told apart. Directories stay: what is below a second place of
// the same directory would be a second truth.
func (fs *FileSystem) Shrink(want int, drop func(i *Inode) bool) (n int) {
	dirs := []*Dentry{fs.Root}
	for len(dirs) > 0 && n < want {
		dir := dirs[len(dirs)-1]
		dirs = dirs[:len(dirs)-1]
		dir.Inode.Mu.Lock()
		for d := dir.kids.head; d != nil; {
			next := d.next
			switch {
			case d.kids != nil:
				dirs = append(dirs, d)
			case d.seen.Load():
				d.seen.Store(false)
			case d.mounted.Load() == 0 && d.Inode.idle() && drop(d.Inode):
				at := d.at.Load()
				dir.kids.remove(at.hash, at.name)
				dir.kids.unlist(d)
				// The entry may lie in an array with others that stay. Who
				// still finds it looks in the file system.
				at.d.Store(nil)
				n++
			}
			d = next
		}
		dir.Inode.Mu.Unlock()
	}
	return n
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
