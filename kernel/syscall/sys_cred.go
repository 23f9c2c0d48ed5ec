package syscall

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/process/proc"
)

var credCalls = []Call{
	{linux.SYS_getuid, "getuid", sysGetuid, "works"},
	{linux.SYS_geteuid, "geteuid", sysGeteuid, "works"},
	{linux.SYS_getgid, "getgid", sysGetgid, "works"},
	{linux.SYS_getegid, "getegid", sysGetegid, "works"},
	{linux.SYS_setuid, "setuid", sysSetuid, "works"},
	{linux.SYS_setgid, "setgid", sysSetgid, "works"},
	{linux.SYS_setreuid, "setreuid", sysSetreuid, "works"},
	{linux.SYS_setregid, "setregid", sysSetregid, "works"},
	{linux.SYS_setresuid, "setresuid", sysSetresuid, "works"},
	{linux.SYS_setresgid, "setresgid", sysSetresgid, "works"},
	{linux.SYS_getresuid, "getresuid", sysGetresuid, "works"},
	{linux.SYS_getresgid, "getresgid", sysGetresgid, "works"},
	{linux.SYS_setfsuid, "setfsuid", sysSetfsuid, "works"},
	{linux.SYS_setfsgid, "setfsgid", sysSetfsgid, "works"},
	{linux.SYS_getgroups, "getgroups", sysGetgroups, "works"},
	{linux.SYS_setgroups, "setgroups", sysSetgroups, "works"},
	{linux.SYS_capget, "capget", sysCapget, "works"},
	{linux.SYS_capset, "capset", sysCapset, "works"},
}

func sysGetuid(t *proc.Thread, _ *Args) (uint64, linux.Errno)  { return uint64(t.Cred().UID), 0 }
func sysGeteuid(t *proc.Thread, _ *Args) (uint64, linux.Errno) { return uint64(t.Cred().EUID), 0 }
func sysGetgid(t *proc.Thread, _ *Args) (uint64, linux.Errno)  { return uint64(t.Cred().GID), 0 }
func sysGetegid(t *proc.Thread, _ *Args) (uint64, linux.Errno) { return uint64(t.Cred().EGID), 0 }

// change installs new credentials unless they were refused.
func change(t *proc.Thread, n *creds.Cred, e linux.Errno) (uint64, linux.Errno) {
	if e == 0 {
		t.ChangeCred(n)
	}
	return 0, e
}

// sysSetuid is setuid(uid_t uid).
func sysSetuid(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	n, e := creds.SetUID(t.Cred(), a.Uint(0))
	return change(t, n, e)
}

// sysSetgid is setgid(gid_t gid).
func sysSetgid(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	n, e := creds.SetGID(t.Cred(), a.Uint(0))
	return change(t, n, e)
}

// sysSetreuid is setreuid(uid_t ruid, uid_t euid).
func sysSetreuid(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	n, e := creds.SetREUID(t.Cred(), a.Uint(0), a.Uint(1))
	return change(t, n, e)
}

// sysSetregid is setregid(gid_t rgid, gid_t egid).
func sysSetregid(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	n, e := creds.SetREGID(t.Cred(), a.Uint(0), a.Uint(1))
	return change(t, n, e)
}

// sysSetresuid is setresuid(uid_t ruid, uid_t euid, uid_t suid).
func sysSetresuid(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	n, e := creds.SetRESUID(t.Cred(), a.Uint(0), a.Uint(1), a.Uint(2))
	return change(t, n, e)
}

// sysSetresgid is setresgid(gid_t rgid, gid_t egid, gid_t sgid).
func sysSetresgid(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	n, e := creds.SetRESGID(t.Cred(), a.Uint(0), a.Uint(1), a.Uint(2))
	return change(t, n, e)
}

// writeIDs copies three IDs to three addresses.
func writeIDs(t *proc.Thread, a *Args, ids ...uint32) linux.Errno {
	for i, id := range ids {
		if e := writeU32(t, a.Addr(i), id); e != 0 {
			return e
		}
	}
	return 0
}

// sysGetresuid is getresuid(uid_t *ruid, uid_t *euid, uid_t *suid).
func sysGetresuid(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	c := t.Cred()
	return 0, writeIDs(t, a, c.UID, c.EUID, c.SUID)
}

// sysGetresgid is getresgid(gid_t *rgid, gid_t *egid, gid_t *sgid).
func sysGetresgid(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	c := t.Cred()
	return 0, writeIDs(t, a, c.GID, c.EGID, c.SGID)
}

// sysSetfsuid is setfsuid(uid_t fsuid); it returns the old one.
func sysSetfsuid(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	old := t.Cred()
	if n := creds.SetFSUID(old, a.Uint(0)); n != old {
		t.ChangeCred(n)
	}
	return uint64(old.FSUID), 0
}

// sysSetfsgid is setfsgid(gid_t fsgid); it returns the old one.
func sysSetfsgid(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	old := t.Cred()
	if n := creds.SetFSGID(old, a.Uint(0)); n != old {
		t.ChangeCred(n)
	}
	return uint64(old.FSGID), 0
}

// sysGetgroups is getgroups(int size, gid_t list[]).
func sysGetgroups(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	groups, size := t.Cred().Groups, a.Int(0)
	switch {
	case size < 0:
		return 0, linux.EINVAL
	case size == 0:
		return uint64(len(groups)), 0
	case int(size) < len(groups):
		return 0, linux.EINVAL
	}
	b := make([]byte, 0, 4*len(groups)) //maxlive:len 262144 because a process has at most MaxGroups
	for _, g := range groups {
		b = binary.LittleEndian.AppendUint32(b, g) //maxlive:same because b has room for all
	}
	if _, e := t.Mem.CopyOut(a.Addr(1), b); e != 0 {
		return 0, e
	}
	return uint64(len(groups)), 0
}

// sysSetgroups is setgroups(size_t size, const gid_t *list).
func sysSetgroups(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if !t.Cred().Has(creds.CapSetgid) {
		return 0, linux.EPERM
	}
	n := a.Int(0)
	if n < 0 || n > creds.MaxGroups {
		return 0, linux.EINVAL
	}
	//maxlive:len 262144 because a process has at most MaxGroups
	b := make([]byte, 4*n)
	if _, e := t.Mem.CopyIn(b, a.Addr(1)); e != 0 {
		return 0, e
	}
	groups := make([]uint32, n)
	for i := range groups {
		groups[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	c, e := creds.SetGroups(t.Cred(), groups)
	return change(t, c, e)
}

// Versions of struct __user_cap_header.
const (
	capVersion1 = 0x19980330
	capVersion2 = 0x20071026
	capVersion3 = 0x20080522
)

// capHeader reads the header of capget and capset and returns how many
// 32-bit halves the data has; 0 for an unknown version, for which ours is
// written back.
func capHeader(t *proc.Thread, a *Args) (halves int, pid int32, e linux.Errno) {
	b, e := readUser(t, a.Addr(0), 8)
	if e != 0 {
		return 0, 0, e
	}
	pid = int32(binary.LittleEndian.Uint32(b[4:]))
	switch binary.LittleEndian.Uint32(b) {
	case capVersion1:
		return 1, pid, 0
	case capVersion2, capVersion3:
		return 2, pid, 0
	}
	return 0, pid, writeU32(t, a.Addr(0), capVersion3)
}

// sysCapget is capget(cap_user_header_t header, cap_user_data_t data).
func sysCapget(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	halves, pid, e := capHeader(t, a)
	if e != 0 {
		return 0, e
	}
	if halves == 0 {
		if a.Addr(1) == 0 {
			return 0, 0 // asking for the version is no error
		}
		return 0, linux.EINVAL
	}
	if a.Addr(1) == 0 {
		return 0, 0
	}
	if pid < 0 {
		return 0, linux.EINVAL
	}
	c := t.Cred()
	if pid != 0 && pid != t.TID {
		u := proc.Task(pid)
		if u == nil {
			return 0, linux.ESRCH
		}
		c = u.Cred()
	}
	b := t.Scratch[:12*halves]
	for i := range halves {
		for j, set := range [...]uint64{c.Effective, c.Permitted, c.Inheritable} {
			binary.LittleEndian.PutUint32(b[12*i+4*j:], uint32(set>>(32*i)))
		}
	}
	_, e = t.Mem.CopyOut(a.Addr(1), b)
	return 0, e
}

// sysCapset is capset(cap_user_header_t header, const cap_user_data_t data).
func sysCapset(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	halves, pid, e := capHeader(t, a)
	if e != 0 {
		return 0, e
	}
	if halves == 0 {
		return 0, linux.EINVAL
	}
	if pid != 0 && pid != t.TID {
		return 0, linux.EPERM
	}
	b, e := readUser(t, a.Addr(1), 12*halves)
	if e != 0 {
		return 0, e
	}
	var sets [3]uint64
	for i := range halves {
		for j := range sets {
			sets[j] |= uint64(binary.LittleEndian.Uint32(b[12*i+4*j:])) << (32 * i)
		}
	}
	c, e := creds.SetCaps(t.Cred(), sets[0], sets[1], sets[2])
	return change(t, c, e)
}
