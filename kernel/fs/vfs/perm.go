package vfs

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
)

// Access is what permission is asked for; the bits are those of access(2).
type Access uint32

// Kinds of access.
const (
	MayExec  Access = linux.X_OK
	MayWrite Access = linux.W_OK
	MayRead  Access = linux.R_OK
)

// Permission checks owner, group and other bits, then capabilities.
func Permission(c *caller.Ctx, i *Inode, want Access) linux.Errno {
	return permission(c.Cred(), i, want)
}

func permission(cred *creds.Cred, i *Inode, want Access) linux.Errno {
	mode := i.mode.Load()
	if want&MayWrite != 0 && i.attrs.Load()&Immutable != 0 {
		return linux.EPERM
	}
	var bits uint32
	if cred.FSUID == i.uid.Load() {
		bits = mode >> 6
	} else if i.acl.Load() != nil && mode&0o070 != 0 {
		p, e := i.acls()
		switch {
		case e != 0:
			return e
		case p.of(aclAccess) == nil:
			bits = othersBits(cred, i, mode)
		case p.access.allows(cred, i, want):
			return 0
		}
	} else {
		bits = othersBits(cred, i, mode)
	}
	if uint32(want)&^bits&7 == 0 {
		return 0
	}
	if attrs := i.attrs.Load(); attrs&(Strict|Mine) != 0 {
		if attrs&Mine != 0 {
			return 0
		}
		return linux.EACCES
	}
	dir := mode&linux.S_IFMT == linux.S_IFDIR
	// Root may do everything but run a file that nobody may run.
	if cred.Has(creds.CapDacOverride) && (dir || want&MayExec == 0 || mode&0o111 != 0) {
		return 0
	}
	if cred.Has(creds.CapDacReadSearch) && (want == MayRead || dir && want&MayWrite == 0) {
		return 0
	}
	return linux.EACCES
}

// othersBits are the permission bits for somebody who does not own the file.
func othersBits(cred *creds.Cred, i *Inode, mode uint32) uint32 {
	if cred.InGroup(i.gid.Load()) {
		return mode >> 3
	}
	return mode
}

// searchable is the permission check of a path walk, with the usual case first.
func searchable(cred *creds.Cred, i *Inode) linux.Errno {
	if i.mode.Load()&0o111 == 0o111 && i.acl.Load() == nil {
		return 0
	}
	return permission(cred, i, MayExec)
}

// IsOwner reports whether the caller may do what only owners may.
func IsOwner(cred *creds.Cred, i *Inode) bool {
	return cred.FSUID == i.uid.Load() || cred.Has(creds.CapFowner)
}

// mayRemove checks whether the caller may take the name of i out of dir.
func mayRemove(cred *creds.Cred, dir, i *Inode) linux.Errno {
	if e := permission(cred, dir, MayWrite|MayExec); e != 0 {
		return e
	}
	if dir.attrs.Load()&AppendOnly != 0 || i.fixed() {
		return linux.EPERM
	}
	if dir.mode.Load()&linux.S_ISVTX != 0 && cred.FSUID != i.uid.Load() &&
		cred.FSUID != dir.uid.Load() && !cred.Has(creds.CapFowner) {
		return linux.EPERM
	}
	return 0
}

// newOwner fills in owner, group and mode of what c creates in dir: a set-gid
// directory passes on its group, and to directories the bit. Others get the bit
// with that group only from its members. This is decided before the umask, which
// could hide that the mode asks for an executable. It returns the access control lists
// that the new file gets.
func newOwner(c *caller.Ctx, dir *Inode, n *NewNode, umask uint32) (*aclPair, linux.Errno) {
	cred := c.Cred()
	n.UID, n.GID = cred.FSUID, cred.FSGID
	inherits := dir.mode.Load()&linux.S_ISGID != 0
	isDir := n.Mode&linux.S_IFMT == linux.S_IFDIR
	if inherits {
		n.GID = dir.gid.Load()
		if !isDir && n.Mode&(linux.S_ISGID|0o010) == linux.S_ISGID|0o010 && !maySetGID(cred, n.GID) {
			n.Mode &^= linux.S_ISGID
		}
	}
	lists, e := n.inheritACL(dir, umask)
	if inherits && isDir {
		n.Mode |= linux.S_ISGID
	}
	return lists, e
}
