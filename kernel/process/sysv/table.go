// Package sysv is System V shared memory, semaphores and message queues.
//
// Segments of shared memory live until they are removed (IPC_RMID) and the last
// attachment is gone. Their pages come at the first touch. Lock order: an address
// space's locks, then shmMu (a fork counts its attachments), then the pages' own.
// Nothing here calls an address space with shmMu held.
//
// Semaphores and message queues: each kind has one lock, which guards its table and all its objects: the
// operations are short and copy no user memory. A blocked thread waits on its
// object's queue and looks again whenever something changed; one that finds its
// object removed gets EIDRM.
package sysv

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/wait"
)

// seqStep distinguishes objects that had the same place in a table, as Linux's
// IPCMNI does.
const seqStep = linux.IPCMNI

// object is what both kinds have.
type object struct {
	perm    linux.IPCPerm
	id      int32 // immutable
	ctime   int64
	removed bool
	user    *accounts.User // who is charged; immutable
	waiters wait.Queue     // told of every change
}

func (o *object) base() *object { return o }

// based is a pointer to a kind that embeds object.
type based[T any] interface {
	*T
	base() *object
}

// table is all objects of a kind.
type table[T any, P based[T]] struct {
	mu   sync.Mutex
	max  *settings.Setting // objects that there may be; immutable
	pool *accounts.Pool    // of max, which users share; immutable
	all  []P               // guarded by mu
	used int               // guarded by mu
	numbers
}

// numbers are the identifiers of a kind's objects: a place in its table, and how often
// that place was used. Guarded by the kind's lock but for wanted.
type numbers struct {
	seqs   []uint16
	free   int          // no place before it is free
	wanted atomic.Int32 // one more than the number that the next object is to have; 0 for any
}

// place finds a place for a new object in a table of n, and what its number counts
// there. One that is wanted is looked for from its place on, as on Linux.
func (x *numbers) place(n int, taken func(int) bool) (i int, seq uint16, ok bool) {
	if id := x.wanted.Swap(0) - 1; id >= 0 {
		i, seq = int(id%seqStep), uint16(id/seqStep)
		for i < n && taken(i) {
			i++
		}
		return i, seq, i < seqStep
	}
	for i = x.free; i < n && taken(i); i++ {
	}
	x.free = i
	if i < len(x.seqs) {
		seq = (x.seqs[i] + 1) & 0x7fff
	}
	return i, seq, i < seqStep
}

// take notes that a place is used.
func (x *numbers) take(i int, seq uint16) {
	if n := len(x.seqs); i >= n {
		//maxlive:len 32768 because there are at most IPCMNI
		x.seqs = append(x.seqs, make([]uint16, i+1-n)...)
		for ; n < i; n++ {
			x.seqs[n] = 1<<16 - 1 // so that its first number counts 0
		}
	}
	x.seqs[i] = seq
}

// Next is a number that somebody wants for the next object of a kind
// (kernel.msg_next_id and its kind); -1 for none.
type Next struct{ of *numbers }

// The kinds.
var (
	NextMsg = Next{&queues.numbers}
	NextSem = Next{&sems.numbers}
	NextShm = Next{&shmNumbers}
)

// Get returns the number.
func (n Next) Get() int64 { return int64(n.of.wanted.Load() - 1) }

// Set changes it.
func (n Next) Set(id int64) { n.of.wanted.Store(int32(id + 1)) }

func now() int64 { return clocks.Realtime() / 1e9 }

// resize follows a change of max.
func (t *table[T, P]) resize() { t.pool.SetMax(max(t.max.Get(), 1)) }

// SetMsgMni bounds the message queues.
func SetMsgMni(n int64) {
	settings.MsgMni.Set(n)
	queues.resize()
}

// SetSemMni bounds the semaphore sets.
func SetSemMni(n int64) {
	settings.SemMni.Set(n)
	sems.resize()
}

// get finds or makes the object of a key. check checks whether one that is there
// will do; fill makes a new one complete.
func (t *table[T, P]) get(c *caller.Ctx, key int32, flags uint32, check, fill func(P) linux.Errno) (int32, linux.Errno) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if key != linux.IPC_PRIVATE {
		for _, p := range t.all {
			if p == nil || p.base().perm.Key != key {
				continue
			}
			if flags&linux.IPC_CREAT != 0 && flags&linux.IPC_EXCL != 0 {
				return 0, linux.EEXIST
			}
			if e := check(p); e != 0 {
				return 0, e
			}
			if !c.Cred().MayIPC(&p.base().perm, flags&0o777) {
				return 0, linux.EACCES
			}
			return p.base().id, 0
		}
		if flags&linux.IPC_CREAT == 0 {
			return 0, linux.ENOENT
		}
	}
	if t.used >= int(t.max.Get()) {
		return 0, linux.ENOSPC
	}
	u := c.User()
	if !t.pool.Charge(u, 1) {
		return 0, linux.ENOSPC
	}
	i, seq, ok := t.place(len(t.all), func(i int) bool { return t.all[i] != nil })
	if !ok {
		t.pool.Release(u, 1)
		return 0, linux.ENOSPC
	}
	p := P(new(T))
	p.base().user = u
	if e := fill(p); e != 0 {
		t.pool.Release(u, 1)
		return 0, e
	}
	if n := i + 1 - len(t.all); n > 0 {
		//maxlive:len 32768 because there are at most IPCMNI
		t.all = append(t.all, make([]P, n)...)
	}
	t.take(i, seq)
	cred := c.Cred()
	o := p.base()
	o.id, o.ctime = int32(seq)*seqStep+int32(i), now()
	o.perm = linux.IPCPerm{Key: key, UID: cred.EUID, GID: cred.EGID, CUID: cred.EUID, CGID: cred.EGID,
		Mode: flags & 0o777, Seq: seq}
	t.all[i] = p
	t.used++
	return o.id, 0
}

// lookup returns an object by its number, with want checked (0: not at all). The
// caller holds mu.
func (t *table[T, P]) lookup(c *caller.Ctx, id int32, want uint32) (P, linux.Errno) {
	if id < 0 || int(id%seqStep) >= len(t.all) || t.all[id%seqStep] == nil {
		return nil, linux.EINVAL
	}
	p := t.all[id%seqStep]
	if p.base().id != id {
		return nil, linux.EIDRM
	}
	if want != 0 && !c.Cred().MayIPC(&p.base().perm, want) {
		return nil, linux.EACCES
	}
	return p, 0
}

// index returns the object in a place of the table. The caller holds mu.
func (t *table[T, P]) index(c *caller.Ctx, i int32, anyone bool) (P, linux.Errno) {
	if i < 0 || int(i) >= len(t.all) || t.all[i] == nil {
		return nil, linux.EINVAL
	}
	if !anyone && !c.Cred().MayIPC(&t.all[i].base().perm, 0o444) {
		return nil, linux.EACCES
	}
	return t.all[i], 0
}

// owned returns an object that c may change or remove. The caller holds mu.
func (t *table[T, P]) owned(c *caller.Ctx, id int32) (P, linux.Errno) {
	p, e := t.lookup(c, id, 0)
	if e != 0 {
		return nil, e
	}
	cred := c.Cred()
	if o := p.base(); cred.EUID != o.perm.UID && cred.EUID != o.perm.CUID && !cred.Has(creds.CapSysAdmin) {
		return nil, linux.EPERM
	}
	return p, 0
}

// remove takes an object out of the table and tells those who wait for it. The
// caller holds mu.
func (t *table[T, P]) remove(p P) {
	o := p.base()
	o.removed = true
	place := int(o.id % seqStep)
	t.all[place], t.free = nil, min(t.free, place)
	t.used--
	t.pool.Release(o.user, 1)
	o.waiters.Notify(wait.In)
}

// set is IPC_SET. The caller holds mu.
func (o *object) set(uid, gid, mode uint32) linux.Errno {
	if e := o.perm.Set(uid, gid, mode); e != 0 {
		return e
	}
	o.ctime = now()
	return 0
}

// usage returns how many objects there are and the highest place in use.
func (t *table[T, P]) usage() (used, highest int) {
	for i, p := range t.all {
		if p != nil {
			highest = i
		}
	}
	return t.used, highest
}

// block waits for the next change of o. The table's lock is held on entry and
// on return, and given up meanwhile; armed was called before the condition was
// looked at.
func block(c *caller.Ctx, mu *sync.Mutex, o *object, deadline int64) linux.Errno {
	mu.Unlock()
	r := c.Sleep(deadline)
	mu.Lock()
	switch {
	case o.removed:
		return linux.EIDRM
	case r == wait.Interrupted:
		return linux.EINTR
	case r == wait.TimedOut:
		return linux.EAGAIN
	}
	return 0
}
