package proc

import (
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
)

// LoginUnset is the login user and the session of a thread that nobody logged in to.
const LoginUnset = ^uint32(0)

// loginSessions numbers login sessions; 0 is none.
var loginSessions atomic.Uint32

// Login returns the user as whom somebody logged in (/proc/PID/loginuid) and the
// number of the session. Children inherit both, and they survive setuid.
func (t *Thread) Login() (user, session uint32) {
	v := ^t.login.Load() // the zero value is not logged in
	return uint32(v >> 32), uint32(v)
}

// SetLogin logs the calling thread in as a user, or out with LoginUnset. Anybody may
// do the former once; CAP_AUDIT_CONTROL may do both at any time.
func (t *Thread) SetLogin(user uint32) linux.Errno {
	if old, _ := t.Login(); old != LoginUnset && !t.Cred().Has(creds.CapAuditControl) {
		return linux.EPERM
	}
	session := LoginUnset
	for user != LoginUnset && session == LoginUnset {
		session = loginSessions.Add(1)
	}
	t.login.Store(^(uint64(user)<<32 | uint64(session)))
	return 0
}
