package vfs

import (
	"strings"
	"sync"
)

// maxNegative bounds how many names are known not to exist, over all
// directories: each is an entry of about 100 bytes.
const maxNegative = 4096

// negatives is a ring of the known absences: the oldest is forgotten first.
// Its lock comes after a directory's Mu; forgetting is done under TryLock of
// the other directory's Mu, and skipped where that is busy.
//
// An entry keeps its directory in memory, and with it the file system. So the ring has
// none of a directory that was removed, nor of a file system without a mount.
var negatives struct {
	mu   sync.Mutex
	ring [maxNegative]*entry // guarded by mu
	next int                 // guarded by mu
}

// remember notes that a name does not exist; the directory's Mu is held.
func (d *Dentry) remember(hash uint32, name string) {
	e := &entry{parent: d, name: strings.Clone(name), hash: hash}
	negatives.mu.Lock()
	if d.gone.Load() || d.Inode.FS.mounts.Load() == 0 {
		negatives.mu.Unlock()
		return
	}
	old := negatives.ring[negatives.next]
	negatives.ring[negatives.next] = e
	negatives.next = (negatives.next + 1) % maxNegative
	d.kids.absent++
	if old != nil {
		old.parent.kids.absent--
	}
	negatives.mu.Unlock()
	d.kids.insert(e)
	if old == nil || old.d.Load() != nil {
		return
	}
	dir := old.parent
	if dir != d {
		if !dir.Inode.Mu.TryLock() {
			return // stays until the directory goes
		}
		defer dir.Inode.Mu.Unlock()
	}
	if now := dir.kids.find(old.hash, old.name); now != nil && now.d.Load() == nil {
		dir.kids.remove(old.hash, old.name)
	}
}

// drop takes an entry out of the ring; negatives.mu is held.
func drop(i int) {
	negatives.ring[i].parent.kids.absent--
	negatives.ring[i] = nil
}

// forgetAbsent drops what the ring has of a directory, which is gone. What a directory
// that lived shortly has there was noted lately: the search begins with that.
func (d *Dentry) forgetAbsent() {
	negatives.mu.Lock()
	defer negatives.mu.Unlock()
	for n := 1; n <= maxNegative && d.kids.absent > 0; n++ {
		i := (negatives.next - n + maxNegative) % maxNegative
		if e := negatives.ring[i]; e != nil && e.parent == d {
			drop(i)
		}
	}
}

// forgetAbsent drops what the ring has of a file system that has no mount any more.
func (fs *FileSystem) forgetAbsent() {
	negatives.mu.Lock()
	defer negatives.mu.Unlock()
	for i, e := range negatives.ring {
		if e != nil && e.parent.Inode.FS == fs {
			drop(i)
		}
	}
}

// letGo drops what the ring has of directories that left the tree, and of names that
// exist by now: it would keep them in memory.
func letGo() {
	negatives.mu.Lock()
	defer negatives.mu.Unlock()
	for i, e := range negatives.ring {
		if e != nil && (e.d.Load() != nil || e.parent.at.Load().d.Load() != e.parent) {
			drop(i)
		}
	}
}
