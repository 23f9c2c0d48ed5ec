package nucleus

import (
	"math/bits"
	"sync/atomic"

	"hardtack/arch/amd64"
	"hardtack/nucleus/ipc"
	"hardtack/nucleus/stand"
)

// A CPU that a message call leaves without a thread stands by for some microseconds before
// it leaves user mode: it looks at one word, where another CPU puts a thread that it has
// woken. So two threads on two CPUs, bound to them or busy, meet without Go's scheduler and
// without an interrupt. A CPU at which nobody came a few times in turn does not stand by for
// a while. Interrupts wait meanwhile; requests to flush translations are served.

// standTime is how long a CPU stands by: longer than Go's scheduler takes to bring the
// other of a pair to its CPU, so that a pair comes to meet here.
const (
	standTime  = 20_000 // nanoseconds
	standFails = 4      // times in vain before a rest
	standRest  = 64     // waits without standing by
)

// stander is a CPU's.
type stander struct {
	place stand.Place
	_     [60]byte

	// The CPU's own.
	fails, rest uint32
	stands      bool // has been offered a thread
	_           [52]byte
}

var standers [maxCPUs]stander

// standing is the CPUs that stand by, a bit each: where to look.
var standing atomic.Uint64

// isWhole is in what is offered beside the thread: its result is in its registers.
const isWhole = 1 << 16

// offerAll gives the threads in the CPU's run queue to CPUs that stand by. It reports
// whether all of them are gone.
func offerAll(c *amd64.CPU) bool {
	for standing.Load() != 0 {
		i := rendezvous.Take(c.Index, c.Index)
		if i == 0 {
			return true
		}
		if !rendezvous.IsDirect(i) || !offer(i, 0) {
			rendezvous.Enter(c.Index, i)
			rendezvous.Put(c.Index)
			return false
		}
	}
	return !rendezvous.Waiting(c.Index)
}

// offer gives a thread, ready and in no queue, to a CPU that stands by and may run it,
// the one it ran on last before others. whole: isWhole, or 0.
func offer(i, whole uint32) bool {
	may := standing.Load()
	if may == 0 {
		return false
	}
	q, what := &partners[i%ipc.MaxThreads], i|whole
	u := userStateAt(q.state)
	if may &^= keptFrom(u, q); may == 0 {
		return false
	}
	if last := uint32(u.LastCPU.Load()) & 63; may>>last&1 != 0 && standers[last].place.Offer(what) {
		return true
	}
	for ; may != 0; may &= may - 1 {
		if standers[bits.TrailingZeros64(may)].place.Offer(what) {
			return true
		}
	}
	return false
}

// standBy has a CPU without a thread stand by. The result is serveMessage's.
func standBy(c *amd64.CPU) (*amd64.UserState, bool) {
	s := &standers[c.Index]
	if numCPU.Load() == 1 || attention.due.Load()&dueNow != 0 || rendezvous.Waiting(c.Index) {
		return nil, false
	}
	if s.rest != 0 {
		s.rest--
		return nil, false
	}
	c.UserSpace.Store(0)
	s.place.Begin()
	standing.Or(1 << c.Index)
	what := s.wait(c)
	standing.And(^(1 << c.Index))
	if what == 0 {
		what = s.place.End()
	}
	if what == 0 {
		if s.fails++; s.fails >= standFails {
			s.fails, s.rest = standFails-1, standRest
		}
		return nil, false
	}
	s.fails = 0
	s.stands = true // should the thread not be allowed here any more
	run, now := what&^isWhole, int64(amd64.TSC())
	var v *amd64.UserState
	var enter bool
	if what&isWhole != 0 {
		v, enter = switchTo(c, run, now)
	} else {
		v, enter = goOn(c, run, now)
	}
	s.stands = false
	return v, enter
}

// goOn is switchTo for a thread whose result is not in its registers yet.
func goOn(c *amd64.CPU, run uint32, now int64) (*amd64.UserState, bool) {
	q := &partners[run%ipc.MaxThreads]
	v := userStateAt(q.state)
	if !take(v, run, rendezvous.Result(run)) {
		q.waited += now - q.since
		q.since = 0
		return leave(v, false), false
	}
	return switchTo(c, run, now)
}

// wait waits for what is offered, 0: nothing, and the CPU has waited long enough or has
// something else to do.
func (s *stander) wait(c *amd64.CPU) (what uint32) {
	me := cpuPointer(c)
	t, start, most := &threads[me.current], amd64.TSC(), nsToTicks(standTime)
	if me.timerAt != 0 {
		most = min(most, nsToTicks(max(me.timerAt-ticksToNS(start-amd64.ClockBase), 0)))
	}
	for {
		amd64.Await(s.place.Word(), stand.Open, 16)
		if what = s.place.Offered(); what != 0 {
			return what
		}
		if c.Kicked.Load()|attention.due.Load()&dueNow != 0 || t.signalled() || amd64.TSC()-start > most {
			return 0
		}
		if me.flush.Load() != 0 {
			serveFlush(c)
		}
	}
}

// barred is switchTo for a thread that cannot be continued here at once, its result in its
// registers. One that may only not run on this CPU goes to another that stands by.
func barred(c *amd64.CPU, v *amd64.UserState, run uint32, now int64) (*amd64.UserState, bool) {
	if q := &partners[run%ipc.MaxThreads]; move(c, v, q) {
		q.since = now // all before is counted already
		return switchTo(c, run, now)
	}
	if standers[c.Index].stands || v.Away.Load()>>(c.Index&63)&1 == 0 || v.Kick.Load()|v.Work.Load()&^amd64.WorkLater|attention.due.Load()&dueNow != 0 {
		return leave(v, true), false
	}
	v.CPU.Store(0)
	c.UserSpace.Store(0)
	partners[run%ipc.MaxThreads].since = int64(amd64.TSC())
	if offer(run, isWhole) {
		return standBy(c)
	}
	partners[run%ipc.MaxThreads].since = 0
	return leave(v, true), false
}
