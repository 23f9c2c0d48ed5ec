package vfs

import (
	"sync"
	"sync/atomic"
)

// Watch is a place in an open file's list of those who want to hear that the
// last reference is gone; epoll forgets the file then. A Watch is in one list
// at most.
type Watch struct {
	next  *Watch  // guarded by the file's watches.mu; the ender's once taken out
	prev  *Watch  // guarded by the file's watches.mu
	owner Watcher // immutable while in a list
}

// Watcher is who hears of a file's end.
type Watcher interface{ Ended() }

type watches struct {
	mu   sync.Mutex
	list atomic.Pointer[Watch] // changed under mu
}

// AddWatch makes owner.Ended be called when the file is about to be released;
// the caller has a reference to the file. Ended runs without locks before
// Ops.Release; references must therefore not be dropped under a lock that Ended takes.
func (f *File) AddWatch(w *Watch, owner Watcher) {
	f.watches.mu.Lock()
	w.owner, w.next, w.prev = owner, f.watches.list.Load(), nil
	if w.next != nil {
		w.next.prev = w
	}
	f.watches.list.Store(w)
	f.watches.mu.Unlock()
}

// RemoveWatch undoes AddWatch; nothing happens if the file has ended.
func (f *File) RemoveWatch(w *Watch) {
	f.watches.mu.Lock()
	if w.prev != nil {
		w.prev.next = w.next
	} else if f.watches.list.Load() == w {
		f.watches.list.Store(w.next)
	} else {
		f.watches.mu.Unlock()
		return
	}
	if w.next != nil {
		w.next.prev = w.prev
	}
	w.next, w.prev = nil, nil
	f.watches.mu.Unlock()
}

// EachWatch calls fn with the owners of the file's watches until it says false. The
// list is locked meanwhile.
func (f *File) EachWatch(fn func(Watcher) bool) {
	f.watches.mu.Lock()
	defer f.watches.mu.Unlock()
	for w := f.watches.list.Load(); w != nil && fn(w.owner); w = w.next {
	}
}

// end tells everyone. Nobody adds any more; a late RemoveWatch finds nothing. An empty
// list stays empty, so the caller need not call.
func (l *watches) end() {
	l.mu.Lock()
	w := l.list.Load()
	l.list.Store(nil)
	for x := w; x != nil; x = x.next {
		x.prev = nil
	}
	l.mu.Unlock()
	for w != nil {
		next := w.next
		w.owner.Ended()
		w = next
	}
}
