package vfs

import (
	"sort"
	"sync"

	"hardtack/abi/linux"
)

// FSType is a kind of file system that mount(2) knows.
type FSType struct {
	// Make makes or finds one; data are the mount options.
	Make func(data string) (*FileSystem, linux.Errno)
	// Reconfigure applies the options of a remount; may be nil.
	Reconfigure func(fs *FileSystem, data string) linux.Errno
}

var fsTypes struct {
	mu sync.Mutex
	m  map[string]FSType // guarded by mu
}

// RegisterFS announces a kind of file system.
func RegisterFS(name string, t FSType) {
	fsTypes.mu.Lock()
	defer fsTypes.mu.Unlock()
	if fsTypes.m == nil {
		fsTypes.m = map[string]FSType{}
	}
	fsTypes.m[name] = t
}

// FSTypes returns the names in order.
func FSTypes() []string {
	fsTypes.mu.Lock()
	defer fsTypes.mu.Unlock()
	var names []string
	for n := range fsTypes.m {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// MakeFS makes a file system of a registered kind; ENODEV for another one.
func MakeFS(name, data string) (*FileSystem, linux.Errno) {
	fsTypes.mu.Lock()
	t, ok := fsTypes.m[name]
	fsTypes.mu.Unlock()
	if !ok {
		return nil, linux.ENODEV
	}
	return t.Make(data)
}

// Reconfigure applies new options to a file system.
func Reconfigure(fs *FileSystem, data string) linux.Errno {
	fsTypes.mu.Lock()
	t := fsTypes.m[fs.Type]
	fsTypes.mu.Unlock()
	if t.Reconfigure == nil || data == "" {
		return 0
	}
	return t.Reconfigure(fs, data)
}
