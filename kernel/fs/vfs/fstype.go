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
	// MakeFrom is Make for file systems that source names; a source of "" only asks
	// whether the options are good.
	MakeFrom func(source, data string) (*FileSystem, linux.Errno)
	// Open is Make for file systems that are on a block device, which has number
	// rdev; flags are MS_RDONLY and the like. The caller has a hold of what it
	// returns (FileSystem.Drop).
	Open func(rdev uint64, flags uint32, data string) (*FileSystem, linux.Errno)
	// Remount changes flags of a mounted file system (MS_RDONLY); may be nil.
	Remount func(fs *FileSystem, flags uint32, data string) linux.Errno
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
	if _, ok := fsTypes.m[name]; ok {
		panic("vfs: file systems of type " + name + " are registered twice")
	}
	fsTypes.m[name] = t
}

// FSTypes returns the names in order.
func FSTypes() []string {
	fsTypes.mu.Lock()
	defer fsTypes.mu.Unlock()
	var names []string
	for n := range fsTypes.m {
		//maxlive:len 64 because the kernel has that few types
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// MakeFS makes or finds a file system of a registered kind; ENODEV for another one.
func MakeFS(name, source, data string) (*FileSystem, linux.Errno) {
	fsTypes.mu.Lock()
	t, ok := fsTypes.m[name]
	fsTypes.mu.Unlock()
	if !ok {
		return nil, linux.ENODEV
	}
	if t.MakeFrom != nil {
		return t.MakeFrom(source, data)
	}
	if t.Make == nil {
		return nil, linux.ENOTBLK
	}
	return t.Make(data)
}

// OnDevice reports whether a kind of file system needs a block device.
func OnDevice(name string) bool {
	fsTypes.mu.Lock()
	defer fsTypes.mu.Unlock()
	return fsTypes.m[name].Open != nil
}

// OpenFS opens the file system on a block device; see FSType.Open.
func OpenFS(name string, rdev uint64, flags uint32, data string) (*FileSystem, linux.Errno) {
	fsTypes.mu.Lock()
	t := fsTypes.m[name]
	fsTypes.mu.Unlock()
	if t.Open == nil {
		return nil, linux.ENODEV
	}
	return t.Open(rdev, flags, data)
}

// Remount changes flags and options of a mounted file system.
func Remount(fs *FileSystem, flags uint32, data string) linux.Errno {
	fsTypes.mu.Lock()
	t := fsTypes.m[fs.Type]
	fsTypes.mu.Unlock()
	if t.Remount != nil {
		return t.Remount(fs, flags, data)
	}
	return Reconfigure(fs, data)
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
