package vfs

import (
	"slices"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/wait"
)

// dirNotify is F_NOTIFY of an open directory: a signal when something happens in it.
// It belongs to the descriptor table through which it was set up.
type dirNotify struct {
	f     *File     // immutable
	table *FDTable  // immutable
	group *dirGroup // immutable

	at   int    // its place in the group's list; guarded by dirGroups.mu
	fd   int32  // guarded by dirGroups.mu
	mask uint32 // DN_*; guarded by dirGroups.mu
}

// dirGroup is every F_NOTIFY of one directory. They have one watch in common: a user may
// have as many as files, and a watch costs a copy of the directory's list of watches.
type dirGroup struct {
	w      *watch
	list   []*dirNotify // guarded by dirGroups.mu
	cookie uint32       // of the last name that was moved away; guarded by dirGroups.mu
}

// dirGroups is all groups.
var dirGroups = struct {
	mu sync.Mutex
	m  map[*Inode]*dirGroup // guarded by mu
}{m: map[*Inode]*dirGroup{}}

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
	dirGroups.mu.Lock()
	if d == nil {
		d = &dirNotify{f: f, table: table}
		d.join(f.Path.Inode())
		a.dirs = append(a.dirs, d)
	}
	d.fd, d.mask = fd, d.mask|mask
	d.group.want(d.mask)
	dirGroups.mu.Unlock()
	a.mu.Unlock()
	return 0
}

// join puts d into the group of a directory; called with dirGroups.mu held.
func (d *dirNotify) join(i *Inode) {
	g := dirGroups.m[i]
	if g == nil {
		g = &dirGroup{}
		g.w = &watch{in: g, inode: i}
		dirGroups.m[i] = g
		g.w.add()
	}
	d.group, d.at = g, len(g.list)
	g.list = append(g.list, d)
}

// leave takes d out of its group and returns the watch of the group if d was the last in
// it; called with dirGroups.mu held.
func (d *dirNotify) leave() *watch {
	g, last := d.group, len(d.group.list)-1
	g.list[d.at] = g.list[last]
	g.list[d.at].at = d.at
	g.list[last] = nil
	g.list = g.list[:last]
	if last > 0 {
		return nil
	}
	if dirGroups.m[g.w.inode] == g {
		delete(dirGroups.m, g.w.inode)
	}
	return g.w
}

// want adds the events of DN_* to those of the group; called with dirGroups.mu held.
func (g *dirGroup) want(mask uint32) {
	events := g.w.mask.Load()
	for _, x := range dirEvents {
		if mask&x.dn != 0 {
			events |= x.in
		}
	}
	g.w.mask.Store(events)
}

// dropNotify ends what table has asked for of f; a nil table stands for all.
func (f *File) dropNotify(table *FDTable) {
	a := f.async.Load()
	if a == nil {
		return
	}
	for w, more := a.takeNotify(table); more; w, more = a.takeNotify(table) {
		if w != nil {
			w.remove()
		}
	}
}

// takeNotify takes one of what table has asked for off the list, and returns the watch that
// is idle then, if any; false if there is none.
func (a *Async) takeNotify(table *FDTable) (idle *watch, found bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, d := range a.dirs {
		if table == nil || d.table == table {
			a.dirs = slices.Delete(a.dirs, i, i+1)
			dirGroups.mu.Lock()
			defer dirGroups.mu.Unlock()
			return d.leave(), true
		}
	}
	return nil, false
}

// push hears of an event.
func (g *dirGroup) push(e event) {
	dirGroups.mu.Lock()
	defer dirGroups.mu.Unlock()
	seen := uint32(0)
	for _, x := range dirEvents {
		if x.dn != linux.DN_RENAME && e.mask&x.in != 0 {
			seen |= x.dn
		}
	}
	switch {
	case e.mask&linux.IN_MOVED_FROM != 0:
		g.cookie = e.cookie
	case e.mask&linux.IN_MOVED_TO != 0 && e.cookie == g.cookie:
		seen |= linux.DN_RENAME
	}
	for _, d := range g.list {
		if d.mask&seen == 0 {
			continue
		}
		ioSignal{a: d.f.asyncState(), fd: d.fd, ev: wait.Msg, dir: true}.post()
		if d.mask&linux.DN_MULTISHOT == 0 {
			d.mask = 0
		}
	}
}

// forget hears of the watch's end.
func (g *dirGroup) forget(*watch) {
	dirGroups.mu.Lock()
	if dirGroups.m[g.w.inode] == g {
		delete(dirGroups.m, g.w.inode)
	}
	dirGroups.mu.Unlock()
}
