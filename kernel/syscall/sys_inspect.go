package syscall

import (
	"cmp"
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fd/epoll"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/process/sysv"
)

// Calls by which one process looks into another.
var inspectCalls = []Call{
	{linux.SYS_process_vm_readv, "process_vm_readv", sysProcessVMReadv, "works"},
	{linux.SYS_process_vm_writev, "process_vm_writev", sysProcessVMWritev, "works"},
	{linux.SYS_kcmp, "kcmp", sysKcmp, "works"},
	{linux.SYS_process_mrelease, "process_mrelease", sysProcessMrelease, "works: a dying process frees its memory at once, so the call only checks its arguments"},
}

// inspectSpace returns the address space of the process that a thread number
// names, if the caller may look into it (EndLook).
func inspectSpace(t *proc.Thread, tid int32, as proc.Creds) (*vm.Space, linux.Errno) {
	p, u := target(tid)
	if p == nil {
		return nil, linux.ESRCH
	}
	s, _, e := p.InspectSpace(u, &t.Ctx, as)
	if e == 0 && s == nil {
		e = linux.ESRCH
	}
	return s, e
}

// target returns the process that a thread number names, and the thread if it is
// not the one that speaks for the process. Other threads have credentials of
// their own.
func target(tid int32) (*proc.Process, *proc.Thread) {
	if tid <= 0 {
		return nil, nil
	}
	if p := proc.Lookup(tid); p != nil {
		return p, nil
	}
	if u := proc.ByTID(tid); u != nil {
		return u.Proc, u
	}
	return nil, nil
}

// inspectBuffer is how much is copied at a time.
const inspectBuffer = 16 << 10

// copyBetween moves what two lists of ranges have in common from one address
// space to another, unless the thread is killed. An error counts only if nothing was
// moved.
func copyBetween(t *proc.Thread, dst *vm.Space, to []uio.IOVec, src *vm.Space, from []uio.IOVec) (uint64, linux.Errno) {
	b := make([]byte, inspectBuffer)
	done := uint64(0)
	for len(to) > 0 && len(from) > 0 && !t.Killed() {
		if to[0].Len == 0 {
			to = to[1:]
			continue
		}
		if from[0].Len == 0 {
			from = from[1:]
			continue
		}
		n := min(to[0].Len, from[0].Len, inspectBuffer)
		got, e := src.CopyIn(b[:n], from[0].Base)
		put, e2 := dst.CopyOut(to[0].Base, b[:got])
		done += uint64(put)
		if e = cmp.Or(e, e2); e != 0 {
			if done == 0 {
				return 0, e
			}
			return done, 0
		}
		for _, v := range [...]*uio.IOVec{&to[0], &from[0]} {
			v.Base += uio.Addr(n)
			v.Len -= n
		}
	}
	return done, 0
}

// processVM is process_vm_readv and writev(pid, local, liovcnt, remote, riovcnt, flags).
func processVM(t *proc.Thread, a *Args, write bool) (uint64, linux.Errno) {
	if a[5] != 0 {
		return 0, linux.EINVAL
	}
	local, e := readIOVec(t, a.Addr(1), a[2])
	if e != 0 {
		return 0, e
	}
	remote, e := readIOVec(t, a.Addr(3), a[4])
	if e != 0 {
		return 0, e
	}
	s, e := inspectSpace(t, a.Int(0), proc.RealCreds)
	if e != 0 {
		return 0, e
	}
	defer s.EndLook()
	if write {
		return copyBetween(t, s, remote, t.Space, local)
	}
	return copyBetween(t, t.Space, local, s, remote)
}

// sysProcessVMReadv copies from another process.
func sysProcessVMReadv(t *proc.Thread, a *Args) (uint64, linux.Errno) { return processVM(t, a, false) }

// sysProcessVMWritev copies to another process.
func sysProcessVMWritev(t *proc.Thread, a *Args) (uint64, linux.Errno) { return processVM(t, a, true) }

// Kinds of kcmp.
const (
	kcmpFile    = 0
	kcmpVM      = 1
	kcmpFiles   = 2
	kcmpFS      = 3
	kcmpSighand = 4
	kcmpIO      = 5
	kcmpSysvSem = 6
	kcmpEpoll   = 7
)

// sysKcmp is kcmp(pid_t pid1, pid_t pid2, int type, unsigned long idx1, idx2):
// 0 says that both have the same, 1 and 2 order what differs.
func sysKcmp(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	var who [2]*proc.Thread
	for i := range who {
		if who[i] = proc.Task(a.Int(i)); who[i] == nil {
			return 0, linux.ESRCH
		}
	}
	for _, u := range who {
		if !u.Proc.Inspect(u, &t.Ctx, proc.RealCreds, nil) {
			return 0, linux.EPERM
		}
	}
	var what [2]any
	var e linux.Errno
	switch kind := a.Int(2); kind {
	case kcmpFile:
		what, e = kcmpFilesOf(t, who, [2]int32{int32(a[3]), int32(a[4])})
	case kcmpEpoll:
		what, e = kcmpTarget(t, who, int32(a[3]), a.Addr(4))
	case kcmpVM, kcmpFiles, kcmpFS, kcmpSighand:
		for i, u := range who {
			if what[i], e = u.InspectShared(&t.Ctx, proc.Shared(kind)); e != 0 {
				break
			}
		}
	case kcmpIO: // who has set no I/O priority has nothing of its own
		for i, u := range who {
			if u.Sched().IOPriority != 0 {
				what[i] = u
			}
		}
	case kcmpSysvSem:
		for i, u := range who {
			if sysv.Undoes(u.Proc.PID) {
				what[i] = u.Proc
			}
		}
	default:
		e = linux.EINVAL
	}
	if e != 0 || what[0] == what[1] {
		return 0, e
	}
	return order(who[0].TID, who[1].TID), 0
}

// kcmpFilesOf is the open files behind a descriptor of each thread, to compare only.
func kcmpFilesOf(t *proc.Thread, who [2]*proc.Thread, fds [2]int32) (what [2]any, e linux.Errno) {
	for i, u := range who {
		f, _, e := u.Proc.InspectFile(u, &t.Ctx, proc.RealCreds, fds[i])
		if e == 0 && f == nil {
			e = linux.EBADF
		}
		if e != 0 {
			return what, e
		}
		what[i] = f
		f.Put()
	}
	return what, 0
}

// kcmpTarget is a file of the first thread, and what an epoll instance of the second has
// for struct kcmp_epoll_slot {efd, tfd, toff}.
func kcmpTarget(t *proc.Thread, who [2]*proc.Thread, fd int32, slot uio.Addr) (what [2]any, e linux.Errno) {
	b, e := readUser(t, slot, 12)
	if e != 0 {
		return what, e
	}
	word := binary.LittleEndian.Uint32
	if what, e = kcmpFilesOf(t, who, [2]int32{fd, int32(word(b))}); e != 0 {
		return what, e
	}
	f, _, e := who[1].Proc.InspectFile(who[1], &t.Ctx, proc.RealCreds, int32(word(b)))
	if e == 0 && f == nil {
		e = linux.EBADF
	}
	if e != 0 {
		return what, e
	}
	defer f.Put()
	ep := epoll.Of(f)
	if ep == nil {
		return what, linux.EINVAL
	}
	target := ep.Target(int32(word(b[4:])), uint64(word(b[8:])))
	if target == nil {
		return what, linux.ENOENT
	}
	what[1] = target
	return what, 0
}

// order is kcmp's answer for two that differ.
func order(x, y int32) uint64 {
	if x < y {
		return 1
	}
	return 2
}

// sysProcessMrelease is process_mrelease(int pidfd, unsigned flags).
func sysProcessMrelease(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a.Uint(1) != 0 {
		return 0, linux.EINVAL
	}
	p, e := pidfdProcess(t, a.Int(0), proc.FromPIDFD)
	if e != 0 {
		return 0, e
	}
	if p.Zombie() {
		return 0, linux.ESRCH
	}
	if !p.Exiting() {
		return 0, linux.EINVAL
	}
	return 0, 0
}
