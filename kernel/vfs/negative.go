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
var negatives struct {
	mu   sync.Mutex
	ring [maxNegative]*entry // guarded by mu
	next int                 // guarded by mu
}

// remember notes that a name does not exist; the directory's Mu is held.
func (d *Dentry) remember(hash uint32, name string) {
	e := &entry{parent: d, name: strings.Clone(name), hash: hash}
	d.kids.insert(e)
	negatives.mu.Lock()
	old := negatives.ring[negatives.next]
	negatives.ring[negatives.next] = e
	negatives.next = (negatives.next + 1) % maxNegative
	negatives.mu.Unlock()
	if old == nil {
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

// letGo drops what the ring has of directories that left the tree, and of names that
// exist by now: it would keep them in memory.
func letGo() {
	negatives.mu.Lock()
	defer negatives.mu.Unlock()
	for i, e := range negatives.ring {
		if e != nil && (e.d.Load() != nil || e.parent.at.Load().d.Load() != e.parent) {
			negatives.ring[i] = nil
		}
	}
}
