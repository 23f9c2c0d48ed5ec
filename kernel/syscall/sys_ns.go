package syscall

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/fs/nsfs"
	"hardtack/kernel/process/proc"
)

// namespaces are the flags of setns in the order in which it enters them.
var namespaces = []uint32{linux.CLONE_NEWUSER, linux.CLONE_NEWNS, linux.CLONE_NEWUTS, linux.CLONE_NEWIPC,
	linux.CLONE_NEWPID, linux.CLONE_NEWCGROUP, linux.CLONE_NEWNET, linux.CLONE_NEWTIME}

// sysSetns is setns(int fd, int flags). The namespaces are the caller's own: it is
// asked what Linux asks, and little changes.
func sysSetns(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	f := t.FDs.Get(a.Int(0))
	if f == nil {
		return 0, linux.EBADF
	}
	defer f.Put()
	flags := a.Uint(1)
	if n := nsfs.Of(f); n != nil {
		if flags != 0 && flags != n.Kind {
			return 0, linux.EINVAL
		}
		return 0, enterNamespaces(t, n.Kind)
	}
	p := proc.FromPIDFD(f)
	all := uint32(0)
	for _, kind := range namespaces {
		all |= kind
	}
	if p == nil || flags == 0 || flags&^all != 0 {
		return 0, linux.EINVAL
	}
	if p.Reaped() {
		return 0, linux.ESRCH
	}
	if !p.Inspect(nil, &t.Ctx, proc.RealCreds, nil) {
		return 0, linux.EPERM
	}
	return 0, enterNamespaces(t, flags)
}

func enterNamespaces(t *proc.Thread, flags uint32) linux.Errno {
	for _, kind := range namespaces {
		if flags&kind == 0 {
			continue
		}
		if e := mayEnter(t, kind); e != 0 {
			return e
		}
	}
	if flags&linux.CLONE_NEWNS != 0 {
		return t.FS.Enter()
	}
	return 0
}

// mayEnter is what setns asks for one namespace.
func mayEnter(t *proc.Thread, kind uint32) linux.Errno {
	cred := t.Cred()
	switch {
	case kind == linux.CLONE_NEWUSER:
		return linux.EINVAL // nobody enters the one that he is in
	case kind == linux.CLONE_NEWTIME && len(t.Proc.Threads()) > 1:
		return linux.EUSERS
	case !cred.Has(creds.CapSysAdmin), kind == linux.CLONE_NEWNS && !cred.Has(creds.CapSysChroot):
		return linux.EPERM
	case kind == linux.CLONE_NEWNS && t.FS.Users() > 1:
		return linux.EINVAL
	}
	return 0
}
