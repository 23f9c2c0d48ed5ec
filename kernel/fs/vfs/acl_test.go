package vfs

import (
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
)

func entries(x ...aclEntry) acl { return x }

var (
	owner  = aclEntry{linux.ACL_USER_OBJ, 6, NoID}
	user   = aclEntry{linux.ACL_USER, 7, 1001}
	group  = aclEntry{linux.ACL_GROUP_OBJ, 4, NoID}
	groups = aclEntry{linux.ACL_GROUP, 2, 2001}
	mask   = aclEntry{linux.ACL_MASK, 6, NoID}
	others = aclEntry{linux.ACL_OTHER, 1, NoID}
)

// TestACLValid: entries come once, in their order, and a mask with users and groups.
func TestACLValid(t *testing.T) {
	for i, c := range []struct {
		list acl
		want bool
	}{
		{entries(owner, group, others), true},
		{entries(owner, user, group, groups, mask, others), true},
		{entries(owner, user, user, group, mask, others), true},
		{entries(owner, group, mask, others), true},
		{entries(), false},
		{entries(owner, group), false},
		{entries(owner, others), false},
		{entries(group, owner, others), false},
		{entries(owner, user, group, others), false},
		{entries(owner, group, groups, others), false},
		{entries(owner, group, user, mask, others), false},
		{entries(owner, group, others, mask), false},
		{entries(owner, owner, group, others), false},
		{entries(owner, group, mask, mask, others), false},
		{entries(owner, group, others, others), false},
		{entries(owner, aclEntry{linux.ACL_USER, 7, NoID}, group, mask, others), false},
		{entries(aclEntry{linux.ACL_USER_OBJ, 8, NoID}, group, others), false},
		{entries(owner, aclEntry{3, 1, NoID}, group, others), false},
	} {
		if got := c.list.valid(); got != c.want {
			t.Errorf("list %d: valid %v, want %v", i, got, c.want)
		}
	}
}

// TestACLMode: the group's bits of a mode are the mask, and chmod and creation change it.
func TestACLMode(t *testing.T) {
	full := entries(owner, user, group, groups, mask, others)
	if mode, exact := full.mode(); mode != 0o661 || exact {
		t.Errorf("mode %o, exact %v", mode, exact)
	}
	if mode, exact := entries(owner, group, others).mode(); mode != 0o641 || !exact {
		t.Errorf("mode %o, exact %v", mode, exact)
	}
	if mode, _ := full.withMode(0o750, false).mode(); mode != 0o750 {
		t.Errorf("after chmod 750: %o", mode)
	}
	if mode, _ := full.withMode(0o757, true).mode(); mode != 0o641 {
		t.Errorf("created with 757: %o", mode)
	}
	if v := full.value(); len(v) != 4+8*6 {
		t.Errorf("%d bytes", len(v))
	} else if back, e := parseACL(v); e != 0 || len(back) != 6 || back[1] != user {
		t.Errorf("read back: %v, %v", back, e)
	}
}

// TestACLAllows: who is named gets no more than the mask, and nobody's group is others.
func TestACLAllows(t *testing.T) {
	list := entries(owner, user, group, groups, mask, others)
	i := &Inode{}
	i.gid.Store(2000)
	for _, c := range []struct {
		uid, gid uint32
		want     Access
		ok       bool
	}{
		{1001, 9, MayRead | MayWrite, true},
		{1001, 9, MayExec, false},
		{1001, 2000, MayWrite, true},
		{1002, 2000, MayRead, true},
		{1002, 2000, MayWrite, false},
		{1002, 2000, MayExec, false},
		{1002, 2001, MayWrite, true},
		{1002, 2001, MayRead, false},
		{1002, 9, MayExec, true},
		{1002, 9, MayRead, false},
	} {
		if got := list.allows(&creds.Cred{FSUID: c.uid, FSGID: c.gid}, i, c.want); got != c.ok {
			t.Errorf("user %d, group %d, access %d: %v", c.uid, c.gid, c.want, got)
		}
	}
}
