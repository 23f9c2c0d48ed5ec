package vfs

import "hardtack/abi/linux"

// Lease says whether a lock is a lease, and whether somebody waits for it.
type Lease uint8

// What a lock can be as a lease.
const (
	NoLease Lease = iota
	LeaseHeld
	LeaseBreaking
)

// EachLock calls fn for every lock on the file, for /proc/locks: of is the open file of
// a flock or a lease, nil for others.
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
	leases := make([]lease, 0, len(t.leases))
	for _, l := range t.leases {
		leases = append(leases, *l)
	}
	t.mu.Unlock()
	for _, l := range leases {
		r := RecordLock{Type: l.target(), PID: -1, Lease: LeaseHeld}
		if l.lower || l.end {
			r.Lease = LeaseBreaking
		}
		fn(r, l.f)
	}
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
