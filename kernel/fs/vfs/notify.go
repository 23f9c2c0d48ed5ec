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

// watched is the first of all watches, for the end of a file system; guarded by watchMu.
var watched *watch

var moveCookie atomic.Uint32

func nextCookie() uint32 { return moveCookie.Add(1) }

// listener hears of the events of a watch: an inotify instance, or F_NOTIFY.
type listener interface {
	push(e event)
	// forget is called once the watch is removed.
	forget(w *watch)
}

// watch is one watch of one inode.
type watch struct {
	in    listener      // immutable
	wd    int32         // immutable
	inode *Inode        // immutable
	mask  atomic.Uint32 // IN_* that are wanted, and IN_ONESHOT, IN_EXCL_UNLINK

	next, prev *watch // of watched; guarded by watchMu
}

// tell sends an event to an inode's watches.
func (i *Inode) tell(mask uint32, name string, cookie uint32) { i.tellBut(0, mask, name, cookie) }

// tellBut is tell without the watches that have one of the flags but.
func (i *Inode) tellBut(but, mask uint32, name string, cookie uint32) {
	list := i.watches.Load()
	if list == nil {
		return
	}
	for _, w := range *list {
		want := w.mask.Load()
		if want&mask&(linux.IN_ALL_EVENTS|linux.IN_UNMOUNT) == 0 || want&but != 0 {
			continue
		}
		w.in.push(event{w.wd, mask, cookie, name})
		if want&linux.IN_ONESHOT != 0 {
			w.remove()
		}
	}
}

// add puts a new watch into its inode's list.
func (w *watch) add() {
	watchMu.Lock()
	defer watchMu.Unlock()
	w.addLocked()
}

// addLocked is add with watchMu held.
func (w *watch) addLocked() {
	var list []*watch
	if l := w.inode.watches.Load(); l != nil {
		list = *l
	}
	list = append(list[:len(list):len(list)], w)
	w.inode.watches.Store(&list)
	if w.next = watched; watched != nil {
		watched.prev = w
	}
	watched = w
	watching.Add(1)
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
				w.unlink()
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
		w.in.forget(w)
	}
}

// unlink takes a watch out of watched; called with watchMu held.
func (w *watch) unlink() {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		watched = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	}
	w.next, w.prev = nil, nil
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
// found in of a change of its attributes.
func notifyPath(p Path, mask uint32) {
	if watching.Load() != 0 {
		p.notify(mask, 0)
	}
}

// notifyOpened is notifyPath for what is done through an open file. Watches may want
// to hear nothing of that once the name is gone (IN_EXCL_UNLINK), and what goes through
// a device, a FIFO or a socket is none of its directory's business.
func notifyOpened(p Path, mask uint32) {
	if watching.Load() == 0 {
		return
	}
	but := uint32(0)
	if p.Dentry.gone.Load() {
		but = linux.IN_EXCL_UNLINK
	}
	p.notify(mask, but)
}

func (p Path) notify(mask, but uint32) {
	i := p.Dentry.Inode
	mask |= isDirEvent(i)
	special := mask&(linux.IN_ACCESS|linux.IN_MODIFY) != 0 && i.Type() != linux.S_IFREG && !i.IsDir()
	if at := p.Dentry.at.Load(); at.parent != nil && !special {
		at.parent.Inode.tellBut(but, mask, at.name, 0)
	}
	i.tellBut(but, mask, "", 0)
}

// notifyEnd sends the last event of an inode, and ends the watches.
func notifyEnd(i *Inode, mask uint32) {
	list := i.watches.Load()
	if watching.Load() == 0 || list == nil {
		return
	}
	i.tell(mask, "", 0)
	for _, w := range *list {
		w.remove()
	}
}

// notifyUnmount tells the watches of all files of a file system that it ends.
func notifyUnmount(fs *FileSystem) {
	if watching.Load() == 0 {
		return
	}
	var inodes []*Inode
	watchMu.Lock()
	for w := watched; w != nil; w = w.next {
		if w.inode.FS == fs {
			inodes = append(inodes, w.inode)
		}
	}
	watchMu.Unlock()
	for _, i := range inodes {
		notifyEnd(i, linux.IN_UNMOUNT)
	}
}

// NotifyRead tells of a read of n bytes.
func (f *File) NotifyRead(n int) {
	if n > 0 && watching.Load() != 0 && f.holds {
		notifyOpened(f.Path, linux.IN_ACCESS)
	}
}

// NotifyWrite tells of a write of n bytes.
func (f *File) NotifyWrite(n int) {
	if n > 0 && watching.Load() != 0 && f.holds {
		notifyOpened(f.Path, linux.IN_MODIFY)
	}
}
