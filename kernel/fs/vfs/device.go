package vfs

import (
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/hook"
)

// CharOpener opens a character device; flags are those of open.
type CharOpener func(c *caller.Ctx, flags uint32) (Ops, linux.Errno)

type charKey struct{ major, minor uint32 }

// anyMinor registers a whole major number.
const anyMinor = ^uint32(0)

var devices struct {
	mu   sync.RWMutex
	char map[charKey]func(c *caller.Ctx, i *Inode, flags uint32) (Ops, linux.Errno) // guarded by mu
	name map[uint32]string                                                          // of majors; guarded by mu
}

// RegisterChar announces a character device.
func RegisterChar(major, minor uint32, open CharOpener) {
	registerChar(major, minor, func(c *caller.Ctx, _ *Inode, flags uint32) (Ops, linux.Errno) { return open(c, flags) })
}

// RegisterCharMajor announces all minors of a major number; open learns which
// from i.Rdev (ptys).
func RegisterCharMajor(major uint32, open func(c *caller.Ctx, i *Inode, flags uint32) (Ops, linux.Errno)) {
	registerChar(major, anyMinor, open)
}

func registerChar(major, minor uint32, open func(*caller.Ctx, *Inode, uint32) (Ops, linux.Errno)) {
	devices.mu.Lock()
	defer devices.mu.Unlock()
	if devices.char == nil {
		devices.char = map[charKey]func(*caller.Ctx, *Inode, uint32) (Ops, linux.Errno){}
	}
	k := charKey{major, minor}
	if devices.char[k] != nil {
		panic("vfs: a character device is registered twice")
	}
	devices.char[k] = open
}

// NameMajor gives a major number the name that /proc/devices shows.
func NameMajor(major uint32, name string) {
	devices.mu.Lock()
	defer devices.mu.Unlock()
	if devices.name == nil {
		devices.name = map[uint32]string{}
	}
	devices.name[major] = name
}

// EachMajor lists the named majors in no order.
func EachMajor(fn func(major uint32, name string)) {
	devices.mu.RLock()
	defer devices.mu.RUnlock()
	for m, n := range devices.name {
		fn(m, n)
	}
}

func openDevice(c *caller.Ctx, i *Inode, flags uint32) (Ops, linux.Errno) {
	if i.Type() == linux.S_IFBLK {
		if OpenBlock.Call == nil {
			return nil, linux.ENXIO
		}
		return OpenBlock.Call(c, i, flags)
	}
	major, minor := linux.Major(i.Rdev), linux.Minor(i.Rdev)
	devices.mu.RLock()
	open := devices.char[charKey{major, minor}]
	if open == nil {
		open = devices.char[charKey{major, anyMinor}]
	}
	devices.mu.RUnlock()
	if open == nil {
		return nil, linux.ENXIO
	}
	return open(c, i, flags)
}

// OpenBlock opens a block device; the block layer provides it. i.Rdev says which.
var OpenBlock hook.Of[func(c *caller.Ctx, i *Inode, flags uint32) (Ops, linux.Errno)]

var syncs struct {
	mu   sync.Mutex
	list []func() // guarded by mu
}

// RegisterSync names a function that writes back what is not on its disk yet
// and waits for that; sync(2) calls all of them.
func RegisterSync(f func()) {
	syncs.mu.Lock()
	syncs.list = append(syncs.list, f)
	syncs.mu.Unlock()
}

// SyncAll is sync(2): what was registered last is asked first, since file
// systems come after the disks that they are on.
func SyncAll() {
	syncs.mu.Lock()
	list := syncs.list[:len(syncs.list):len(syncs.list)]
	syncs.mu.Unlock()
	for i := len(list) - 1; i >= 0; i-- {
		list[i]()
	}
}

// OpenFIFO opens a named pipe; the pipe package provides it. The pipe itself is
// kept in the inode's Private slot.
var OpenFIFO hook.Of[func(c *caller.Ctx, i *Inode, flags uint32) (Ops, linux.Errno)]
