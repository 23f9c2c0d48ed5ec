package sock

import (
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/hook"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

// Base is the part of a socket that all families have; embed it.
type Base struct {
	Domain, Type, Protocol int32  // immutable
	Ino                    uint64 // immutable; also the order of locks
	UID, GID               uint32 // who made it; immutable once it has a file
	vfs.AnonAttr

	// Q is where the socket announces readiness.
	Q wait.Queue
	// Opt are the options of SOL_SOCKET.
	Opt Options
	// Filters says that the socket honours SO_ATTACH_FILTER; immutable.
	Filters bool

	err  atomic.Uint32            // SO_ERROR: errno that the next call reports
	file atomic.Pointer[vfs.File] // the socket's file, not counted
}

// Init fills a new Base.
func (b *Base) Init(c *caller.Ctx, domain, typ, protocol int32) {
	b.Domain, b.Type, b.Protocol = domain, typ, protocol
	b.Ino = lastIno.Add(1)
	cr := c.Cred()
	b.UID, b.GID = cr.FSUID, cr.FSGID
	b.Opt.init()
}

// SockBase returns the Base.
func (b *Base) SockBase() *Base { return b }

// File returns the socket's file, without a reference.
func (b *Base) File() *vfs.File { return b.file.Load() }

// Queue is where readiness is announced.
func (b *Base) Queue(*vfs.File) *wait.Queue { return &b.Q }

// SetError notes an error for the next call and wakes whoever waits.
func (b *Base) SetError(e linux.Errno) {
	b.err.Store(uint32(e))
	b.Q.Notify(wait.Err | wait.In | wait.Out)
}

// NoteError is SetError without the wake-up.
func (b *Base) NoteError(e linux.Errno) { b.err.Store(uint32(e)) }

// TakeError returns the noted error and forgets it.
func (b *Base) TakeError() linux.Errno {
	if b.err.Load() == 0 {
		return 0
	}
	return linux.Errno(b.err.Swap(0))
}

// HasError reports whether an error is noted.
func (b *Base) HasError() bool { return b.err.Load() != 0 }

// Block is the slow path of a call that found nothing to do: it waits for ev on
// the socket's queue until try returns something other than EAGAIN, a signal
// comes, or the timeout (nanoseconds; 0 for none) has passed.
func (b *Base) Block(c *caller.Ctx, ev wait.Events, timeout int64, try func() linux.Errno) linux.Errno {
	b.Q.Add(&c.Entry, c, ev)
	e := b.block(c, timeout, try)
	b.Q.Remove(&c.Entry)
	return e
}

// BlockExclusive is Block for calls of which one wake-up serves only one (accept).
func (b *Base) BlockExclusive(c *caller.Ctx, ev wait.Events, timeout int64, try func() linux.Errno) linux.Errno {
	b.Q.AddExclusive(&c.Entry, c, ev)
	e := b.block(c, timeout, try)
	b.Q.Remove(&c.Entry)
	return e
}

func (b *Base) block(c *caller.Ctx, timeout int64, try func() linux.Errno) linux.Errno {
	deadline := wait.NoDeadline
	if timeout > 0 {
		deadline = wait.Now() + timeout
	}
	//maxlive:loop 1 because a try that ends in EAGAIN leaves nothing behind
	for {
		c.Arm()
		if e := try(); e != linux.EAGAIN {
			return e
		}
		switch c.Sleep(deadline) {
		case wait.Interrupted:
			if timeout > 0 {
				return linux.EINTR // a restart would begin the time again
			}
			return linux.ERESTARTSYS
		case wait.TimedOut:
			return linux.EAGAIN
		}
	}
}

// Stat is fstat(2).
func (b *Base) Stat(_ *caller.Ctx, _ *vfs.File, st *linux.Stat) linux.Errno {
	*st = linux.Stat{
		Dev: sockfsDev, Ino: b.Ino, Nlink: 1, Mode: linux.S_IFSOCK | 0o777,
		UID: b.UID, GID: b.GID, Blksize: 4096,
	}
	b.Overlay(st)
	return 0
}

// Mode returns the permissions, which a name in the file system gets.
func (b *Base) Mode() uint32 {
	var st linux.Stat
	b.Stat(nil, nil, &st)
	return st.Mode & 0o7777
}

// sockfsDev is the anonymous device number that sockets show.
const sockfsDev = 8

// Name is the text of /proc/self/fd/N.
func (b *Base) Name(*vfs.File) string { return b.name() }

// SetFlags accepts O_NONBLOCK and the like: every call looks at the file's flags.
func (b *Base) SetFlags(*vfs.File, uint32, uint32) linux.Errno { return 0 }

// PutInt encodes an int result of getsockopt or ioctl.
func PutInt(val []byte, v int32) int {
	b := [4]byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)}
	return copy(val, b[:])
}

// Int decodes an int value of setsockopt.
func Int(val []byte) (int32, linux.Errno) {
	if len(val) < 4 {
		return 0, linux.EINVAL
	}
	return int32(val[0]) | int32(val[1])<<8 | int32(val[2])<<16 | int32(val[3])<<24, 0
}

// CopyOutInt answers an ioctl with an int.
func CopyOutInt(c *caller.Ctx, arg uint64, v int32) (uint64, linux.Errno) {
	var b [4]byte
	PutInt(b[:], v)
	if _, e := c.Mem.CopyOut(uio.Addr(arg), b[:]); e != 0 {
		return 0, e
	}
	return 0, 0
}

// Map refuses, as sockets do that have nothing to map.
func (*Base) Map(*caller.Ctx, *vfs.File) (mem.Object, linux.Errno) { return nil, linux.ENODEV }

// PutUcred encodes struct ucred.
func PutUcred(b []byte, u linux.Ucred) {
	PutInt(b, u.PID)
	PutInt(b[4:], int32(u.UID))
	PutInt(b[8:], int32(u.GID))
}

// DeviceIndex and DeviceName translate the names of network interfaces; 0 and "" for what
// there is not. The Internet family supplies them.
var (
	DeviceIndex = hook.Default(func(string) int32 { return 0 })
	DeviceName  = hook.Default(func(int32) string { return "" })
)

// DeviceIoctl answers the requests about network interfaces, which any socket
// takes; the Internet family supplies it.
var DeviceIoctl = hook.Default(func(*caller.Ctx, uint32, uint64) (uint64, linux.Errno) { return 0, linux.ENOTTY })
