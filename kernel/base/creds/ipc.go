package creds

import (
	"slices"

	"hardtack/abi/linux"
)

// MayIPC is Linux's ipcperms: whether the permission bits in want (0444 to read, 0222
// to change) are there for a System V object of these permissions.
func (c *Cred) MayIPC(p *linux.IPCPerm, want uint32) bool {
	want = (want>>6 | want>>3 | want) & 7
	mode := p.Mode
	switch {
	case c.EUID == p.CUID || c.EUID == p.UID:
		mode >>= 6
	case c.inEffectiveGroup(p.CGID) || c.inEffectiveGroup(p.GID):
		mode >>= 3
	}
	return want&^mode == 0 || c.Has(CapIPCOwner)
}

// inEffectiveGroup is Linux's in_egroup_p; InGroup is about files.
func (c *Cred) inEffectiveGroup(gid uint32) bool {
	return c.EGID == gid || slices.Contains(c.Groups, gid)
}
