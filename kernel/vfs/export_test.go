package vfs

import (
	"hardtack/abi/linux"
	"hardtack/kernel/kern"
)

// OpenPath opens a place found by Lookup.
func OpenPath(c *kern.Ctx, p Path, flags uint32) (*File, linux.Errno) {
	return openAt(c, p, &OpenHow{Flags: flags}, false)
}
