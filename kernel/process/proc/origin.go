package proc

import (
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/fs/vfs"
)

// Origin is what a process that the kernel starts for another one inherits from it, as a child
// would: it was taken at one time, and the other one may have ended since.
type Origin struct {
	Cred       *creds.Cred
	fs         *vfs.FSContext
	limits     resourceLimits
	attributes attributes
	sched      Sched
	login      atomic.Uint64
}

// Origin takes what a child of the calling thread would inherit now.
func (t *Thread) Origin() *Origin {
	p := t.Proc
	o := &Origin{Cred: t.Cred(), fs: t.FS.Clone(), sched: t.Sched().forChild()}
	o.limits.inherit(&p.limits)
	o.attributes.inherit(&p.attributes)
	o.login.Store(t.login.Load())
	return o
}

// Release gives it up.
func (o *Origin) Release() { o.fs.Release() }

// mayStart enforces the limits that end a fork bomb, as mayClone does.
func (o *Origin) mayStart() linux.Errno {
	privileged := mayExceed(o.Cred)
	if !privileged && uint64(o.Cred.User.Threads.Load()) >= o.limits.get(linux.RLIMIT_NPROC) {
		return linux.EAGAIN
	}
	MaxThreads() // the pool's size
	if !threadPool.Room(o.Cred.User, 1, privileged) {
		return linux.EAGAIN
	}
	if mem.CallsWait() {
		return linux.ENOMEM
	}
	return 0
}

// give has a new process inherit. Nobody knows it yet.
func (o *Origin) give(t *Thread) {
	p := t.Proc
	p.limits.inherit(&o.limits)
	p.attributes.inherit(&o.attributes)
	t.FileSizeLimit.Store(p.limits.get(linux.RLIMIT_FSIZE))
	t.login.Store(o.login.Load())
	t.sched = o.sched
	t.weigh()
	t.inheritCPUs()
}

// Start starts a program as a child of the origin's thread would be, but without a parent and in
// a session of its own (see Spawn, whose args these are; Cred and FS come from the origin).
func (o *Origin) Start(a StartArgs, paths []string, files []*vfs.File) (*Spawned, linux.Errno) {
	if e := o.mayStart(); e != 0 {
		for _, f := range files {
			f.Put()
		}
		return nil, e
	}
	a.Cred, a.FS, a.origin = o.Cred, o.fs.Clone(), o
	return Spawn(&a, paths, files, func(int32) {})
}
