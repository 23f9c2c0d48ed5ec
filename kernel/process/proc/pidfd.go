package proc

import (
	"fmt"
	"io"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

// pidfd is an open file that stands for a process; it is readable once the
// process has ended.
type pidfd struct {
	vfs.BaseOps
	p *Process // immutable
}

// Holds adds the file, and the process once nothing else keeps it.
func (x *pidfd) Holds(s *ledger.Sum) {
	s.Add(ledger.Files, ledger.Of[pidfd]())
	x.p.HoldsGone(s)
}

func newPIDFD(p *Process, flags uint32) *vfs.File {
	return vfs.NewFile(&pidfd{p: p}, linux.O_RDWR|flags)
}

// OpenPIDFD is pidfd_open: a descriptor's file for a process.
func OpenPIDFD(p *Process, flags uint32) *vfs.File { return newPIDFD(p, flags) }

// FromPIDFD returns the process of a pidfd, nil for other files.
func FromPIDFD(f *vfs.File) *Process {
	if o, ok := f.Ops.(*pidfd); ok {
		return o.p
	}
	return nil
}

// DirOfProcess is an open /proc/PID, which pidfd_send_signal takes too.
type DirOfProcess interface{ DirOfProcess() *Process }

// FromSignalFD returns the process of a pidfd or of an open /proc/PID, nil for other
// files.
func FromSignalFD(f *vfs.File) *Process {
	if d, ok := f.Ops.(DirOfProcess); ok {
		return d.DirOfProcess()
	}
	return FromPIDFD(f)
}

// Reaped reports that nothing is left of the process but its pidfds.
func (p *Process) Reaped() bool {
	treeMu.Lock()
	defer treeMu.Unlock()
	return p.reaped
}

// Ready says readable when the process has ended.
func (o *pidfd) Ready(*vfs.File) wait.Events {
	if o.p.Zombie() {
		return wait.In | wait.RdNorm
	}
	return 0
}

// Queue is where the end is announced.
func (o *pidfd) Queue(*vfs.File) *wait.Queue { return &o.p.Ended }

// Name is what /proc/PID/fd shows.
func (o *pidfd) Name(*vfs.File) string { return "anon_inode:[pidfd]" }

// FDInfo tells whose it is: -1 once nothing is left.
func (o *pidfd) FDInfo(_ *vfs.File, w io.Writer) {
	pid := o.p.PID
	if o.p.Reaped() {
		pid = -1
	}
	fmt.Fprintf(w, "Pid:\t%d\nNSpid:\t%d\n", pid, pid)
}

// Read refuses, as Linux does.
func (o *pidfd) Read(*caller.Ctx, *vfs.File, *uio.Vec, int64) (int, linux.Errno) {
	return 0, linux.EINVAL
}
