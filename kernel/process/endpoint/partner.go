package endpoint

//oops:stop the nucleus believes the thread to be in a call

import (
	"sync/atomic"

	"hardtack/abi/ipc"
	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/process/proc"
	"hardtack/nucleus"
	core "hardtack/nucleus/ipc"
)

// partner is a thread that makes message calls. It implements proc.Partner.
type partner struct {
	t    *proc.Thread   // immutable
	id   core.ID        // its name in the nucleus; immutable
	user *accounts.User // who is charged for its place; immutable

	numbers [4 * ipc.MaxDescriptors]byte // of descriptors on their way; the thread's
}

// partners are the threads that make message calls, by their index in the nucleus; 0 is
// nobody's.
var partners [core.MaxThreads]atomic.Pointer[partner]

// partnerPool holds the places of partners (0 is unused), which users share.
var partnerPool = accounts.NewPool(core.MaxThreads - 1)

// join begins a thread's part in message calls.
func join(t *proc.Thread) (*partner, linux.Errno) {
	u := t.Ctx.User()
	if !partnerPool.Charge(u, 1) {
		return nil, linux.ENFILE
	}
	id, e := t.User.Join(&t.Space.AS)
	if e != 0 {
		partnerPool.Release(u, 1)
		return nil, e
	}
	p := &partner{t: t, id: id, user: u}
	partners[id.Index()].Store(p)
	t.SetPartner(p)
	return p, 0
}

// Leave implements proc.Partner: callers that wait for a reply get EPIPE.
func (p *partner) Leave() {
	th, _ := p.t.User.MessageState()
	dropFiles(&th.Out) // of a call that was not made, or ended
	dropFiles(&th.In)  // of a message that came too late
	th.Came = 0
	partners[p.id.Index()].Store(nil) // the place may be another's once it has left
	p.t.User.Leave()
	partnerPool.Release(p.user, 1)
	nucleus.ServeMessages()
}

// Waited implements proc.Partner.
func (p *partner) Waited(now int64) (ticks int64, waits bool) {
	return nucleus.Waited(p.id.Index(), now)
}

// CancelWait implements proc.Partner.
func (p *partner) CancelWait() {
	nucleus.CancelWait(p.id)
	nucleus.ServeMessages()
}

// Forget implements proc.Partner.
func (p *partner) Forget() { p.t.User.Forget() }

// Woken resumes a thread that waited inside the nucleus. Callers may hold any lock of
// package proc.
func Woken(i uint32) { partners[i].Load().t.Launch() }

// Left returns the thread that left user mode with a context. For nil it returns one
// that is woken within a moment and has no goroutine, or nil.
func Left(u *nucleus.UserContext) *proc.Thread {
	if u != nil {
		return partners[u.Partner].Load().t
	}
	nucleus.ServeMessages()
	if !wait.Quiet() {
		return nil
	}
	i := nucleus.Linger()
	if i == 0 {
		return nil
	}
	t := partners[i].Load().t
	t.User.Woken()
	return t
}
