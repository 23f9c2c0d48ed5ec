package sock

import (
	"slices"
	"sync"
)

// List is the sockets of a family, for its table in /proc/net. Its lock is a leaf.
type List[S comparable] struct {
	mu   sync.Mutex
	list []S // guarded by mu
}

// Add adds a socket.
func (l *List[S]) Add(s S) {
	l.mu.Lock()
	l.list = append(l.list, s)
	l.mu.Unlock()
}

// Remove takes a socket out.
func (l *List[S]) Remove(s S) {
	l.mu.Lock()
	l.list = slices.DeleteFunc(l.list, func(x S) bool { return x == s })
	l.mu.Unlock()
}

// All returns the sockets, the oldest first.
func (l *List[S]) All() []S {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}
