package vfs

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
)

// OpenPath opens a place found by Lookup.
func OpenPath(c *caller.Ctx, p Path, flags uint32) (*File, linux.Errno) {
	return openAt(c, p, &OpenHow{Flags: flags}, false)
}
