package proc

import (
	"testing"

	"hardtack/kernel/base/creds"
)

func user(uid uint32) *creds.Cred {
	return &creds.Cred{UID: uid, EUID: uid, SUID: uid, FSUID: uid, GID: uid, EGID: uid, SGID: uid, FSGID: uid, Bounding: creds.AllCaps}
}

func TestMayInspect(t *testing.T) {
	some := user(1000)
	some.Permitted = 1 << creds.CapKill
	tracer := user(5)
	tracer.Effective = 1 << creds.CapSysPtrace
	fsOnly, realOnly := user(1000), user(1000)
	fsOnly.UID, fsOnly.GID, fsOnly.EUID, fsOnly.EGID = 5, 5, 5, 5
	realOnly.FSUID, realOnly.FSGID = 5, 5
	idle := *some // has it, but not in effect
	setUID := user(1000)
	setUID.EUID = 0
	for name, x := range map[string]struct {
		asker, of *creds.Cred
		fs, real  bool
	}{
		"same":                {user(1000), user(1000), true, true},
		"other":               {user(1001), user(1000), false, false},
		"more capable":        {user(1000), some, false, false},
		"as capable, at rest": {&idle, some, false, true},
		"tracer":              {tracer, some, true, true},
		"file-system IDs":     {fsOnly, user(1000), true, false},
		"real IDs":            {realOnly, user(1000), false, true},
		"set-uid program":     {user(1000), setUID, false, false},
	} {
		if got := mayInspect(x.asker, FSCreds, x.of, nil); got != x.fs {
			t.Errorf("%s, files: %v", name, got)
		}
		if got := mayInspect(x.asker, RealCreds, x.of, nil); got != x.real {
			t.Errorf("%s, calls: %v", name, got)
		}
	}
}
