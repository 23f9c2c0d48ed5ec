package vfs

import "hardtack/abi/linux"

// EachLock calls fn for every lock on the file, for /proc/locks: of is the open file of
// a flock, nil for others.
func (i *Inode) EachLock(fn func(l RecordLock, of *File)) {
	t := i.locks.Load()
	if t == nil {
		return
	}
	t.mu.Lock()
	records := append([]RecordLock(nil), t.records...)
	flocks := make(map[*File]int, len(t.flocks))
	for f, op := range t.flocks {
		flocks[f] = op
	}
	t.mu.Unlock()
	for _, l := range records {
		fn(l, nil)
	}
	for f, op := range flocks {
		l := RecordLock{Type: linux.F_RDLCK, PID: -1}
		if op == linux.LOCK_EX {
			l.Type = linux.F_WRLCK
		}
		fn(l, f)
	}
}
