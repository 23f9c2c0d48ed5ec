package procfs

import (
	"strconv"
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/process/proc"
)

// login returns the login of the thread that the file is about.
func (x *about) login() (user, session uint32) {
	if t := x.thread(); t != nil {
		return t.Login()
	}
	return proc.LoginUnset, proc.LoginUnset
}

func readLoginUID(x *about) ([]byte, linux.Errno) {
	user, _ := x.login()
	return strconv.AppendUint(nil, uint64(user), 10), 0
}

func readSessionID(x *about) ([]byte, linux.Errno) {
	_, session := x.login()
	return strconv.AppendUint(nil, uint64(session), 10), 0
}

// writeLoginUID logs the writer in; nobody else's file takes it.
func writeLoginUID(x *about, b []byte) linux.Errno {
	t := proc.Of(x.c)
	if t == nil || x.t != nil && x.t != t || x.t == nil && x.p.PID != t.TID {
		return linux.EPERM
	}
	n, e := parseUint32(b)
	if e != 0 {
		return e
	}
	return t.SetLogin(n)
}

// parseUint32 reads a number as the kernel's kstrtou32 does: decimal, perhaps with
// a plus and one newline behind it.
func parseUint32(b []byte) (uint32, linux.Errno) {
	s, _, _ := strings.Cut(string(b), "\x00")
	s = strings.TrimPrefix(strings.TrimSuffix(s, "\n"), "+")
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, linux.EINVAL
		}
	}
	if s == "" {
		return 0, linux.EINVAL
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0, linux.ERANGE
	}
	return uint32(n), 0
}
