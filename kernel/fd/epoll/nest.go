package epoll

import (
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/fs/vfs"
)

// nesting is held by adds that make or lengthen chains of instances, from the check
// to the end: two of them at a time could close a loop, or make too many paths.
var nesting sync.Mutex

// nestMu guards who contains whom.
var nestMu sync.Mutex

// maxNests is how many instances may lie inside each other (EP_MAX_NESTS).
const maxNests = 4

// pathLimits is how many paths of each length may lead from a file to instances that
// nobody watches (path_limits): an event of the file goes all of them. Of paths
// through one instance there may be any number.
var pathLimits = [maxNests + 1]int{1000, 500, 100, 50, 10}

// nest records that outer watches inner: ELOOP if that made a loop or too deep a
// chain. Called with nesting held.
func nest(outer, inner *Instance) linux.Errno {
	nestMu.Lock()
	defer nestMu.Unlock()
	down := walk{target: outer, next: func(ep *Instance) map[*Instance]int { return ep.inner }, seen: map[*Instance]int{}}
	up := walk{target: inner, next: func(ep *Instance) map[*Instance]int { return ep.outer }, seen: map[*Instance]int{}}
	if down.depth(inner)+1+up.depth(outer) > maxNests {
		return linux.ELOOP
	}
	if outer.inner == nil {
		outer.inner = make(map[*Instance]int)
	}
	if inner.outer == nil {
		inner.outer = make(map[*Instance]int)
	}
	outer.inner[inner]++
	inner.outer[outer]++
	inner.nested.Add(1)
	return 0
}

// unnest undoes nest.
func unnest(outer, inner *Instance) {
	nestMu.Lock()
	defer nestMu.Unlock()
	//maxlive:same because nest has put it there
	if outer.inner[inner]--; outer.inner[inner] <= 0 {
		delete(outer.inner, inner)
	}
	//maxlive:same because nest has put it there
	if inner.outer[outer]--; inner.outer[outer] <= 0 {
		delete(inner.outer, outer)
	}
	inner.nested.Add(-1)
}

// walk measures chains of instances; it looks at each instance once.
type walk struct {
	target *Instance
	next   func(*Instance) map[*Instance]int
	seen   map[*Instance]int // the longest chain from each
}

// depth returns the longest chain from ep, more than maxNests if it meets the
// target. Called with nestMu held.
func (w *walk) depth(ep *Instance) int {
	if ep == w.target {
		return maxNests + 1
	}
	if n, ok := w.seen[ep]; ok {
		return n
	}
	n := 0
	for x := range w.next(ep) {
		if n = max(n, 1+w.depth(x)); n > maxNests {
			break
		}
	}
	w.seen[ep] = n
	return n
}

// manyPaths reports whether too many paths lead up from the files that k brings
// under ep: k's own file, or all that its instance watches. The way from inner to ep
// is recorded already, that of another file is not. Called with nesting held.
func (ep *Instance) manyPaths(k key, inner *Instance) bool {
	if inner == nil {
		return overLimit(k.file, ep)
	}
	for f := range inner.files() {
		if overLimit(f, nil) {
			return true
		}
	}
	return false
}

// files returns what the instance and those inside it watch, but for instances.
func (ep *Instance) files() map[*vfs.File]struct{} {
	files := map[*vfs.File]struct{}{}
	seen := map[*Instance]bool{ep: true}
	for todo := []*Instance{ep}; len(todo) > 0; {
		x := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		x.mu.Lock()
		for it := range x.items.all() {
			if inner := Of(it.file); inner == nil {
				files[it.file] = struct{}{}
			} else if !seen[inner] {
				seen[inner] = true
				todo = append(todo, inner)
			}
		}
		x.mu.Unlock()
	}
	return files
}

// overLimit counts the paths from a file, and from one more instance that is to
// watch it.
func overLimit(f *vfs.File, more *Instance) bool {
	nestMu.Lock()
	defer nestMu.Unlock()
	var p paths
	ok := more == nil || p.up(more, 0)
	f.EachWatch(func(w vfs.Watcher) bool {
		if it, is := w.(*item); is {
			ok = ok && p.up(it.ep, 0)
		}
		return ok
	})
	return !ok
}

// paths counts paths by the instances that they go through besides the first.
type paths [maxNests + 1]int

// up counts the paths that reach ep through so many others; false when there are
// too many. Called with nestMu held.
func (p *paths) up(ep *Instance, through int) bool {
	if len(ep.outer) == 0 {
		p[through]++
		return through == 0 || p[through] <= pathLimits[through]
	}
	if through == maxNests {
		return false
	}
	for x, n := range ep.outer {
		for range n {
			if !p.up(x, through+1) {
				return false
			}
		}
	}
	return true
}
