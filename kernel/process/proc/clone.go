package proc

//oops:stop a process that is known and never starts

import (
	"encoding/binary"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/signals"
)

// CloneArgs are the arguments of clone, clone3, fork and vfork.
type CloneArgs struct {
	Flags      uint64
	ExitSignal linux.Signal
	Stack      uint64 // the child's stack pointer; 0: the parent's
	TLS        uint64
	PIDFD      uio.Addr
	ParentTID  uio.Addr
	ChildTID   uio.Addr
	TID        int32 // the child's number; 0: any
}

const namespaces = linux.CLONE_NEWNS | linux.CLONE_NEWCGROUP | linux.CLONE_NEWUTS | linux.CLONE_NEWIPC |
	linux.CLONE_NEWUSER | linux.CLONE_NEWPID | linux.CLONE_NEWNET | linux.CLONE_NEWTIME

// check refuses what Linux refuses, and what is not there.
func (a *CloneArgs) check(p *Process) linux.Errno {
	f := a.Flags
	switch {
	case f&namespaces != 0,
		f&linux.CLONE_THREAD != 0 && f&linux.CLONE_SIGHAND == 0,
		f&linux.CLONE_SIGHAND != 0 && f&linux.CLONE_VM == 0,
		f&linux.CLONE_SIGHAND != 0 && f&linux.CLONE_CLEAR_SIGHAND != 0,
		f&linux.CLONE_PIDFD != 0 && f&(linux.CLONE_THREAD|linux.CLONE_DETACHED) != 0,
		f&linux.CLONE_PARENT != 0 && p.parent.Load() == nil:
		return linux.EINVAL
	case f&linux.CLONE_INTO_CGROUP != 0:
		return linux.EBADF // no descriptor is a control group's
	case f&linux.CLONE_SETTLS != 0 && a.TLS >= linux.TaskSize:
		return linux.EPERM
	}
	return 0
}

// vforkWait is where a parent waits until its vfork child lets go of its memory.
type vforkWait struct {
	done   atomic.Bool
	parent *Thread
}

// Clone makes a thread or a process and returns its number.
func (t *Thread) Clone(a *CloneArgs) (int32, linux.Errno) {
	p := t.Proc
	if e := a.check(p); e != 0 {
		return 0, e
	}
	if e := t.mayClone(); e != 0 {
		return 0, e
	}
	var pidfd *vfs.File
	fd := int32(-1)
	if a.Flags&linux.CLONE_PIDFD != 0 {
		var e linux.Errno
		if fd, e = t.FDs.Reserve(0, t.NoFile()); e != 0 {
			return 0, e
		}
		// A bad address makes no child.
		if _, e = t.Space.CopyOut(a.PIDFD, le32(uint32(fd))); e != 0 {
			t.FDs.Unreserve(fd)
			return 0, e
		}
	}
	c, e := t.copyThread(a)
	if e != 0 {
		if fd >= 0 {
			t.FDs.Unreserve(fd)
		}
		return 0, e
	}
	if e := t.place(c, a); e != 0 {
		c.abandon()
		if fd >= 0 {
			t.FDs.Unreserve(fd)
		}
		return 0, e
	}
	tid := c.TID
	if fd >= 0 {
		pidfd = newPIDFD(c.Proc, 0)
		t.FDs.Install(fd, pidfd, true)
	}
	if a.Flags&linux.CLONE_PARENT_SETTID != 0 {
		t.Space.CopyOut(a.ParentTID, le32(uint32(tid)))
	}
	if a.Flags&linux.CLONE_CHILD_SETTID != 0 {
		c.Space.CopyOut(a.ChildTID, le32(uint32(tid)))
	}
	var v *vforkWait
	if a.Flags&linux.CLONE_VFORK != 0 {
		v = &vforkWait{parent: t}
		c.vfork = v
	}
	c.launch()
	for v != nil {
		t.Arm()
		if v.done.Load() || t.Killed() {
			break
		}
		t.SleepUninterruptible(wait.NoDeadline)
	}
	return tid, 0
}

var le = binary.LittleEndian

func le32(v uint32) []byte { return le.AppendUint32(nil, v) }

// mayExceed reports whether limits on the number of processes do not apply.
func mayExceed(c *creds.Cred) bool {
	return c.UID == 0 || c.Has(creds.CapSysResource) || c.Has(creds.CapSysAdmin)
}

// mayClone enforces the limits that end a fork bomb.
func (t *Thread) mayClone() linux.Errno {
	p := t.Proc
	cred := t.Cred()
	privileged := mayExceed(cred)
	if !privileged && uint64(cred.User.Threads.Load()) >= p.limits.get(linux.RLIMIT_NPROC) {
		return linux.EAGAIN
	}
	t.tooMany = false
	MaxThreads() // the pool's size
	if !threadPool.Room(cred.User, 1, privileged) {
		return linux.EAGAIN
	}
	if mem.CallsWait() && !t.favoured(int64(mem.ForkReserve())) {
		mem.Refuse()
		return linux.ENOMEM // the call begins again when there is memory
	}
	return 0
}

// copyThread makes the new thread with what it shares or copies, but without a
// number and known to nobody.
func (t *Thread) copyThread(a *CloneArgs) (*Thread, linux.Errno) {
	p := t.Proc
	f := a.Flags
	var c *Thread
	var own *newborn
	if f&linux.CLONE_THREAD == 0 {
		own = new(newborn)
		c = &own.thread
	} else {
		c = new(Thread)
		c.Proc = p
	}
	c.Futex.Init(&c.Ctx)
	c.Futex.RaiseWith(c)
	t.copyState(c, a)
	if e := t.copySpace(c, f); e != 0 {
		return nil, e
	}
	if f&linux.CLONE_THREAD == 0 {
		c.Proc = t.copyProcess(own, a)
		c.FileSizeLimit.Store(c.Proc.limits.get(linux.RLIMIT_FSIZE))
	}
	if f&linux.CLONE_VM == 0 {
		c.Space.Limits = c.Proc.limits.get
	}
	if f&linux.CLONE_FILES != 0 {
		t.FDs.Share()
		c.FDs = t.FDs
	} else {
		var e linux.Errno
		if c.FDs, e = t.FDs.Fork(); e != 0 {
			c.Space.Release()
			c.FS.Release()
			c.forget()
			return nil, e
		}
	}
	return c, 0
}

// copyState gives the new thread registers, signal mask and what else it inherits.
func (t *Thread) copyState(c *Thread, a *CloneArgs) {
	f := a.Flags
	c.User.CopyFrom(&t.User)
	c.User.RAX = 0
	if a.Stack != 0 {
		c.User.RSP = a.Stack
	}
	if f&linux.CLONE_SETTLS != 0 {
		c.User.FSBase = a.TLS
	}
	if f&linux.CLONE_CHILD_CLEARTID != 0 {
		c.Futex.ClearTID = uint64(a.ChildTID)
	}
	c.SetCred(t.Cred())
	c.FileSizeLimit.Store(t.FileSizeLimit.Load())
	c.sig.blocked = t.sig.blocked
	if t.User.Work.Load()&workMask != 0 {
		c.sig.blocked = t.sig.saved
	}
	if f&linux.CLONE_VM == 0 || f&linux.CLONE_VFORK != 0 {
		c.sig.alt = t.sig.alt
	}
	c.name.Store(t.name.Load())
	c.login.Store(t.login.Load())
	c.sched = t.sched.forChild()
	if wait.Look() {
		t.charge() // the child inherits that, too
	}
	c.turn.Virtual = t.turn.Virtual
	c.weigh()
	c.inheritCPUs()
	if f&linux.CLONE_VM == 0 {
		c.inheritRseq(t)
	}
	c.startTime = clocks.Monotonic()
}

// copySpace gives the new thread directories and an address space: shares, or copies.
func (t *Thread) copySpace(c *Thread, f uint64) linux.Errno {
	if f&linux.CLONE_FS != 0 {
		if e := t.FS.Share(); e != 0 {
			return e
		}
		c.FS = t.FS
	} else {
		c.FS = t.FS.Clone()
	}
	if f&linux.CLONE_VM != 0 {
		t.Space.Share()
		c.Space = t.Space
	} else {
		s, e := t.Space.Fork(&t.Ctx)
		if e != 0 {
			c.FS.Release()
			return e
		}
		c.Space = s
	}
	c.Mem = c.Space
	return 0
}

// newborn is a process with its first thread, made at one go.
type newborn struct {
	thread  Thread
	process Process
	actions signals.Actions
}

// copyProcess makes the new process of a fork.
func (t *Thread) copyProcess(own *newborn, a *CloneArgs) *Process {
	p, q := t.Proc, &own.process
	q.exitSignal.Store(int32(a.ExitSignal))
	q.parentExecs = p.execs.Load()
	q.startTime = own.thread.startTime
	p.mu.Lock()
	if a.Flags&linux.CLONE_SIGHAND != 0 {
		q.sig.actions = p.sig.actions.Share()
	} else {
		q.sig.actions = p.sig.actions.Fork(&own.actions)
	}
	img := p.image.Load()
	if img != nil && img.File != nil {
		img.File.Get()
	}
	q.image.Store(img)
	p.mu.Unlock()
	if a.Flags&linux.CLONE_CLEAR_SIGHAND != 0 {
		q.sig.actions.Flush()
	}
	q.sig.user = t.Ctx.User()
	q.uid.Store(t.Cred().UID)
	q.limits.inherit(&p.limits)
	q.inherit(&p.attributes)
	return q
}

// abandon gives up a thread that could not be placed.
func (c *Thread) abandon() {
	c.FDs.Release(&c.Ctx)
	c.FS.Release()
	c.Space.Release()
	c.forget()
}

// forget gives up the process of a thread that could not be made.
func (c *Thread) forget() {
	if c.Proc.PID == 0 { // its own, never known
		if img := c.Proc.image.Load(); img != nil && img.File != nil {
			img.File.Put()
		}
		c.Proc.sig.actions.Release()
	}
}

// place gives the new thread its number and its place in the tree.
func (t *Thread) place(c *Thread, a *CloneArgs) linux.Errno {
	p, q := t.Proc, c.Proc
	treeMu.Lock()
	defer treeMu.Unlock()
	// Whoever is being killed makes no more threads: the killer would miss them.
	p.mu.Lock()
	if p.exiting || p.execing != nil {
		p.mu.Unlock()
		return linux.ERESTARTNOINTR
	}
	id := int32(0)
	if pidCount < maxPID-firstPID-pidReserve || mayExceed(t.Cred()) {
		id = allocPID(a.TID)
	}
	if id == 0 {
		p.mu.Unlock()
		if a.TID != 0 {
			return linux.EEXIST
		}
		return linux.EAGAIN
	}
	c.TID = id
	if q == p {
		c.PID = p.PID
		p.threads = append(p.threads, c)
		if p.sig.stop != stopNone {
			if p.sig.stop == stopUnderway {
				p.sig.stopping++
			}
			c.User.Work.Or(workStop)
		}
		c.User.Work.Or(workSignal) // the process's signals may be for it
	}
	p.mu.Unlock()
	if q != p {
		q.PID, c.PID = id, id
		q.leader, q.first = c, c
		q.threads = append(q.threads, c)
		parent, maker := p, t.TID
		if a.Flags&linux.CLONE_PARENT != 0 {
			parent, maker = p.parent.Load(), p.maker
			q.exitSignal.Store(p.exitSignal.Load())
			q.parentExecs = p.parentExecs
		}
		q.hasSubreaper = parent.hasSubreaper || parent.subreaper
		q.maker, t.maker = maker, true
		parent.addChild(q)
		p.group.Load().join(q)
		slotOf(id).proc.Store(q)
		nProcesses.Add(1)
	}
	slotOf(id).thread.Store(c)
	nThreads.Add(1)
	q.mu.Lock()
	q.charge()
	q.mu.Unlock()
	return 0
}
