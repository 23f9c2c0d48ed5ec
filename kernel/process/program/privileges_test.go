package program

import (
	"testing"

	"hardtack/kernel/base/creds"
)

func user(uid uint32) *creds.Cred {
	return &creds.Cred{UID: uid, EUID: uid, SUID: uid, FSUID: uid, GID: uid, EGID: uid, SGID: uid, FSGID: uid, Bounding: creds.AllCaps}
}

func TestExecCred(t *testing.T) {
	const suid, sgid = 0o4755, 0o2755
	for name, x := range map[string]struct {
		old              *creds.Cred
		mode             uint32
		euid, egid, suid uint32
		caps             uint64
		secure           bool
	}{
		"user":              {user(1000), 0o755, 1000, 1000, 1000, 0, false},
		"set-uid root":      {user(1000), suid, 0, 1000, 0, creds.AllCaps, true},
		"set-gid root":      {user(1000), sgid, 1000, 0, 1000, 0, true},
		"set-gid, no exec":  {user(1000), 0o2745, 1000, 1000, 1000, 0, false},
		"root":              {&creds.RootCred, 0o755, 0, 0, 0, creds.AllCaps, false},
		"no new privileges": {&creds.Cred{UID: 5, EUID: 5, SUID: 5, GID: 5, EGID: 5, NoNewPrivs: true}, suid, 5, 5, 5, 0, false},
	} {
		got := credFor(x.old, x.mode, 0, 0, fileCaps{}, false)
		n, secure := got.Cred, got.Secure
		if n.EUID != x.euid || n.EGID != x.egid || n.SUID != x.suid || n.Effective != x.caps || secure != x.secure || n.UID != x.old.UID {
			t.Errorf("%s: %+v %v", name, n, secure)
		}
	}
}

// What Linux's cap_bprm_creds_from_file does to a caller that somebody shares
// directories with, and to one with capabilities.
func TestExecCredRestricted(t *testing.T) {
	const kill = 1 << creds.CapKill
	setuid := user(1000)
	setuid.Permitted, setuid.Effective = 1<<creds.CapSetuid, 1<<creds.CapSetuid
	ambient := user(1000)
	ambient.Permitted, ambient.Effective, ambient.Inheritable, ambient.Ambient = kill, kill, kill, kill
	noNew := *ambient
	noNew.NoNewPrivs = true
	rootID := creds.RootCred
	rootID.Permitted, rootID.Effective = kill, kill
	for name, x := range map[string]struct {
		old        *creds.Cred
		mode       uint32
		shared     bool
		euid       uint32
		caps, want uint64 // effective, permitted
		secure     bool
	}{
		"shared":                  {user(1000), 0o4755, true, 1000, 0, 0, true},
		"shared, plain":           {user(1000), 0o755, true, 1000, 0, 0, false},
		"shared, may set-uid":     {setuid, 0o4755, true, 0, 1 << creds.CapSetuid, 1 << creds.CapSetuid, true},
		"ambient":                 {ambient, 0o755, false, 1000, kill, kill, false},
		"ambient, set-uid":        {ambient, 0o4755, false, 0, creds.AllCaps, creds.AllCaps, true},
		"ambient, shared":         {ambient, 0o755, true, 1000, kill, kill, false},
		"ambient, no new":         {&noNew, 0o4755, false, 1000, kill, kill, false},
		"root, few capabilities":  {&rootID, 0o755, false, 0, creds.AllCaps, creds.AllCaps, false},
		"root, few, and shared":   {&rootID, 0o755, true, 0, kill, kill, false},
		"set-gid, shared, nobody": {user(1000), 0o2755, true, 1000, 0, 0, true},
	} {
		got := credFor(x.old, x.mode, 0, 0, fileCaps{}, x.shared)
		n := got.Cred
		if n.EUID != x.euid || n.Effective != x.caps || n.Permitted != x.want || got.Secure != x.secure ||
			x.shared && n.EGID != n.GID && !x.old.Has(creds.CapSetuid) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
