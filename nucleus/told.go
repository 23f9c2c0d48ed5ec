package nucleus

import "hardtack/arch/amd64"

// Programs with restartable sequences are told in their memory which processor they run
// on, and Away keeps them from all others until their goroutine has told them of another.
// Every program of the C library is one of these. A message call that goes on with such a
// thread on another processor tells it here.

// told is where.
type told struct {
	at  uintptr // of struct rseq in the kernel's memory; 0: nowhere
	gen uint64  // while this is the generation of the address space
}

const rseqSection = 8 // struct rseq's rseq_cs

// Told says that the thread has been told its processor, at an address of the kernel's
// memory, which belongs to the thread's address space while that has a generation; 0: it is
// told of none. Away is all processors but this one. The thread's goroutine calls it.
func (u *UserContext) Told(at uintptr, gen uint64) {
	if u.Partner != 0 {
		partners[u.Partner].told = told{at, gen}
	}
}

// movable tells whether the thread can be told of another processor.
func (q *partner) movable() bool { return q.told.at != 0 && q.told.gen == load64(q.gen) }

// keptFrom is the processors on which the nucleus cannot go on with a thread.
func keptFrom(u *amd64.UserState, q *partner) uint64 {
	if !q.movable() {
		return u.Away.Load()
	}
	if allowed := u.Allowed.Load(); allowed != 0 {
		return ^allowed
	}
	return 0
}

// move tells a thread that it is on the CPU now, where it goes on, if that is all that keeps
// it. The CPU's UserSpace is the thread's since before: who takes the page away waits until
// the CPU has left the space, or has the space's new generation.
func move(c *amd64.CPU, v *amd64.UserState, q *partner) bool {
	me := uint64(1) << (c.Index & 63)
	away := v.Away.Load()
	switch {
	case v.Kick.Load()|v.Work.Load()&^amd64.WorkLater|attention.due.Load()&dueNow != 0:
		return false
	case ^away&(^away-1) != 0 || away == ^uint64(0): // it has been told of none, or is to be told
		return false
	case !q.movable() || load64(q.told.at+rseqSection) != 0 || keptFrom(v, q)&me != 0:
		return false
	}
	v.Away.Store(^me)
	if keptFrom(v, q)&me != 0 { // who changed that meanwhile may have added to Away before
		v.Away.Or(me)
		return false
	}
	store64(q.told.at, uint64(c.Index)|uint64(c.Index)<<32)
	return true
}
