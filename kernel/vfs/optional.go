package vfs

import (
	"hardtack/abi/linux"
	"hardtack/kernel/kern"
)

// Further things a file may do; the system calls ask with a type assertion.
type (
	// Allocator is fallocate; off and n are checked for sign and overflow.
	Allocator interface {
		Allocate(c *kern.Ctx, f *File, mode uint32, off, n int64) linux.Errno
	}
)
