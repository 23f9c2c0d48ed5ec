package vfs

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
)

// watching counts the inotify watches of the system: everything is skipped
// while there is none.
var watching atomic.Int32

// watchMu serialises changes of inodes' watch lists. Lock order: it is taken
// under directories' Mu, and before Inotify.mu.
var watchMu sync.Mutex

var moveCookie atomic.Uint32

func nextCookie() uint32 { return moveCookie.Add(1) }

// watch is one inotify watch of one inode.
type watch struct {
	in    *Inotify      // immutable
	wd    int32         // immutable
	inode *Inode        // immutable
	mask  atomic.Uint32 // IN_* that are wanted, and IN_ONESHOT, IN_EXCL_UNLINK
}

// tell sends an event to an inode's watches.
func (i *Inode) tell(mask uint32, name string, cookie uint32) {
	list := i.watches.Load()
	if list == nil {
		return
	}
	for _, w := range *list {
		want := w.mask.Load()
		if want&mask&(linux.IN_ALL_EVENTS|linux.IN_UNMOUNT) == 0 {
			continue
		}
		w.in.push(event{w.wd, mask, cookie, name})
		if want&linux.IN_ONESHOT != 0 {
			w.remove()
		}
	}
}

// remove ends a watch: IN_IGNORED is its last event.
func (w *watch) remove() {
	watchMu.Lock()
	old := w.inode.watches.Load()
	found := false
	if old != nil {
		kept := make([]*watch, 0, len(*old))
		for _, x := range *old {
			if x != w {
				kept = append(kept, x)
			} else {
				found = true
			}
		}
		if len(kept) == 0 {
			w.inode.watches.Store(nil)
		} else {
			w.inode.watches.Store(&kept)
		}
	}
	watchMu.Unlock()
	if found {
		watching.Add(-1)
		inotifyWatches.Release(w.in.user, 1)
		w.in.forget(w)
	}
}

func isDirEvent(i *Inode) uint32 {
	if i.IsDir() {
		return linux.IN_ISDIR
	}
	return 0
}

// notifyName tells a directory's watches of something that happened to a name.
func notifyName(dir *Inode, mask uint32, name string, cookie uint32) {
	if watching.Load() != 0 {
		dir.tell(mask, name, cookie)
	}
}

// notifyInode tells the watches of the file itself.
func notifyInode(i *Inode, mask uint32) {
	if watching.Load() == 0 {
		return
	}
	if mask != linux.IN_MOVE_SELF { // as on Linux
		mask |= isDirEvent(i)
	}
	i.tell(mask, "", 0)
}

// notifyPath tells the watches of a file and those of the directory it was
// found in.
func notifyPath(p Path, mask uint32) {
	if watching.Load() == 0 {
		return
	}
	d := p.Dentry
	mask |= isDirEvent(d.Inode)
	if at := d.at.Load(); at.parent != nil && !d.gone.Load() {
		at.parent.Inode.tell(mask, at.name, 0)
	}
	d.Inode.tell(mask, "", 0)
}

// notifyGone says that the last name is gone, and ends the watches.
func notifyGone(i *Inode) {
	if watching.Load() == 0 {
		return
	}
	list := i.watches.Load()
	if list == nil {
		return
	}
	i.tell(linux.IN_DELETE_SELF, "", 0)
	for _, w := range *list {
		w.remove()
	}
}

// NotifyRead tells of a read of n bytes.
func (f *File) NotifyRead(n int) {
	if n > 0 && watching.Load() != 0 && f.holds {
		notifyPath(f.Path, linux.IN_ACCESS)
	}
}

// NotifyWrite tells of a write of n bytes.
func (f *File) NotifyWrite(n int) {
	if n > 0 && watching.Load() != 0 && f.holds {
		notifyPath(f.Path, linux.IN_MODIFY)
	}
}
