package nucleus

import (
	abi "hardtack/abi/ipc"
	"hardtack/abi/linux"
	"hardtack/arch/amd64"
	"hardtack/nucleus/ipc"
)

// A prepared is a message call whose message the thread's goroutine has put into ipc.Thread:
// its descriptor was looked up, its bytes and descriptors are there.
type prepared struct {
	op    uint32 // less abi.Base
	id    ipc.ID
	badge uint64
}

// Prepare has the thread make a message call, number less abi.Base, in its registers, when
// PerformMessage is called. Work says so until then. The thread's goroutine calls it.
func (u *UserContext) Prepare(op uint32, t *Target) {
	partners[u.Partner].call = prepared{op, t.ID, t.Badge}
	u.Work.Or(WorkMessage)
}

// Prepared tells whether the thread has prepared a message call.
func (u *UserContext) Prepared() bool { return u.Work.Load()&WorkMessage != 0 }

// PerformMessage makes the call that the thread has prepared. The result is as of Run; if
// the thread must do other work first that is u with TrapInterrupt, and the call is still
// prepared.
func (u *UserContext) PerformMessage() *UserContext {
	return contextOf(amd64.PerformMessage(&u.UserState))
}

// servePrepared is amd64.PreparedHandler. The call does not continue in user mode: who gets
// a message that was prepared needs its goroutine too, to unpack it.
func servePrepared(c *amd64.CPU, u *amd64.UserState) *amd64.UserState {
	i, now := u.Partner, int64(amd64.TSC())
	p := &partners[i%ipc.MaxThreads]
	if u.Work.Load()&^(amd64.WorkLater|amd64.WorkMessage) != 0 || !dropFPU(c, u) {
		u.Trap.Kind, u.Trap.Error = TrapInterrupt, 0
		return u
	}
	u.Work.And(^uint32(amd64.WorkMessage))
	call, id := p.call, p.id
	limited := u.RDX != abi.Forever && limit(u, call.op)
	suspend(c, u, p, now)
	run := perform(c, u, i, call.op, call.id, call.badge, u.RDX)
	if run == i {
		if limited {
			rendezvous.Unlimit(i)
		}
		p.since = 0
		rendezvous.Leave(c.Index)
		if r := rendezvous.Result(i); r.Err == linux.EBADF {
			r.Err = linux.EPIPE // it ended since it was looked up
		}
		return comeBack(c, u, false)
	}
	if run == 0 || !rendezvous.IsDirect(run) {
		if rendezvous.Put(c.Index) {
			attention.due.Store(dueNow)
		}
		if busy(u) {
			cancelBusy(c, id)
		}
		return nil
	}
	rendezvous.Leave(c.Index)
	if busy(u) {
		cancelBusy(c, id)
	}
	lastOfLater(c)
	q := &partners[run%ipc.MaxThreads]
	v := userStateAt(q.state)
	q.waited += now - q.since
	q.since = 0
	return comeBack(c, v, take(v, run, rendezvous.Result(run)))
}

// dropFPU takes a thread's x87 registers, which its call destroys, out of the processors.
// It reports false if another holds them and takes long.
func dropFPU(c *amd64.CPU, u *amd64.UserState) bool {
	if c.FPUOwner() != u {
		giveUpFPU(c)
		if !fetchFPU(c, u) {
			return false
		}
	}
	clear(u.X87[2:8]) // all but the control word: they are empty
	return true
}

// comeBack gives a goroutine a thread whose call is over, whole if its result is in the
// registers.
func comeBack(c *amd64.CPU, u *amd64.UserState, whole bool) *amd64.UserState {
	if rendezvous.Waiting(c.Index) {
		attention.due.Store(dueNow)
	}
	u.Trap.Kind, u.Trap.Error = amd64.TrapMessage, 0
	if !whole {
		u.Trap.Error = 1
	}
	return u
}
