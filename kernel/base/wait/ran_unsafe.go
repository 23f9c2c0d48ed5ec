package wait

import (
	"sync/atomic"
	"unsafe"
)

//go:linkname cputicks runtime.cputicks
func cputicks() int64

// ran is filled by the linker where the image is built with the overlay's topic "ran"
// (overlay/_runtime/ran_unsafe.go), and else stays nil.
//
//go:linkname ran
var ran func() *Clock

// fromOffset is filled like ran: where a goroutine has the ticks at which it was last started.
//
//go:linkname fromOffset
var fromOffset uintptr

// startOf returns the ticks at which a goroutine was last started; for itself.
func startOf(g unsafe.Pointer) int64 { return *(*int64)(unsafe.Add(g, fromOffset)) }

// stackOf is filled like ran: the stack of the goroutine whose clock it is, in bytes.
//
//go:linkname stackOf
var stackOf func(*Clock) uint64

// Stack returns how large the stack of the clock's goroutine is, which anybody may ask;
// the least there is if the image is built without clocks.
func (c *Clock) Stack() int64 {
	if stackOf == nil || c == Still {
		return leastStack
	}
	// It may just be growing: then two sizes are mixed.
	n := stackOf(c)
	for range 4 {
		if n >= leastStack && n&(n-1) == 0 && n <= mostStack {
			return int64(n)
		}
		n = stackOf(c)
	}
	return leastStack
}

// Stacks are powers of two in size.
const (
	leastStack = 2 << 10
	mostStack  = 1 << 30
)

// Clock tells for how long a goroutine has not run, in ticks of the time-stamp
// counter, and how often it stopped, which the Go scheduler keeps, and what it moved
// from and to disks. Its fields are those of overlay/_runtime/ran_unsafe.go.
type Clock struct {
	v             atomic.Int64
	stops         atomic.Uint64
	read, written atomic.Uint64
	_             int64 // from, the scheduler's
	thread        atomic.Uint64
}

// SetThread says which thread the goroutine runs from now on, for Lane; 0 for none.
func (c *Clock) SetThread(tid int32) { c.thread.Store(uint64(uint32(tid))) }

// Lane is what the Go scheduler writes down of one P: which goroutine ran from when to
// when. The last LaneRuns are there of those that took 4,096 ticks or more. It goes on
// while others read it.
type Lane struct {
	n    atomic.Uint64
	runs [LaneRuns]laneRun
}

// LaneRuns is how many runs a lane has: what overlay/_runtime/ran_unsafe.go has, too.
const LaneRuns = 1024

type laneRun struct {
	from, to int64
	who      uint64
}

// Run says that a goroutine ran. Times are in ticks.
type Run struct {
	From, To  int64
	Thread    int32  // 0: none, the goroutine is the kernel's
	Goroutine uint32 // its number, or the lower half of that
}

//go:linkname setLane
var setLane func(p int, l *Lane)

// NewLane begins to write down what a P runs, where the image is built with clocks.
func NewLane(p int) *Lane {
	l := new(Lane)
	if setLane != nil {
		setLane(p, l)
	}
	return l
}

// Last appends the last runs, the oldest first, but for those that may just be overwritten.
func (l *Lane) Last(to []Run, most int) []Run {
	n := l.n.Load()
	first := n - min(n, uint64(most), LaneRuns)
	at := len(to)
	for i := first; i != n; i++ {
		r := &l.runs[i%LaneRuns]
		to = append(to, Run{r.from, r.to, int32(r.who >> 32), uint32(r.who)})
	}
	// What was written meanwhile took the place of the oldest, and one more may be half written.
	now := l.n.Load()
	if over := now + 1 - min(now+1, LaneRuns); over > first && now != n {
		to = append(to[:at], to[at+int(min(over-first, n-first)):]...)
	}
	return to
}

// Raw calls f with the words of the last runs; it allocates nothing.
func (l *Lane) Raw(most int, f func(from, to, who uint64)) {
	n := l.n.Load()
	for i := n - min(n, uint64(most), LaneRuns); i != n; i++ {
		r := &l.runs[i%LaneRuns]
		f(uint64(r.from), uint64(r.to), r.who)
	}
}

// Disk is so many bytes read from disks, and written to files on them.
type Disk struct{ Read, Written uint64 }

// NoteRead counts bytes that the calling goroutine has read from a disk.
func NoteRead(n uint64) { MyClock().NoteRead(n) }

// NoteRead counts what was read from a disk on behalf of the clock's goroutine.
func (c *Clock) NoteRead(n uint64) { c.read.Add(n) }

// NoteWritten counts bytes that it has to be written to one.
func NoteWritten(n uint64) { MyClock().written.Add(n) }

// Disk returns what was counted.
func (c *Clock) Disk() Disk { return Disk{c.read.Load(), c.written.Load()} }

// Since adds what was counted after base to sum.
func (c *Clock) Since(base, sum Disk) Disk {
	return Disk{sum.Read + c.read.Load() - base.Read, sum.Written + c.written.Load() - base.Written}
}

// Stops returns how often the goroutine has given up the processor.
func (c *Clock) Stops() uint64 { return c.stops.Load() }

// Runs reports whether the goroutine runs.
func (c *Clock) Runs() bool { return c.v.Load() > 0 }

// Still is a clock that tells nothing.
var Still = func() *Clock {
	c := new(Clock)
	c.v.Store(1)
	return c
}()

// MyClock returns the calling goroutine's clock, which is its own for ever; Still
// where the image is built without clocks.
func MyClock() *Clock {
	if ran == nil {
		return Still
	}
	return ran()
}

// Mine is Off for the goroutine itself.
func (c *Clock) Mine() int64 { return c.v.Load() }

// Off returns for how many ticks since tick 0 the goroutine has not run, at the time
// now.
func (c *Clock) Off(now int64) int64 {
	v := c.v.Load()
	if v > 0 {
		return v // it runs: the time less what it has run
	}
	return now + v
}
