package vfs

import "sync"

// Watch is a place in an open file's list of those who want to hear that the
// last reference is gone; epoll forgets the file then. A Watch is in one list
// at most.
type Watch struct {
	next  *Watch  // guarded by the file's watches.mu; the ender's once taken out
	owner Watcher // immutable while in a list
}

// Watcher is who hears of a file's end.
type Watcher interface{ Ended() }

type watches struct {
	mu   sync.Mutex
	list *Watch // guarded by mu
}

// AddWatch makes owner.Ended be called when the file is about to be released;
// the caller has a reference to the file. Ended runs without locks before
// Ops.Release; references must therefore not be dropped under a lock that Ended takes.
func (f *File) AddWatch(w *Watch, owner Watcher) {
	f.watches.mu.Lock()
	w.owner, w.next = owner, f.watches.list
	f.watches.list = w
	f.watches.mu.Unlock()
}

// RemoveWatch undoes AddWatch; nothing happens if the file has ended.
func (f *File) RemoveWatch(w *Watch) {
	f.watches.mu.Lock()
	for p := &f.watches.list; *p != nil; p = &(*p).next {
		if *p == w {
			*p, w.next = w.next, nil
			break
		}
	}
	f.watches.mu.Unlock()
}

// end tells everyone. Nobody adds any more; a late RemoveWatch finds nothing.
func (l *watches) end() {
	l.mu.Lock()
	w := l.list
	l.list = nil
	l.mu.Unlock()
	for w != nil {
		next := w.next
		w.owner.Ended()
		w = next
	}
}
