package proc

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/settings"
)

// maxPID bounds process and thread numbers, whatever kernel.pid_max says.
const maxPID = 32768

// firstPID is where the search for a number begins again behind the last.
const firstPID = 300

// What kernel.pid_max may be.
const (
	MinPIDMax = firstPID + 1
	MaxPIDMax = 1 << 22
)

var pidMax = settings.Default(maxPID)

// PIDMax returns kernel.pid_max: numbers are smaller.
func PIDMax() int64 { return pidMax.Get() }

// SetPIDMax changes it. Numbers in use stay.
func SetPIDMax(n int64) { pidMax.Set(n) }

// treeMu guards the tree of processes, groups and sessions and who has which number.
var treeMu sync.Mutex

// pidSlot says who has a number. Readers take no lock; writers hold treeMu.
type pidSlot struct {
	thread  atomic.Pointer[Thread]
	proc    atomic.Pointer[Process]
	group   atomic.Pointer[Group]
	session atomic.Pointer[Session]
}

func (s *pidSlot) free() bool {
	return s.thread.Load() == nil && s.proc.Load() == nil && s.group.Load() == nil && s.session.Load() == nil
}

// slotsPerChunk numbers have their slots together, and one word of pidUsed.
const slotsPerChunk = 64

var (
	pidChunks [maxPID / slotsPerChunk]atomic.Pointer[[slotsPerChunk]pidSlot] // changed under treeMu
	pidUsed   [maxPID / slotsPerChunk]uint64                                 // guarded by treeMu; bit set: in use
	pidCount  int                                                            // guarded by treeMu; numbers in use
	lastPID   atomic.Int32                                                   // written under treeMu

	nProcesses, nThreads atomic.Int32 // living threads; processes with zombies
	maxThreads           atomic.Int32 // 0: not set yet
)

func slotOf(id int32) *pidSlot {
	if uint32(id) >= maxPID {
		return nil
	}
	c := pidChunks[id/slotsPerChunk].Load()
	if c == nil {
		return nil
	}
	return &c[id%slotsPerChunk]
}

// pidReserve numbers are only for those who may exceed limits: the numbers of groups
// and sessions are nobody's thread.
const pidReserve = maxPID / 32

// allocPID takes a free number, or the one that is wanted if it is free; 0 if there
// is none. Called with treeMu held.
func allocPID(want int32) int32 {
	id := want
	if want != 0 {
		id = nextFree(want, want+1)
	} else {
		start, end := lastPID.Load()+1, int32(min(pidMax.Get(), maxPID))
		if id = nextFree(start, end); id == 0 {
			id = nextFree(firstPID, min(start, end))
		}
	}
	if id == 0 {
		return 0
	}
	pidUsed[id/64] |= 1 << (id % 64)
	pidCount++
	if c := &pidChunks[id/slotsPerChunk]; c.Load() == nil {
		c.Store(new([slotsPerChunk]pidSlot))
	}
	if want == 0 {
		dropChunk(lastPID.Swap(id))
	}
	return id
}

// nextFree returns the lowest free number in [from, to), or 0.
func nextFree(from, to int32) int32 {
	for id := from; id < to; id = (id/64 + 1) * 64 {
		free := ^pidUsed[id/64] >> (id % 64)
		if free != 0 {
			if id += int32(bits.TrailingZeros64(free)); id < to {
				return id
			}
			return 0
		}
	}
	return 0
}

// dropPID frees a number that nobody has any more. Called with treeMu held,
// after the slot's field was cleared.
func dropPID(id int32) {
	if bit := uint64(1) << (id % 64); pidUsed[id/64]&bit != 0 && slotOf(id).free() {
		pidUsed[id/64] &^= bit
		pidCount--
		dropChunk(id)
	}
}

// dropChunk lets go of the slots around id if nobody has any of them: numbers go on rising, and
// all chunks together take more than a megabyte. The one that the next number may be in stays.
// Called with treeMu held.
func dropChunk(id int32) {
	if i := id / slotsPerChunk; pidUsed[i] == 0 && i != lastPID.Load()/slotsPerChunk {
		pidChunks[i].Store(nil)
	}
}

// ByTID returns the living thread with a number, or nil.
func ByTID(tid int32) *Thread {
	if s := slotOf(tid); s != nil {
		return s.thread.Load()
	}
	return nil
}

// Task returns the thread with a number, and the first thread of a process even if it
// has ended and waits for the others or for the parent; nil if there is none.
func Task(tid int32) *Thread {
	s := slotOf(tid)
	if s == nil {
		return nil
	}
	if t := s.thread.Load(); t != nil {
		return t
	}
	if p := s.proc.Load(); p != nil {
		return p.First()
	}
	return nil
}

// Lookup returns the process with a number (zombies too), or nil.
func Lookup(pid int32) *Process {
	if s := slotOf(pid); s != nil {
		return s.proc.Load()
	}
	return nil
}

// GroupByID returns a process group, or nil.
func GroupByID(id int32) *Group {
	if s := slotOf(id); s != nil {
		return s.group.Load()
	}
	return nil
}

// SessionByID returns a session, or nil.
func SessionByID(id int32) *Session {
	if s := slotOf(id); s != nil {
		return s.session.Load()
	}
	return nil
}

// Each calls fn for every process in the order of numbers until it says false.
func Each(fn func(*Process) bool) { EachFrom(0, fn) }

// EachFrom is Each from a number on.
func EachFrom(pid int32, fn func(*Process) bool) {
	for i := int(max(pid, 0)) / slotsPerChunk; i < len(pidChunks); i++ {
		c := pidChunks[i].Load()
		if c == nil {
			continue
		}
		for j := range c {
			if p := c[j].proc.Load(); p != nil && p.PID >= pid && !fn(p) {
				return
			}
		}
	}
}

// Counts returns how many processes (zombies too) and threads exist.
func Counts() (processes, threads int) {
	return int(nProcesses.Load()), int(nThreads.Load())
}

// LastPID returns the number given out last (/proc/loadavg).
func LastPID() int32 { return lastPID.Load() }

// SetLastPID has the search for the next number begin behind n.
func SetLastPID(n int32) linux.Errno {
	if n >= maxPID {
		return linux.EINVAL
	}
	treeMu.Lock()
	dropChunk(lastPID.Swap(n))
	treeMu.Unlock()
	return 0
}

// threadCost is what a thread may take of memory: 16 KiB of goroutine stack,
// 8 KiB of Thread, Process and tables, and a share of the collector's slack as
// large; no more than a quarter of memory may go there.
const threadCost = 2 * (16 + 8) << 10

// MaxThreads returns the system's limit (/proc/sys/kernel/threads-max): a fork
// bomb must end with EAGAIN and not with an exhausted kernel heap.
func MaxThreads() int32 {
	if n := maxThreads.Load(); n != 0 {
		return n
	}
	n := int32(min(max(uint64(mem.Total())*mem.PageSize/4/threadCost, 64), maxPID-firstPID))
	SetMaxThreads(n)
	return n
}

// SetMaxThreads changes the limit.
func SetMaxThreads(n int32) {
	n = min(max(n, 20), maxPID-firstPID)
	threadPool.SetMax(int64(n))
	maxThreads.Store(n)
}

// threadPool is shared by all users' threads. A process that nobody has waited for
// counts: it has a number still.
var threadPool = accounts.NewPool(0)

// charge counts a thread of the process; called with mu held.
func (g *threadGroup) charge() {
	g.sig.user.Threads.Add(1)
	threadPool.Force(g.sig.user, 1)
}

// uncharge undoes charge, for a thread other than the leader when it ends, and for
// the leader when the process has been waited for.
func (g *threadGroup) uncharge() {
	g.sig.user.Threads.Add(-1)
	threadPool.Release(g.sig.user, 1)
}
