// Package caller represents the thread on whose behalf kernel code runs, as files,
// sockets and devices see it.
package caller

import (
	"sync/atomic"

	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
)

// Ctx is the thread on whose behalf kernel code runs. It is passed down
// explicitly; kernel goroutines that act for nobody make one of their own
// (NewKernelCtx). Only the thread itself uses Sleeper.Arm/Sleep, Entry and Vec.
type Ctx struct {
	wait.Sleeper
	// Entry is the thread's place in the one queue that it usually waits on.
	Entry wait.Entry
	// Vec is the thread's transfer in progress: one read or write at a time.
	Vec uio.Vec
	// Scratch holds a small user structure on its way in or out (a timespec, a
	// few iovecs …), so that no handler allocates for it; one use at a time.
	Scratch [256]byte
	// Mem is the thread's address space; nil for kernel goroutines.
	Mem uio.Memory
	// PID and TID are the numbers user programs see (getpid, gettid); immutable.
	PID, TID int32
	// FileSizeLimit is RLIMIT_FSIZE in bytes.
	FileSizeLimit atomic.Uint64
	// Append makes the write in progress one at the end (RWF_APPEND); the thread's own.
	Append bool
	// NoWait has the transfer in progress fail rather than wait (RWF_NOWAIT); the thread's own.
	NoWait bool

	cred atomic.Pointer[creds.Cred]
}

// NewKernelCtx returns a Ctx with all rights and no address space.
func NewKernelCtx() *Ctx {
	c := &Ctx{}
	c.FileSizeLimit.Store(^uint64(0))
	c.SetCred(&creds.RootCred)
	return c
}

// Cred returns the thread's credentials, which must not be changed in place.
func (c *Ctx) Cred() *creds.Cred { return c.cred.Load() }

// SetCred replaces the credentials. Nobody else has n yet, unless it is somebody's
// credentials already.
func (c *Ctx) SetCred(n *creds.Cred) {
	if n.User == nil || n.User.UID != n.UID {
		n.User = accounts.UserOf(n.UID)
	}
	c.cred.Store(n)
}

// User returns the account of the real user ID.
func (c *Ctx) User() *accounts.User { return c.Cred().User }
