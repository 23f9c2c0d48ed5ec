package vfs

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/wait"
)

// lease lets the holder of an open file hear of the next open or truncation of the
// file that conflicts with it. Whoever wants to open then waits until the lease is
// lowered or given up, or for fs.lease-break-time seconds.
type lease struct {
	f    *File // immutable
	fd   int32 // through which it was taken; immutable
	kind int16 // F_RDLCK or F_WRLCK

	lower, end     bool  // somebody waits for it to be lowered to F_RDLCK, or to end
	lowerAt, endAt int64 // when that happens by itself; 0: never
}

// target is what F_GETLEASE shows: what the lease is to become.
func (l *lease) target() int16 {
	switch {
	case l.end:
		return linux.F_UNLCK
	case l.lower:
		return linux.F_RDLCK
	}
	return l.kind
}

// conflicts reports whether the lease is in the way of an open, for writing or not.
func (l *lease) conflicts(write bool) bool { return write || l.kind == linux.F_WRLCK }

// tell sends the holder the signal.
func (l *lease) tell() {
	if o, sig := l.f.Owner(); o.ID != 0 && SignalIO.Call != nil {
		SignalIO.Call(o, sig, l.fd, wait.Msg)
	}
}

// Lease is F_GETLEASE.
func (f *File) Lease() int16 {
	t := f.LockInode().locks.Load()
	if t == nil || t.leased.Load() == 0 {
		return linux.F_UNLCK
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expireLeases()
	if i := t.leaseOf(f); i >= 0 {
		return t.leases[i].target()
	}
	return linux.F_UNLCK
}

// SetLease is F_SETLEASE through descriptor fd.
func (f *File) SetLease(c *caller.Ctx, kind uint64, fd int32) linux.Errno {
	if kind != linux.F_RDLCK && kind != linux.F_WRLCK && kind != linux.F_UNLCK {
		return linux.EINVAL
	}
	i := f.PathOf().Inode()
	if cred := c.Cred(); cred.FSUID != i.UID() && !cred.Has(creds.CapLease) {
		return linux.EACCES
	}
	if i.Type() != linux.S_IFREG || f.Path.Zero() {
		return linux.EINVAL
	}
	if kind == linux.F_UNLCK {
		if t := i.locks.Load(); t == nil || !t.dropLease(f) {
			return linux.EAGAIN
		}
		f.UpdateFlags(linux.O_ASYNC, 0)
		return 0
	}
	t := i.lockTable()
	t.mu.Lock()
	e := t.addLease(i, f, int16(kind), fd)
	t.mu.Unlock()
	if e == 0 {
		t.changed.Notify(wait.In)
		f.ownByDefault(c)
		f.UpdateFlags(linux.O_ASYNC, linux.O_ASYNC)
	}
	return e
}

// addLease gives f a lease, or changes its own; mu is held.
func (t *lockTable) addLease(i *Inode, f *File, kind int16, fd int32) linux.Errno {
	t.expireLeases()
	if i.usedByOthers(f, kind) {
		return linux.EAGAIN
	}
	if t.leaseForbids(f, kind) {
		return linux.EAGAIN
	}
	if n := t.leaseOf(f); n >= 0 {
		l := t.leases[n]
		l.kind = kind
		if kind == linux.F_RDLCK {
			l.lower, l.lowerAt = false, 0
		}
		return 0
	}
	if settings.LeasesEnable.Get() == 0 {
		return linux.EINVAL
	}
	t.leases = append(t.leases, &lease{f: f, fd: fd, kind: kind})
	if t.byFile == nil {
		t.byFile = make(map[*File]int)
	}
	t.byFile[f] = len(t.leases) - 1
	t.leased.Add(1)
	// Opening counts first and looks for leases then: one of both sees the other.
	if i.usedByOthers(f, kind) {
		t.removeLease(len(t.leases) - 1)
		return linux.EAGAIN
	}
	return 0
}

// leaseForbids reports whether another file's lease is in the way of one of f's; mu is held.
func (t *lockTable) leaseForbids(f *File, kind int16) bool {
	if kind == linux.F_RDLCK && !t.asked {
		return false
	}
	for _, l := range t.leases {
		if l.f != f && (kind == linux.F_WRLCK || l.end) {
			return true
		}
	}
	return false
}

// usedByOthers reports whether the file is open in a way that forbids f a lease.
func (i *Inode) usedByOthers(f *File, kind int16) bool {
	writers := i.writers.Load()
	if kind == linux.F_RDLCK {
		return writers > 0
	}
	own, users := int32(0), int64(1)
	if f.Writable() {
		own = 1
	}
	if i.FS.Flags&FSAttrs != 0 && !i.nameless.Load() || i.FS.Flags&FSAttrs == 0 && i.Nlink() > 0 {
		users++ // the names' reference
	}
	return writers != own || i.refs.Load() != users
}

// leaseOf is the index of f's lease, or -1; mu is held.
func (t *lockTable) leaseOf(f *File) int {
	if i, ok := t.byFile[f]; ok {
		return i
	}
	return -1
}

// removeLease ends a lease; mu is held. The last one takes its place: a file may have very many.
func (t *lockTable) removeLease(i int) {
	f, last := t.leases[i].f, len(t.leases)-1
	t.leases[i] = t.leases[last]
	t.byFile[t.leases[i].f] = i
	t.leases[last] = nil
	t.leases = t.leases[:last]
	delete(t.byFile, f)
	t.leased.Add(-1)
	f.SetOwner(Owner{})
	f.SetSig(0)
}

// dropLease ends f's lease, if there is one.
func (t *lockTable) dropLease(f *File) bool {
	t.mu.Lock()
	i := t.leaseOf(f)
	if i >= 0 {
		t.removeLease(i)
	}
	t.mu.Unlock()
	if i >= 0 {
		t.changed.Notify(wait.In)
	}
	return i >= 0
}

// expireLeases lowers and ends the leases whose holders had time enough; mu is held.
func (t *lockTable) expireLeases() {
	if !t.asked {
		return
	}
	now := wait.Now()
	t.asked = false
	for i := 0; i < len(t.leases); i++ {
		l := t.leases[i]
		if l.lowerAt != 0 && now >= l.lowerAt {
			l.kind, l.lower, l.lowerAt = linux.F_RDLCK, false, 0
		}
		if l.endAt != 0 && now >= l.endAt {
			t.removeLease(i)
			i--
			continue
		}
		t.asked = t.asked || l.lower || l.end
	}
}

// breakLeases waits until no lease is in the way of an open or a truncation. Without
// block that is EAGAIN, and the holders are told all the same.
func (i *Inode) breakLeases(c *caller.Ctx, write, block bool) linux.Errno {
	if t := i.locks.Load(); t != nil && t.leased.Load() != 0 {
		return t.breakLeases(c, write, block)
	}
	return 0
}

func (t *lockTable) breakLeases(c *caller.Ctx, write, block bool) linux.Errno {
	//maxlive:loop 1 because only the first round waits in the queue
	for queued := false; ; {
		if queued {
			c.Arm()
		}
		told, conflict, until := t.askLeases(write)
		for _, l := range told {
			l.tell()
		}
		switch {
		case !conflict:
			return 0
		case !block:
			return linux.EAGAIN
		case !queued:
			t.changed.Add(&c.Entry, c, wait.In)
			defer t.changed.Remove(&c.Entry)
			queued = true
			continue
		}
		if c.Sleep(until) == wait.Interrupted {
			return linux.ERESTARTSYS
		}
	}
}

// askLeases notes that somebody waits for the leases that conflict. It returns those
// whose holders do not know yet, and when the first one expires.
func (t *lockTable) askLeases(write bool) (told []*lease, conflict bool, until int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expireLeases()
	at := int64(0)
	if s := settings.LeaseBreakTime.Get(); s > 0 {
		at = wait.Now() + s*1e9
	}
	until = wait.NoDeadline
	for _, l := range t.leases {
		if !l.conflicts(write) {
			continue
		}
		conflict, t.asked = true, true
		switch {
		case write && !l.end:
			l.end, l.endAt = true, at
			told = append(told, l)
		case !write && !l.end && !l.lower:
			l.lower, l.lowerAt = true, at
			told = append(told, l)
		}
		for _, x := range [2]int64{l.lowerAt, l.endAt} {
			if x != 0 && (until == wait.NoDeadline || x < until) {
				until = x
			}
		}
	}
	return told, conflict, until
}
