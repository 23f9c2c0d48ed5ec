package creds

import (
	"testing"

	"hardtack/abi/linux"
)

// Whose bits count: the owner's and the creator's before those of the groups, and
// these before others'. Only the capability stands above them.
func TestMayIPC(t *testing.T) {
	p := &linux.IPCPerm{UID: 1, GID: 10, CUID: 2, CGID: 20}
	for _, c := range []struct {
		who  Cred
		mode uint32
		want uint32
		may  bool
	}{
		{Cred{EUID: 1}, 0o600, 0o444, true},
		{Cred{EUID: 2}, 0o600, 0o222, true},
		{Cred{EUID: 1}, 0o400, 0o222, false},
		{Cred{EUID: 1}, 0o066, 0o444, false},
		{Cred{EUID: 3, EGID: 10}, 0o640, 0o444, true},
		{Cred{EUID: 3, EGID: 20}, 0o640, 0o444, true},
		{Cred{EUID: 3, Groups: []uint32{9, 20}}, 0o640, 0o444, true},
		{Cred{EUID: 3, FSGID: 10}, 0o640, 0o444, false},
		{Cred{EUID: 3, EGID: 10}, 0o640, 0o222, false},
		{Cred{EUID: 3, EGID: 10}, 0o606, 0o444, false},
		{Cred{EUID: 3}, 0o604, 0o444, true},
		{Cred{EUID: 3}, 0o604, 0o666, false},
		{Cred{EUID: 3}, 0o640, 0o444, false},
		{Cred{EUID: 3, Effective: 1 << CapIPCOwner}, 0, 0o666, true},
	} {
		p.Mode = c.mode
		if got := c.who.MayIPC(p, c.want); got != c.may {
			t.Errorf("%+v, mode %o, wants %o: %v", c.who, c.mode, c.want, got)
		}
	}
}
