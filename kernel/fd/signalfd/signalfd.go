// Package signalfd is signalfd(2): pending signals that are read.
//
// A read takes signals of the thread that reads, and poll and select look at those of
// their caller. An epoll item has no particular caller, so it reports the signals of the
// process that made the file.
package signalfd

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// sizeofInfo is struct signalfd_siginfo.
const sizeofInfo = 128

// never are the signals that cannot be read.
var never = linux.SIGKILL.Set() | linux.SIGSTOP.Set()

// File is a signalfd.
type File struct {
	vfs.BaseOps
	owner  *proc.Process // who made it; immutable
	thread *proc.Thread  // whose signals a view shows, else the main thread's; immutable
	mask   atomic.Uint64
}

// New returns a signalfd of p for the signals of a set; flags are O_NONBLOCK.
func New(p *proc.Process, mask linux.SigSet, flags uint32) *vfs.File {
	x := &File{owner: p}
	x.mask.Store(uint64(mask &^ never))
	return vfs.NewFile(x, linux.O_RDWR|flags&linux.O_NONBLOCK)
}

// Of returns the signalfd behind an open file, or nil.
func Of(f *vfs.File) *File {
	x, _ := f.Ops.(*File)
	return x
}

// As returns what to poll on behalf of a thread: f itself, or in its place
// (whose reference goes) a view of t's signals where the file would answer with
// another thread's: a process inherited it, or has several threads.
func As(t *proc.Thread, f *vfs.File) *vfs.File {
	x := Of(f)
	if x == nil || x.owner == t.Proc && x.owner.Main() == t {
		return f
	}
	view := &File{owner: t.Proc, thread: t}
	view.mask.Store(x.mask.Load())
	f.Put()
	return vfs.NewFile(view, linux.O_RDONLY)
}

// SetMask replaces the set of signals.
func (x *File) SetMask(mask linux.SigSet) {
	x.mask.Store(uint64(mask &^ never))
	x.owner.SigQueue.Notify(wait.In | wait.RdNorm)
}

func (x *File) set() linux.SigSet { return linux.SigSet(x.mask.Load()) }

// Read takes pending signals, waiting for the first.
func (x *File) Read(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	if v.Len() < sizeofInfo {
		return 0, linux.EINVAL
	}
	t := proc.Of(c)
	if t == nil {
		return 0, linux.EINVAL
	}
	info, ok := t.DequeueSignal(x.set())
	if !ok {
		if f.NonBlock() {
			return 0, linux.EAGAIN
		}
		if info, ok = x.sleep(t); !ok {
			return 0, linux.ERESTARTSYS
		}
	}
	done := 0
	for ok {
		b := encode(c.Scratch[:sizeofInfo], &info)
		n, e := v.CopyOut(b)
		if e != 0 {
			if done == 0 {
				return 0, e
			}
			break
		}
		if done += n; v.Len() < sizeofInfo {
			break
		}
		info, ok = t.DequeueSignal(x.set())
	}
	return done, 0
}

// sleep waits for a signal to read; false when another one interrupts.
func (x *File) sleep(t *proc.Thread) (linux.Siginfo, bool) {
	q := &t.Proc.SigQueue
	q.Add(&t.Entry, &t.Sleeper, wait.In)
	defer q.Remove(&t.Entry)
	for {
		t.Arm()
		if info, ok := t.DequeueSignal(x.set()); ok {
			return info, true
		}
		if t.Sleep(wait.NoDeadline) == wait.Interrupted {
			return linux.Siginfo{}, false
		}
	}
}

// encode writes a struct signalfd_siginfo.
func encode(b []byte, i *linux.Siginfo) []byte {
	clear(b)
	p32 := func(off int, v uint32) { binary.LittleEndian.PutUint32(b[off:], v) }
	p64 := func(off int, v uint64) { binary.LittleEndian.PutUint64(b[off:], v) }
	p32(0, uint32(i.Signo))
	p32(4, uint32(i.Errno))
	p32(8, uint32(i.Code))
	pid, uid := i.Sender()
	switch sig := i.Signal(); {
	case i.Code == linux.SI_TIMER:
		id, overrun := i.Timer()
		p32(24, uint32(id))
		p32(32, uint32(overrun))
		p32(44, uint32(i.Value()))
		p64(48, i.Value())
	case i.Code == linux.SI_SIGIO || sig == linux.SIGIO && i.Code > 0 && i.Code < linux.SI_KERNEL:
		band, fd := i.Poll()
		p32(28, uint32(band))
		p32(20, uint32(fd))
	case sig == linux.SIGCHLD && i.Code > 0:
		p32(12, uint32(pid))
		p32(16, uid)
		p32(40, uint32(i.Status()))
		p64(56, i.Data[2])
		p64(64, i.Data[3])
	case i.Code > 0 && i.Code < linux.SI_KERNEL:
		p64(72, i.FaultAddr())
	default:
		p32(12, uint32(pid))
		p32(16, uid)
		if i.Code != linux.SI_USER && i.Code != linux.SI_KERNEL {
			p32(44, uint32(i.Value()))
			p64(48, i.Value())
		}
	}
	return b
}

// Ready is what poll reports.
func (x *File) Ready(*vfs.File) wait.Events {
	t := x.thread
	if t == nil {
		t = x.owner.Main()
	}
	if t != nil && t.Pending()&x.set() != 0 {
		return wait.In
	}
	return 0
}

// NoPosition lets lseek succeed.
func (x *File) NoPosition() {}

// Queue is where pending signals are announced.
func (x *File) Queue(*vfs.File) *wait.Queue { return &x.owner.SigQueue }

// Name is the text of /proc/self/fd/N.
func (x *File) Name(*vfs.File) string { return "anon_inode:[signalfd]" }

// FDInfo writes what /proc/self/fdinfo shows.
func (x *File) FDInfo(_ *vfs.File, w io.Writer) {
	fmt.Fprintf(w, "sigmask:\t%016x\n", x.mask.Load())
}
