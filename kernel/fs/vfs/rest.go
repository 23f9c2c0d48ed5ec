package vfs

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
)

// A write to a file that finds no memory after it has moved a part waits for more, since a program
// does not expect it to end short. It waits without the inode's lock: those who could give memory
// back may need that. Until it has ended, other writes to the file and changes of its size wait
// behind it, so that it is one piece, as on Linux, where the lock is held.

// rests are the files in the middle of whose writes somebody waits for memory.
var rests struct {
	n       atomic.Int32 // of them; read without mu
	mu      sync.Mutex
	of      map[*Inode]bool // guarded by mu
	waiters wait.Queue      // hear when one has ended
}

// restsHave reports whether i is one of them.
func restsHave(i *Inode) bool {
	rests.mu.Lock()
	defer rests.mu.Unlock()
	return rests.of[i]
}

// RestWaits reports whether somebody waits for memory in the middle of a write to i, so that another
// write or a change of the size must not come now. i.Mu is held.
func (i *Inode) RestWaits() bool { return rests.n.Load() != 0 && restsHave(i) }

// AwaitRest waits until nobody does. An error: the caller is to end meanwhile, or may not wait.
//
//maxlive:point because a caller waits for one write after the other
func (i *Inode) AwaitRest(c *caller.Ctx) linux.Errno {
	if c.NoWait {
		return linux.EAGAIN
	}
	var entry wait.Entry
	rests.waiters.Add(&entry, &c.Sleeper, wait.In)
	defer entry.Leave()
	for c.Arm(); restsHave(i); c.Arm() {
		if caller.Killed(c) {
			return linux.EINTR
		}
		c.SleepUninterruptible(wait.NoDeadline)
	}
	return 0
}

// BeginRest is for a write that found no memory for all: i.Mu is held, and WriteRest follows without it.
//
//maxlive:point because the table grows with the writes that wait
func (i *Inode) BeginRest() {
	rests.mu.Lock()
	if rests.of == nil {
		rests.of = map[*Inode]bool{}
	}
	rests.of[i] = true
	rests.n.Add(1)
	rests.mu.Unlock()
}

// WriteRest goes on with a write that came to n bytes and left some of v, and returns to how many it
// came. again writes at n bytes behind the beginning.
func (i *Inode) WriteRest(c *caller.Ctx, v *uio.Vec, n int, again func(n int) (int, linux.Errno)) int {
	for v.Len() > 0 && !caller.Killed(c) {
		m, e := again(n)
		n += m
		if m == 0 && (e != linux.ENOMEM || !caller.MemoryCame(c)) {
			break
		}
	}
	rests.mu.Lock()
	delete(rests.of, i)
	rests.n.Add(-1)
	rests.mu.Unlock()
	rests.waiters.Notify(wait.In)
	return n
}
