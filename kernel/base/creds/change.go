package creds

import (
	"slices"

	"hardtack/abi/linux"
)

// The rules of credentials(7) and capabilities(7), as functions from old to new
// credentials. Keep stands for an ID that is not to be changed.

// Keep is -1: leave this ID as it is.
const Keep = ^uint32(0)

// fsCaps are the capabilities that follow the file-system user ID.
const fsCaps = 1<<CapChown | 1<<CapDacOverride | 1<<CapDacReadSearch |
	1<<CapFowner | 1<<CapFsetid | 1<<CapLinuxImmutable | 1<<CapMknod | 1<<CapMACOverride

// fixCaps applies the effect of a change of user IDs on capabilities.
func fixCaps(old, n *Cred) {
	if old.Secure(SecureNoSetuidFixup) {
		return
	}
	hadRoot := old.UID == 0 || old.EUID == 0 || old.SUID == 0
	hasRoot := n.UID == 0 || n.EUID == 0 || n.SUID == 0
	if hadRoot && !hasRoot {
		if !old.Secure(SecureKeepCaps) {
			n.Permitted, n.Effective = 0, 0
		}
		n.Ambient = 0
	}
	switch {
	case old.EUID == 0 && n.EUID != 0:
		n.Effective = 0
	case old.EUID != 0 && n.EUID == 0:
		n.Effective = n.Permitted
	}
}

// SetUID is setuid.
func SetUID(old *Cred, uid uint32) (*Cred, linux.Errno) {
	if uid == Keep {
		return nil, linux.EINVAL
	}
	n := *old
	switch {
	case old.Has(CapSetuid):
		n.UID, n.SUID = uid, uid
	case uid != old.UID && uid != old.SUID:
		return nil, linux.EPERM
	}
	n.EUID, n.FSUID = uid, uid
	fixCaps(old, &n)
	return &n, 0
}

// SetREUID is setreuid.
func SetREUID(old *Cred, uid, euid uint32) (*Cred, linux.Errno) {
	n := *old
	privileged := old.Has(CapSetuid)
	if uid != Keep {
		if uid != old.UID && uid != old.EUID && !privileged {
			return nil, linux.EPERM
		}
		n.UID = uid
	}
	if euid != Keep {
		if euid != old.UID && euid != old.EUID && euid != old.SUID && !privileged {
			return nil, linux.EPERM
		}
		n.EUID = euid
	}
	if uid != Keep || euid != Keep && euid != old.UID {
		n.SUID = n.EUID
	}
	n.FSUID = n.EUID
	fixCaps(old, &n)
	return &n, 0
}

// SetRESUID is setresuid.
func SetRESUID(old *Cred, uid, euid, suid uint32) (*Cred, linux.Errno) {
	n := *old
	for _, v := range [...]uint32{uid, euid, suid} {
		if v != Keep && v != old.UID && v != old.EUID && v != old.SUID && !old.Has(CapSetuid) {
			return nil, linux.EPERM
		}
	}
	pick(&n.UID, uid)
	pick(&n.EUID, euid)
	pick(&n.SUID, suid)
	n.FSUID = n.EUID
	fixCaps(old, &n)
	return &n, 0
}

func pick(id *uint32, v uint32) {
	if v != Keep {
		*id = v
	}
}

// SetFSUID is setfsuid: a refusal changes nothing.
func SetFSUID(old *Cred, uid uint32) *Cred {
	if uid == Keep || uid != old.UID && uid != old.EUID && uid != old.SUID && uid != old.FSUID && !old.Has(CapSetuid) {
		return old
	}
	n := *old
	n.FSUID = uid
	switch {
	case old.Secure(SecureNoSetuidFixup):
	case old.FSUID == 0 && uid != 0:
		n.Effective &^= fsCaps
	case old.FSUID != 0 && uid == 0:
		n.Effective |= fsCaps & n.Permitted
	}
	return &n
}

// SetGID is setgid.
func SetGID(old *Cred, gid uint32) (*Cred, linux.Errno) {
	if gid == Keep {
		return nil, linux.EINVAL
	}
	n := *old
	switch {
	case old.Has(CapSetgid):
		n.GID, n.SGID = gid, gid
	case gid != old.GID && gid != old.SGID:
		return nil, linux.EPERM
	}
	n.EGID, n.FSGID = gid, gid
	return &n, 0
}

// SetREGID is setregid.
func SetREGID(old *Cred, gid, egid uint32) (*Cred, linux.Errno) {
	n := *old
	privileged := old.Has(CapSetgid)
	if gid != Keep {
		if gid != old.GID && gid != old.EGID && !privileged {
			return nil, linux.EPERM
		}
		n.GID = gid
	}
	if egid != Keep {
		if egid != old.GID && egid != old.EGID && egid != old.SGID && !privileged {
			return nil, linux.EPERM
		}
		n.EGID = egid
	}
	if gid != Keep || egid != Keep && egid != old.GID {
		n.SGID = n.EGID
	}
	n.FSGID = n.EGID
	return &n, 0
}

// SetRESGID is setresgid.
func SetRESGID(old *Cred, gid, egid, sgid uint32) (*Cred, linux.Errno) {
	n := *old
	for _, v := range [...]uint32{gid, egid, sgid} {
		if v != Keep && v != old.GID && v != old.EGID && v != old.SGID && !old.Has(CapSetgid) {
			return nil, linux.EPERM
		}
	}
	pick(&n.GID, gid)
	pick(&n.EGID, egid)
	pick(&n.SGID, sgid)
	n.FSGID = n.EGID
	return &n, 0
}

// SetFSGID is setfsgid: a refusal changes nothing.
func SetFSGID(old *Cred, gid uint32) *Cred {
	if gid == Keep || gid != old.GID && gid != old.EGID && gid != old.SGID && gid != old.FSGID && !old.Has(CapSetgid) {
		return old
	}
	n := *old
	n.FSGID = gid
	return &n
}

// MaxGroups is NGROUPS_MAX.
const MaxGroups = 65536

// SetGroups is setgroups.
func SetGroups(old *Cred, groups []uint32) (*Cred, linux.Errno) {
	if !old.Has(CapSetgid) {
		return nil, linux.EPERM
	}
	if slices.Contains(groups, Keep) {
		return nil, linux.EINVAL
	}
	n := *old
	n.Groups = slices.Clone(groups) //maxlive:len 65536 because setgroups takes at most MaxGroups
	slices.Sort(n.Groups)           // as getgroups shows them
	return &n, 0
}

// SetCaps is capset.
func SetCaps(old *Cred, effective, permitted, inheritable uint64) (*Cred, linux.Errno) {
	effective &= AllCaps
	permitted &= AllCaps
	inheritable &= AllCaps
	switch {
	case inheritable&^(old.Inheritable|old.Permitted) != 0 && !old.Has(CapSetpcap),
		inheritable&^(old.Inheritable|old.Bounding) != 0,
		permitted&^old.Permitted != 0,
		effective&^permitted != 0:
		return nil, linux.EPERM
	}
	n := *old
	n.Effective, n.Permitted, n.Inheritable = effective, permitted, inheritable
	n.Ambient &= permitted & inheritable
	return &n, 0
}

// SetSecureBits is PR_SET_SECUREBITS: what is locked stays as it is.
func SetSecureBits(old *Cred, bits uint64) (*Cred, linux.Errno) {
	locked := old.SecureBits & SecureLocks
	if bits&^(SecureBits|SecureLocks) != 0 || (old.SecureBits^uint32(bits))&(locked|locked>>1) != 0 ||
		!old.Has(CapSetpcap) {
		return nil, linux.EPERM
	}
	n := *old
	n.SecureBits = uint32(bits)
	return &n, 0
}
