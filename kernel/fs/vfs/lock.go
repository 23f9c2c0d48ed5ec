package vfs

import (
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/wait"
)

// maxRecordLocks bounds the record locks that a user has on one file, maxAllLocks those
// of all, which users share.
const (
	maxRecordLocks = 1 << 14
	maxAllLocks    = 1 << 17
)

var allLocks = accounts.NewPool(maxAllLocks)

// RecordLock is a POSIX or OFD lock on the bytes Start … End (inclusive).
type RecordLock struct {
	Type       int16 // F_RDLCK, F_WRLCK, F_UNLCK
	Start, End int64
	Owner      any   // *FDTable for POSIX locks, *File for OFD locks
	PID        int32 // what F_GETLK shows: -1 for OFD locks
	Lease      Lease // of EachLock's leases only

	user *accounts.User // who is charged; SetLock's
}

// lockTable is a file's locks. Lock order: lockTable.mu, deadlocks.mu, wait queue.
type lockTable struct {
	mu      sync.Mutex
	records []RecordLock  // guarded by mu; by owner's ranges disjoint, in order of Start
	flocks  map[*File]int // guarded by mu; LOCK_SH or LOCK_EX
	leases  []*lease      // guarded by mu
	byFile  map[*File]int // where in leases; guarded by mu
	asked   bool          // a lease may be asked to be lowered or ended; guarded by mu
	leased  atomic.Int32  // how many; changed under mu
	changed wait.Queue
}

func (i *Inode) lockTable() *lockTable {
	if t := i.locks.Load(); t != nil {
		return t
	}
	i.locks.CompareAndSwap(nil, &lockTable{})
	return i.locks.Load()
}

func (l *RecordLock) conflicts(with *RecordLock) bool {
	return l.Owner != with.Owner && l.Start <= with.End && with.Start <= l.End &&
		(l.Type == linux.F_WRLCK || with.Type == linux.F_WRLCK)
}

func (t *lockTable) blocker(l *RecordLock) *RecordLock {
	for i := range t.records {
		if t.records[i].conflicts(l) {
			return &t.records[i]
		}
	}
	return nil
}

// GetLock is F_GETLK: it turns l into the first lock in its way, or F_UNLCK.
func (i *Inode) GetLock(l *RecordLock) {
	t := i.locks.Load()
	if t == nil {
		l.Type = linux.F_UNLCK
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if b := t.blocker(l); b != nil {
		*l = *b
	} else {
		l.Type = linux.F_UNLCK
	}
}

// SetLock is F_SETLK and, with block, F_SETLKW.
func (i *Inode) SetLock(c *caller.Ctx, l *RecordLock, block bool) linux.Errno {
	t := i.lockTable()
	l.user = c.User()
	if l.Type == linux.F_UNLCK {
		t.mu.Lock()
		e := t.apply(l)
		t.mu.Unlock()
		t.changed.Notify(wait.In)
		return e
	}
	queued := false
	defer func() {
		if queued {
			t.changed.Remove(&c.Entry)
			deadlocks.forget(c)
		}
	}()
	for {
		if block && !queued {
			t.changed.Add(&c.Entry, c, wait.In)
			queued = true
		}
		if block {
			c.Arm()
		}
		t.mu.Lock()
		b := t.blocker(l)
		if b == nil {
			e := t.apply(l)
			t.mu.Unlock()
			t.changed.Notify(wait.In) // a weaker lock may let others in
			return e
		}
		if !block {
			t.mu.Unlock()
			return linux.EAGAIN
		}
		ok := deadlocks.wait(c, l.Owner, b.Owner)
		t.mu.Unlock()
		if !ok {
			return linux.EDEADLK
		}
		if c.Sleep(wait.NoDeadline) == wait.Interrupted {
			return linux.ERESTARTSYS
		}
	}
}

// apply gives l its range, cutting and joining the owner's other locks; mu is held.
func (t *lockTable) apply(l *RecordLock) linux.Errno {
	if (l.Type != linux.F_UNLCK || t.splits(l)) && !t.room(l.user) {
		return linux.ENOLCK
	}
	n := *l
	// What touches n is taken out: it becomes part of n, or its ends are put
	// back. The owner's ranges are disjoint, so there are two ends at most.
	var ends [2]RecordLock
	cut := 0
	t.records = slices.DeleteFunc(t.records, func(r RecordLock) bool {
		switch {
		case r.Owner != l.Owner:
			return false
		case r.Type == l.Type:
			if r.Start > after(l.End) || l.Start > after(r.End) {
				return false
			}
			n.Start, n.End = min(n.Start, r.Start), max(n.End, r.End)
			allLocks.Release(r.user, 1)
			return true
		case r.Start > l.End || l.Start > r.End:
			return false
		}
		allLocks.Release(r.user, 1)
		if r.Start < l.Start {
			ends[cut] = r
			ends[cut].End = l.Start - 1
			cut++
		}
		if r.End > l.End {
			ends[cut] = r
			ends[cut].Start = l.End + 1
			cut++
		}
		return true
	})
	for _, r := range ends[:cut] {
		t.put(r)
	}
	if n.Type != linux.F_UNLCK {
		t.put(n)
	}
	return 0
}

// room reports whether a user gets one more lock on the file; mu is held.
func (t *lockTable) room(u *accounts.User) bool {
	if !allLocks.Room(u, 1, u.UID == 0) {
		return false
	}
	if len(t.records) < maxRecordLocks {
		return true
	}
	n := 0
	for i := range t.records {
		if t.records[i].user == u {
			n++
		}
	}
	return n < maxRecordLocks
}

// splits reports whether l, which unlocks, makes two locks of one; mu is held.
func (t *lockTable) splits(l *RecordLock) bool {
	for i := range t.records {
		if r := &t.records[i]; r.Owner == l.Owner && r.Start < l.Start && r.End > l.End {
			return true
		}
	}
	return false
}

// put inserts a lock in the order of Start.
func (t *lockTable) put(r RecordLock) {
	i := sort.Search(len(t.records), func(i int) bool { return t.records[i].Start > r.Start })
	t.records = slices.Insert(t.records, i, r)
	allLocks.Force(r.user, 1)
}

const maxOffset = 1<<63 - 1

func after(end int64) int64 {
	if end == maxOffset {
		return end
	}
	return end + 1
}

// dropLocks takes away all record locks of an owner.
func (i *Inode) dropLocks(owner any) {
	t := i.locks.Load()
	if t == nil {
		return
	}
	t.mu.Lock()
	n := len(t.records)
	t.records = slices.DeleteFunc(t.records, func(r RecordLock) bool {
		if r.Owner == owner {
			allLocks.Release(r.user, 1)
		}
		return r.Owner == owner
	})
	dropped := len(t.records) != n
	t.mu.Unlock()
	if dropped {
		t.changed.Notify(wait.In)
	}
}

// lockPlace is a file without a name of which several open files have their locks in
// common (a pipe).
type lockPlace interface{ LockInode() *Inode }

// LockInode is where the file's locks are. A file without a name gets a place when it is
// first locked.
func (f *File) LockInode() *Inode {
	if !f.Path.Zero() {
		return f.Path.Dentry.Inode
	}
	if i := f.lockInode.Load(); i != nil {
		return i
	}
	i := new(Inode)
	if p, ok := f.Ops.(lockPlace); ok {
		i = p.LockInode()
	}
	f.lockInode.CompareAndSwap(nil, i)
	return f.lockInode.Load()
}

// unlock drops the locks that belong to the open file.
func (f *File) unlock(i *Inode) {
	if t := i.locks.Load(); t != nil {
		i.dropLocks(f)
		if f.locked.Load() {
			t.unflock(f)
		}
		if t.leased.Load() != 0 {
			t.dropLease(f)
		}
	}
}

// Flock is flock(2): op is LOCK_SH, LOCK_EX or LOCK_UN, perhaps with LOCK_NB.
func (f *File) Flock(c *caller.Ctx, op int) linux.Errno {
	t := f.LockInode().lockTable()
	block := op&linux.LOCK_NB == 0
	op &^= linux.LOCK_NB
	if op == linux.LOCK_UN {
		t.unflock(f)
		return 0
	}
	t.mu.Lock()
	had := t.flocks[f]
	t.mu.Unlock()
	if had == op {
		return 0
	}
	if had != 0 { // a change of kind is not atomic, as on Linux
		t.unflock(f)
	}
	f.locked.Store(true)
	t.changed.Add(&c.Entry, c, wait.In)
	defer t.changed.Remove(&c.Entry)
	for {
		c.Arm()
		t.mu.Lock()
		if t.flockFree(f, op) {
			if t.flocks == nil {
				t.flocks = map[*File]int{}
			}
			t.flocks[f] = op
			t.mu.Unlock()
			return 0
		}
		t.mu.Unlock()
		if !block {
			return linux.EAGAIN
		}
		if c.Sleep(wait.NoDeadline) == wait.Interrupted {
			return linux.ERESTARTSYS
		}
	}
}

func (t *lockTable) flockFree(f *File, op int) bool {
	for g, kind := range t.flocks {
		if g != f && (op == linux.LOCK_EX || kind == linux.LOCK_EX) {
			return false
		}
	}
	return true
}

func (t *lockTable) unflock(f *File) {
	t.mu.Lock()
	_, had := t.flocks[f]
	delete(t.flocks, f)
	t.mu.Unlock()
	if had {
		t.changed.Notify(wait.In)
	}
}

// waits knows which thread waits for whose POSIX lock.
type waits struct {
	mu    sync.Mutex
	who   map[*caller.Ctx]any // the owner for whom a thread waits; guarded by mu
	waits map[any][]waiter    // the threads that wait for an owner; guarded by mu
}

type waiter struct {
	c       *caller.Ctx
	blocker any // who has the lock
}

var deadlocks waits

// maxWaitChain is how far a circle of waiting owners is looked for.
const maxWaitChain = 64

// wait notes that owner waits for blocker; false if that would close a circle. Of an
// owner with several threads that wait the first counts.
func (w *waits) wait(c *caller.Ctx, owner, blocker any) bool {
	if _, ofd := owner.(*File); ofd {
		return true // an open file waits for nobody else: not detected, as on Linux
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(c) // it may be that it waited for another lock of the file
	for n, cur := 0, blocker; n < maxWaitChain; n++ {
		if cur == owner {
			return false
		}
		next := w.waits[cur]
		if len(next) == 0 {
			break
		}
		cur = next[0].blocker
	}
	if w.who == nil {
		w.who, w.waits = map[*caller.Ctx]any{}, map[any][]waiter{}
	}
	w.who[c] = owner
	w.waits[owner] = append(w.waits[owner], waiter{c, blocker})
	return true
}

func (w *waits) forget(c *caller.Ctx) {
	w.mu.Lock()
	w.drop(c)
	w.mu.Unlock()
}

// drop is forget with mu held.
func (w *waits) drop(c *caller.Ctx) {
	owner, ok := w.who[c]
	if !ok {
		return
	}
	delete(w.who, c)
	left := slices.DeleteFunc(w.waits[owner], func(x waiter) bool { return x.c == c })
	if len(left) == 0 {
		delete(w.waits, owner)
	} else {
		w.waits[owner] = left
	}
}
