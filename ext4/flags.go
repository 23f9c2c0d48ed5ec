package ext4

import "hardtack/abi/linux"

const (
	// flagsVisible are the flags of an inode that programs see, flagsSettable those that
	// they can set: the others say how the file is stored.
	flagsVisible  = 0x725fdfff
	flagsSettable = linux.FS_SYNC_FL | flagImmutable | flagAppend | linux.FS_NODUMP_FL | linux.FS_NOATIME_FL |
		linux.FS_DIRSYNC_FL | 0x3 | 0x8000 | 0x20000 // secure deletion, undeletion, no tail, top directory: without effect
)

// Flags returns an inode's flags as FS_IOC_GETFLAGS shows them.
func (in *Inode) Flags() uint32 {
	in.mu.RLock()
	defer in.mu.RUnlock()
	return in.flags() & flagsVisible
}

// SetFlags is FS_IOC_SETFLAGS; EOPNOTSUPP if other flags would change.
func (fs *FS) SetFlags(in *Inode, flags uint32) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if (flags^in.flags())&flagsVisible&^flagsSettable != 0 || flags&^flagsVisible != 0 {
		return linux.EOPNOTSUPP
	}
	h, err := fs.begin(1)
	if err != nil {
		return err
	}
	defer h.end()
	in.put32(inFlags, in.flags()&^uint32(flagsSettable)|flags&flagsSettable)
	in.touch(h.now, false)
	return in.store(h)
}

// HasXattrs reports whether the inode has room for attributes in use.
func (in *Inode) HasXattrs() bool {
	in.mu.RLock()
	defer in.mu.RUnlock()
	a := in.bodyArea()
	return in.fileACL() != 0 || a != nil && le.Uint32(a) == xaMagic
}
