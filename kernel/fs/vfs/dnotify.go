package vfs

import (
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/wait"
)

// dirNotify is F_NOTIFY of an open directory: a signal when something happens in it.
// It belongs to the descriptor table through which it was set up.
type dirNotify struct {
	f     *File    // immutable
	table *FDTable // immutable
	w     *watch   // immutable

	mu     sync.Mutex
	fd     int32  // guarded by mu
	mask   uint32 // DN_*; guarded by mu
	cookie uint32 // of the last name that was moved away; guarded by mu
}

// dirEvents says which events of watches the bits of F_NOTIFY stand for. A rename
// counts as one only within a directory.
var dirEvents = []struct{ dn, in uint32 }{
	{linux.DN_ACCESS, linux.IN_ACCESS},
	{linux.DN_MODIFY, linux.IN_MODIFY},
	{linux.DN_ATTRIB, linux.IN_ATTRIB},
	{linux.DN_CREATE, linux.IN_CREATE | linux.IN_MOVED_TO},
	{linux.DN_DELETE, linux.IN_DELETE | linux.IN_MOVED_FROM},
	{linux.DN_RENAME, linux.IN_MOVED_FROM | linux.IN_MOVED_TO},
}

// NotifyDir is F_NOTIFY through descriptor fd of table; what was asked for before is
// added to.
func (f *File) NotifyDir(c *caller.Ctx, table *FDTable, fd int32, mask uint32) linux.Errno {
	if mask&^linux.DN_MULTISHOT == 0 {
		f.dropNotify(table)
		return 0
	}
	if settings.DirNotifyEnable.Get() == 0 {
		return linux.EINVAL
	}
	if f.Path.Zero() || !f.Path.Inode().IsDir() {
		return linux.ENOTDIR
	}
	f.ownByDefault(c)
	a := f.asyncState()
	a.mu.Lock()
	var d *dirNotify
	for _, x := range a.dirs {
		if x.table == table {
			d = x
		}
	}
	if d == nil {
		d = &dirNotify{f: f, table: table}
		d.w = &watch{in: d, inode: f.Path.Inode()}
		a.dirs = append(a.dirs, d)
		d.w.add()
	}
	d.mu.Lock()
	d.fd, d.mask = fd, d.mask|mask
	events := uint32(0)
	for _, x := range dirEvents {
		if d.mask&x.dn != 0 {
			events |= x.in
		}
	}
	d.w.mask.Store(events)
	d.mu.Unlock()
	a.mu.Unlock()
	return 0
}

// dropNotify ends what table has asked for of f; a nil table stands for all.
func (f *File) dropNotify(table *FDTable) {
	a := f.async.Load()
	if a == nil {
		return
	}
	a.mu.Lock()
	var gone []*dirNotify
	kept := a.dirs[:0:0]
	for _, d := range a.dirs {
		if table == nil || d.table == table {
			gone = append(gone, d)
		} else {
			kept = append(kept, d)
		}
	}
	a.dirs = kept
	a.mu.Unlock()
	for _, d := range gone {
		d.w.remove()
	}
}

// push hears of an event. The signal is sent from a goroutine: locks are held here.
func (d *dirNotify) push(e event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := uint32(0)
	for _, x := range dirEvents {
		if x.dn != linux.DN_RENAME && e.mask&x.in != 0 {
			seen |= x.dn
		}
	}
	switch {
	case e.mask&linux.IN_MOVED_FROM != 0:
		d.cookie = e.cookie
	case e.mask&linux.IN_MOVED_TO != 0 && e.cookie == d.cookie:
		seen |= linux.DN_RENAME
	}
	if d.mask&seen == 0 {
		return
	}
	fd, once := d.fd, d.mask&linux.DN_MULTISHOT == 0
	if once {
		d.mask = 0
		d.w.mask.Store(0)
	}
	go func() {
		if o, sig := d.f.Owner(); o.ID != 0 && SignalIO.Call != nil {
			SignalIO.Call(o, sig, fd, wait.Msg)
		}
	}()
}

// forget hears of the watch's end.
func (d *dirNotify) forget(*watch) {}
