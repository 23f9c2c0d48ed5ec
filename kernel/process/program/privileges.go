package program

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/fs/vfs"
)

// Personality bits that exec looks at.
const (
	addrNoRandomize  = 0x0040000
	mmapPageZero     = 0x0100000
	addrCompatLayout = 0x0200000
	readImpliesExec  = 0x0400000

	// clearOnSetID are those that a program which is more than its caller does not
	// inherit (PER_CLEAR_ON_SETID).
	clearOnSetID = addrNoRandomize | mmapPageZero | addrCompatLayout | readImpliesExec
)

// Privileges are what a program runs with.
type Privileges struct {
	Cred   *creds.Cred
	Secure bool   // AT_SECURE: it must be careful with its environment
	Clear  uint32 // personality bits that it does not inherit
}

// execCred returns the privileges of a program started from f; shared says that
// another process shares directories with the caller.
func execCred(old *creds.Cred, f *vfs.File, shared bool) (Privileges, linux.Errno) {
	if f.Path.Zero() || f.Path.Mnt != nil && f.Path.Mnt.Flags()&linux.MS_NOSUID != 0 {
		return credFor(old, 0, 0, 0, fileCaps{}, shared), 0
	}
	mode, uid, gid := f.Path.Inode().SetIDs()
	attr, e := f.Path.Inode().FileCaps()
	if e != 0 {
		return Privileges{}, e
	}
	caps, e := parseCaps(attr)
	if e == 0 && caps.effective && caps.permitted&^(old.Bounding|old.Inheritable&caps.inheritable) != 0 {
		e = linux.EPERM // a program that cannot know that it lacks some is not started
	}
	return credFor(old, mode, uid, gid, caps, shared), e
}

// fileCaps are the capabilities of a program.
type fileCaps struct {
	present                bool
	effective              bool // what is permitted is effective at once
	permitted, inheritable uint64
}

// parseCaps reads the attribute security.capability: two revisions of Linux's struct
// vfs_cap_data, and one for user name spaces with the uid of their root.
func parseCaps(b []byte) (c fileCaps, e linux.Errno) {
	if len(b) == 0 {
		return c, 0
	}
	if len(b) < 4 {
		return c, linux.EINVAL
	}
	le := binary.LittleEndian
	magic, words := le.Uint32(b), 2
	switch {
	case magic>>24 == 1 && len(b) == 12:
		words = 1
	case magic>>24 == 2 && len(b) == 20:
	case magic>>24 == 3 && len(b) == 24:
		if le.Uint32(b[20:]) != 0 {
			return c, 0 // of a name space that is not here
		}
	default:
		return c, linux.EINVAL
	}
	for i := range words {
		c.permitted |= uint64(le.Uint32(b[4+8*i:])) << (32 * i)
		c.inheritable |= uint64(le.Uint32(b[8+8*i:])) << (32 * i)
	}
	c.permitted &= creds.AllCaps
	c.inheritable &= creds.AllCaps
	c.present, c.effective = true, magic&1 != 0
	return c, 0
}

// credFor is execCred for a file with a mode, an owner and capabilities (Linux's
// bprm_fill_uid and cap_bprm_creds_from_file).
func credFor(old *creds.Cred, mode, uid, gid uint32, caps fileCaps, shared bool) Privileges {
	n := *old
	n.SecureBits &^= creds.SecureKeepCaps
	x := Privileges{Cred: &n, Clear: readImpliesExec} // no 64-bit program has that by itself
	if !old.NoNewPrivs {
		if mode&linux.S_ISUID != 0 {
			n.EUID = uid
			x.Clear = clearOnSetID
		}
		if mode&(linux.S_ISGID|0o010) == linux.S_ISGID|0o010 {
			n.EGID = gid
			x.Clear = clearOnSetID
		}
	}
	setID := n.EUID != old.UID || n.EGID != old.GID
	n.Permitted = n.Bounding&caps.permitted | n.Inheritable&caps.inheritable
	root := !old.Secure(creds.SecureNoRoot)
	if caps.present && n.UID != 0 && n.EUID == 0 {
		root = false // a set-user-id program of root gets what its capabilities say
	}
	if root && (n.UID == 0 || n.EUID == 0) {
		n.Permitted = n.Inheritable | n.Bounding
	}
	effective := caps.effective || root && n.EUID == 0
	gained := n.Permitted&^old.Permitted != 0
	if gained {
		x.Clear = clearOnSetID
	}
	if (setID || gained) && (shared || old.NoNewPrivs) {
		// It gets no more than its caller had, and may get less.
		if !old.Has(creds.CapSetuid) || old.NoNewPrivs {
			n.EUID, n.EGID = n.UID, n.GID
		}
		n.Permitted &= old.Permitted
	}
	n.SUID, n.FSUID = n.EUID, n.EUID
	n.SGID, n.FSGID = n.EGID, n.EGID
	if setID || caps.present {
		n.Ambient = 0
	}
	n.Permitted |= n.Ambient
	n.Effective = n.Ambient
	if effective {
		n.Effective = n.Permitted
	}
	x.Secure = setID || n.UID != 0 && (effective || n.Permitted&^n.Ambient != 0)
	return x
}
