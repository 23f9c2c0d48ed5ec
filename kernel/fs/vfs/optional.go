package vfs

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/ledger"
)

// Further things a file may do; the system calls ask with a type assertion.
type (
	// RangeSyncer writes the data of a range to the disk and waits for that; what
	// leads to it need not be durable (sync_file_range).
	RangeSyncer interface {
		SyncRange(c *caller.Ctx, f *File, off, n int64) linux.Errno
	}
	// Holder adds what lives because the file is open to a sum: the object that is Ops,
	// what belongs to it, and pages that nobody else has. Of a file without it only the
	// object counts.
	Holder interface {
		Holds(s *ledger.Sum)
	}
	// Advisor hears what fadvise and readahead say of a range; n 0 is to the end.
	Advisor interface {
		Advise(f *File, off, n int64, advice uint32) linux.Errno
	}
	// InodeRenamer is Rename that is told which inodes the names have; target is
	// nil where the new name is free.
	InodeRenamer interface {
		RenameInodes(c *caller.Ctx, from *Inode, oldName string, to *Inode, newName string, flags uint32, source, target *Inode) linux.Errno
	}
	// Asker is a node of a file system that others change (FSAsk).
	Asker interface {
		// Still reports whether a name in directory dir still leads to i, and renews i's
		// attributes.
		Still(c *caller.Ctx, dir, i *Inode, name string) (bool, linux.Errno)
		// Renew renews the attributes of an inode, whether it has a name or not.
		Renew(c *caller.Ctx, i *Inode)
	}
	// XattrNode keeps extended attributes itself (on a disk); names are whole,
	// "user.x", and permission was checked. Values must not be changed.
	XattrNode interface {
		Xattr(i *Inode, name string) ([]byte, linux.Errno)
		Xattrs(i *Inode) ([]string, linux.Errno)
		// SetXattr sets one (flags: XATTR_CREATE, XATTR_REPLACE); a nil value removes it.
		SetXattr(i *Inode, name string, value []byte, flags uint32) linux.Errno
	}
	// BlockMapper tells where a file's bytes are on its disk (FIEMAP, FIBMAP): Extents
	// calls each for the runs of blocks that have some of from … to-1, cut to whole
	// blocks, until it returns false.
	BlockMapper interface {
		Extents(f *File, from, to int64, each func(Extent) bool) linux.Errno
	}
	// Allocator is fallocate; off and n are checked for sign and overflow.
	Allocator interface {
		Allocate(c *caller.Ctx, f *File, mode uint32, off, n int64) linux.Errno
	}
)

// Extent is bytes of a file that lie together on its disk; Flags are FIEMAP_EXTENT_*.
type Extent struct {
	Logical, Physical, Length uint64
	Flags                     uint32
}
