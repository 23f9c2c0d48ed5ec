package creds

import (
	"testing"

	"hardtack/abi/linux"
)

func user(uid uint32) *Cred {
	return &Cred{UID: uid, EUID: uid, SUID: uid, FSUID: uid, GID: uid, EGID: uid, SGID: uid, FSGID: uid, Bounding: AllCaps}
}

func TestSetuidDropsForGood(t *testing.T) {
	n, e := SetUID(&RootCred, 1000)
	if e != 0 || n.UID != 1000 || n.EUID != 1000 || n.SUID != 1000 || n.FSUID != 1000 || n.Effective != 0 || n.Permitted != 0 {
		t.Fatalf("%+v %v", n, e)
	}
	if _, e := SetUID(n, 0); e != linux.EPERM {
		t.Error("back to root:", e)
	}
	if _, e := SetGID(n, 7); e != linux.EPERM {
		t.Error("another group:", e)
	}
	if _, e := SetGroups(n, []uint32{1}); e != linux.EPERM {
		t.Error("groups:", e)
	}
}

func TestSeteuidComesBack(t *testing.T) {
	n, _ := SetRESUID(&RootCred, Keep, 1000, Keep)
	if n.EUID != 1000 || n.UID != 0 || n.SUID != 0 || n.FSUID != 1000 || n.Effective != 0 || n.Permitted != AllCaps {
		t.Fatalf("%+v", n)
	}
	n, e := SetRESUID(n, Keep, 0, Keep)
	if e != 0 || n.EUID != 0 || n.Effective != AllCaps {
		t.Fatalf("%+v %v", n, e)
	}
}

func TestSetreuid(t *testing.T) {
	c := user(1000)
	c.SUID = 1001
	if _, e := SetREUID(c, 1001, Keep); e != linux.EPERM {
		t.Error("real from saved:", e)
	}
	n, e := SetREUID(c, Keep, 1001)
	if e != 0 || n.EUID != 1001 || n.SUID != 1001 {
		t.Errorf("%+v %v", n, e)
	}
	// Swapping real and effective keeps the saved one in step.
	c = user(1000)
	c.EUID = 1001
	n, e = SetREUID(c, 1001, 1000)
	if e != 0 || n.UID != 1001 || n.EUID != 1000 || n.SUID != 1000 {
		t.Errorf("%+v %v", n, e)
	}
}

func TestKeepCaps(t *testing.T) {
	c := RootCred
	c.SecureBits = SecureKeepCaps
	n, _ := SetUID(&c, 1000)
	if n.Permitted != AllCaps || n.Effective != 0 {
		t.Errorf("%+v", n)
	}
}

func TestFSUID(t *testing.T) {
	n := SetFSUID(&RootCred, 1000)
	if n.FSUID != 1000 || n.Has(CapDacOverride) || !n.Has(CapSetuid) {
		t.Errorf("%+v", n)
	}
	c := user(1000)
	if SetFSUID(c, 5) != c {
		t.Error("a user may not")
	}
}

func TestCapset(t *testing.T) {
	c := user(1000)
	c.Permitted = 1 << CapKill
	if _, e := SetCaps(c, 1<<CapSetuid, 1<<CapSetuid, 0); e != linux.EPERM {
		t.Error("gained a capability:", e)
	}
	n, e := SetCaps(c, 1<<CapKill, 1<<CapKill, 0)
	if e != 0 || !n.Has(CapKill) {
		t.Errorf("%+v %v", n, e)
	}
}
