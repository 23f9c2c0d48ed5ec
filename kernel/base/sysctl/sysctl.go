// Package sysctl holds the files of /proc/sys: numbers and texts by name, with Linux's
// rules for reading and writing them (kernel/base/sysctl.c). The packages that obey a
// value add it; procfs shows them all. There are several hundred; they are created when
// their directory is first read (Later).
//
// Lock order: vector.mu, then what get and set functions take; tree.filling, then
// tree.mu, which is a leaf.
package sysctl

import (
	"sort"
	"strings"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/settings"
)

// File is a value under /proc/sys; immutable once added.
type File struct {
	Name  string // "net/core/somaxconn"
	Mode  uint32
	Shown uint32 // what stat shows instead of Mode; 0 for that
	Value Value
	// Note says what a value does here where that is not what Linux does; it is part
	// of docs/sysctl.md.
	Note string
}

// Value is how a file is read and written.
type Value interface {
	// Read returns at most most bytes of the text at an offset.
	Read(c *caller.Ctx, most int, off int64) ([]byte, linux.Errno)
	// Write takes bytes written at an offset and returns how many it used.
	Write(c *caller.Ctx, b []byte, off int64) (int, linux.Errno)
}

// Strict is kernel.sysctl_writes_strict: 1 ignores numbers that are not written at
// the beginning of the file.
var Strict = settings.Default(1)

// Dir is a directory. Those made stay until they are removed with all below them.
type Dir struct {
	names []string        // sorted; guarded by tree.mu
	files map[string]any  // *File or *Dir; guarded by tree.mu
	later []func() []File // make files that are not there yet; guarded by tree.mu
}

var tree struct {
	filling sync.Mutex // held while files are made: who comes meanwhile waits for them
	mu      sync.RWMutex
	root    Dir // guarded by mu
}

// Root is /proc/sys.
func Root() *Dir { return &tree.root }

// Add shows files, and the directories that they are in.
func Add(files ...File) {
	tree.mu.Lock()
	defer tree.mu.Unlock()
	for i := range files {
		f := &files[i]
		dir, name := &tree.root, f.Name
		if i := strings.LastIndexByte(name, '/'); i >= 0 {
			dir, name = mkdirs(name[:i]), name[i+1:]
		}
		dir.put(name, f)
	}
}

// AddDir shows a directory that may stay empty.
func AddDir(name string) {
	tree.mu.Lock()
	defer tree.mu.Unlock()
	mkdirs(name)
}

// Later shows a directory whose files, and those in directories below it, are made
// when somebody first looks into it.
func Later(name string, files func() []File) {
	tree.mu.Lock()
	defer tree.mu.Unlock()
	d := mkdirs(name)
	d.later = append(d.later, files)
}

// mkdirs returns a directory by its whole name and makes it if need be; called with
// tree.mu held.
func mkdirs(name string) *Dir {
	d := &tree.root
	for part := range strings.SplitSeq(name, "/") {
		next, _ := d.files[part].(*Dir)
		if next == nil {
			next = &Dir{}
			d.put(part, next)
		}
		d = next
	}
	return d
}

// fill makes the files that were to come later.
func (d *Dir) fill() {
	tree.filling.Lock()
	defer tree.filling.Unlock()
	tree.mu.RLock()
	later := d.later
	tree.mu.RUnlock()
	for _, files := range later {
		Add(files()...)
	}
	tree.mu.Lock()
	defer tree.mu.Unlock()
	d.later = d.later[len(later):]
}

// rlock takes tree.mu for reading, with all files of d made.
func (d *Dir) rlock() {
	for tree.mu.RLock(); len(d.later) > 0; tree.mu.RLock() {
		tree.mu.RUnlock()
		d.fill()
	}
}

func (d *Dir) put(name string, v any) {
	if d.files == nil {
		d.files = map[string]any{}
	}
	if d.files[name] == nil {
		i := sort.SearchStrings(d.names, name)
		d.names = append(d.names, "")
		copy(d.names[i+1:], d.names[i:])
		d.names[i] = name
	}
	d.files[name] = v
}

// Find returns the file or directory of a name, or neither.
func (d *Dir) Find(name string) (*File, *Dir) {
	d.rlock()
	defer tree.mu.RUnlock()
	switch v := d.files[name].(type) {
	case *File:
		return v, nil
	case *Dir:
		return nil, v
	}
	return nil, nil
}

// Names returns the names in order.
func (d *Dir) Names() []string {
	d.rlock()
	defer tree.mu.RUnlock()
	return append([]string(nil), d.names...)
}

// All returns every file in the order of the names.
func All() (all []*File) {
	var walk func(d *Dir)
	walk = func(d *Dir) {
		for _, name := range d.Names() {
			if f, sub := d.Find(name); f != nil {
				all = append(all, f)
			} else if sub != nil {
				walk(sub)
			}
		}
	}
	walk(Root())
	return all
}
