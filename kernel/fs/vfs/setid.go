package vfs

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/creds"
)

const setIDBits = linux.S_ISUID | linux.S_ISGID

// fileCaps is the attribute with a program's capabilities, which a write or a change
// of owner removes as it clears the set-id bits.
const fileCaps = "security.capability"

// What is known of a file's capabilities. SetXattr goes back to capsUnknown after it has
// stored some.
const (
	capsUnknown = iota
	capsNone
	capsSought // somebody looks: capsNone follows if nothing happens meanwhile
)

// maySetGID reports whether the caller may give a file of group gid the set-group-id bit.
func maySetGID(cred *creds.Cred, gid uint32) bool {
	return cred.InGroup(gid) || cred.Has(creds.CapFsetid)
}

// withoutSetID is a mode without the set-id bits that others must not inherit. A file
// that its group may not execute keeps set-group-id, once the mark of mandatory locks,
// if the caller could set it.
func withoutSetID(cred *creds.Cred, mode, gid uint32) uint32 {
	mode &^= linux.S_ISUID
	if mode&linux.S_ISGID != 0 && (mode&0o010 != 0 || !maySetGID(cred, gid)) {
		mode &^= linux.S_ISGID
	}
	return mode
}

// Privileged reports whether a write may have to take something away: set-id bits, or
// capabilities, unless the file is known to have none.
func (i *Inode) Privileged() bool {
	return i.caps.Load() != capsNone || i.mode.Load()&setIDBits != 0
}

// RemovePrivs does what a change of content by c does to a regular file: it clears the
// set-id bits, unless c has CAP_FSETID, and removes the file's capabilities. File systems
// call it before a write, which fails if this does; Mu is held.
func (i *Inode) RemovePrivs(c *caller.Ctx) linux.Errno {
	if i.Type() != linux.S_IFREG {
		return 0
	}
	if mode := i.mode.Load(); mode&setIDBits != 0 && !c.Cred().Has(creds.CapFsetid) {
		if n := withoutSetID(c.Cred(), mode, i.GID()); n != mode {
			if e := i.Node.SetAttr(c, i, &Attr{Mask: AttrMode | AttrCtime, Mode: n & 0o7777, Ctime: clocks.Realtime()}); e != 0 {
				return e
			}
		}
	}
	return i.dropCaps()
}

// dropCaps removes a file's capabilities.
func (i *Inode) dropCaps() linux.Errno {
	if i.caps.Load() == capsNone {
		return 0
	}
	i.caps.Store(capsNone)
	e := i.removeXattr(fileCaps)
	if e == 0 || e == linux.ENODATA || e == linux.EOPNOTSUPP {
		return 0
	}
	i.caps.Store(capsUnknown)
	return e
}

// FileCaps returns the attribute with the capabilities of a program, empty without.
func (i *Inode) FileCaps() ([]byte, linux.Errno) {
	if i.caps.Load() == capsNone || i.FS.Flags&FSXattr == 0 {
		return nil, 0
	}
	i.caps.CompareAndSwap(capsUnknown, capsSought)
	v, e := i.xattr(fileCaps)
	switch e {
	case 0:
		i.caps.CompareAndSwap(capsSought, capsUnknown)
		return v, 0
	case linux.ENODATA, linux.EOPNOTSUPP:
		i.caps.CompareAndSwap(capsSought, capsNone)
		return nil, 0
	}
	return nil, e
}
