package vfs

import (
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/hook"
	"hardtack/kernel/base/wait"
)

// Owner is who gets the signals of an O_ASYNC file (F_SETOWN_EX).
type Owner struct {
	Type int32 // F_OWNER_TID, F_OWNER_PID, F_OWNER_PGRP
	ID   int32
	Cred *creds.Cred // whose rights count
}

// Async is F_SETOWN and F_SETSIG, and the listener that sends the signals.
type Async struct {
	mu    sync.Mutex
	owner Owner       // guarded by mu
	sig   int32       // guarded by mu; 0 is SIGIO
	queue *wait.Queue // guarded by mu; where entry is while O_ASYNC is on
	entry wait.Entry  // the queue's
	fd    int32       // guarded by mu; through which O_ASYNC was set

	dirs []*dirNotify // guarded by mu

	waiting int // signals that are to be sent; guarded by ioSignals.mu
}

// SignalIO sends the signal sig (0: SIGIO, -1: SIGURG) because of ev.
var SignalIO hook.Of[func(o Owner, sig, fd int32, ev wait.Events)]

// asyncState returns the file's state, which it makes if there is none.
func (f *File) asyncState() *Async {
	if a := f.async.Load(); a != nil {
		return a
	}
	f.async.CompareAndSwap(nil, &Async{})
	return f.async.Load()
}

// Owner returns F_GETOWN_EX and F_GETSIG.
func (f *File) Owner() (Owner, int32) {
	a := f.async.Load()
	if a == nil {
		return Owner{}, 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.owner, a.sig
}

// SetOwner is F_SETOWN_EX.
func (f *File) SetOwner(o Owner) {
	a := f.asyncState()
	a.mu.Lock()
	a.owner = o
	a.mu.Unlock()
}

// ownByDefault gives the signals of a file that nobody owns to the caller's process.
func (f *File) ownByDefault(c *caller.Ctx) {
	a := f.asyncState()
	a.mu.Lock()
	if a.owner.ID == 0 {
		a.owner = Owner{Type: linux.F_OWNER_PID, ID: c.PID, Cred: c.Cred()}
	}
	a.mu.Unlock()
}

// SetSig is F_SETSIG.
func (f *File) SetSig(sig int32) {
	a := f.asyncState()
	a.mu.Lock()
	a.sig = sig
	a.mu.Unlock()
}

// SignalUrgent sends SIGURG to the file's owner, if it has one; it needs no O_ASYNC.
func (f *File) SignalUrgent() {
	if o, _ := f.Owner(); o.ID != 0 && SignalIO.Call != nil {
		SignalIO.Call(o, -1, -1, wait.Pri)
	}
}

// NotifyEvent has the signal sent: a listener must not block.
func (a *Async) NotifyEvent(_ *wait.Entry, ev wait.Events) bool {
	ioSignal{a: a, fd: -1, ev: ev}.post()
	return false
}

// SetAsync turns O_ASYNC on or off, through descriptor fd.
func (f *File) SetAsync(on bool, fd int32) linux.Errno {
	a := f.asyncState()
	q := f.Ops.Queue(f)
	a.mu.Lock()
	was := a.queue
	switch {
	case on && was == nil:
		if q == nil {
			a.mu.Unlock()
			return linux.EINVAL
		}
		a.queue, a.fd = q, fd
	case !on:
		a.queue = nil
	}
	a.mu.Unlock()
	switch {
	case on && was == nil:
		q.Add(&a.entry, a, wait.In|wait.Out|wait.Pri)
		f.UpdateFlags(linux.O_ASYNC, linux.O_ASYNC)
	case !on && was != nil:
		was.Remove(&a.entry)
		f.UpdateFlags(linux.O_ASYNC, 0)
	}
	return 0
}

// release ends the open file: the last reference is gone.
//
//maxlive:point because the last close of a file writes back what the file holds
func (f *File) release() {
	if f.Flags()&linux.O_ASYNC != 0 {
		f.SetAsync(false, -1)
	}
	if f.async.Load() != nil {
		f.dropNotify(nil)
	}
	if !f.holds {
		if i := f.lockInode.Load(); i != nil {
			f.unlock(i)
		}
		f.Ops.Release(f)
		return
	}
	i := f.Path.Dentry.Inode
	f.unlock(i)
	if watching.Load() != 0 && !f.IsPath() {
		if f.Writable() {
			notifyOpened(f.Path, linux.IN_CLOSE_WRITE)
		} else {
			notifyOpened(f.Path, linux.IN_CLOSE_NOWRITE)
		}
	}
	f.Ops.Release(f)
	if f.writer != 0 {
		i.writers.Add(-int32(f.writer))
		if f.writer > 0 {
			i.FS.writers.Add(-1)
			if f.Path.Mnt != nil {
				f.Path.Mnt.writers.Add(-1)
			}
		}
	}
	i.Put()
	f.Path.unhold()
}

// Closed drops the POSIX locks and F_NOTIFY of the process that closes a descriptor.
func (f *File) Closed(t *FDTable) {
	if f.async.Load() != nil {
		f.dropNotify(t)
	}
	if f.holds {
		f.Path.Dentry.Inode.dropLocks(t)
	} else if i := f.lockInode.Load(); i != nil {
		i.dropLocks(t)
	}
}
