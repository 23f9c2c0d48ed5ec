package nucleus

import (
	abi "hardtack/abi/ipc"
	"hardtack/abi/linux"
	"hardtack/arch/amd64"
	"hardtack/nucleus/ipc"
)

// serveMessage is amd64.MessageHandler. The two operations of a call come first; what
// is in their way is serveOther's.
//
//go:nosplit
func serveMessage(c *amd64.CPU, u *amd64.UserState, op uint32, now int64) (next *amd64.UserState, enter bool) {
	// First, while nothing is in registers that would have to be kept over the call.
	if u.RDX != abi.Forever && op < abi.Signal-abi.Base && !limit(u, op) {
		return serveOther(c, u, op, now)
	}
	i := u.Partner
	p := &partners[i%ipc.MaxThreads]
	k := &p.known[u.RDI%knownTargets] // nobody's, partner 0's, know nothing
	if k.key != directKinds[op%8].key(u.RDI) || p.seen != load64(p.changes) ||
		uint32(u.RSI) > abi.ShortBytes || u.Work.Load()&^amd64.WorkLater != 0 {
		return serveOther(c, u, op, now)
	}
	id, run := p.id, uint32(0)
	suspend(c, u, p, now)
	if op == abi.Call-abi.Base {
		run = rendezvous.CallDirect(c.Index, i, endpointAt(k.at), k.id, k.badge, u.Registers())
	} else {
		run = rendezvous.ReplyDirect(c.Index, i, endpointAt(k.at), k.id, u.Registers())
	}
	if run-1 >= ipc.MaxThreads-1 {
		return unswitched(c, u, id, run, now)
	}
	if busy(u) {
		cancelBusy(c, id)
	}
	return switchTo(c, run, now)
}

// unswitched is what comes after an operation of a call that gives the CPU no other
// thread.
func unswitched(c *amd64.CPU, u *amd64.UserState, id ipc.ID, run uint32, now int64) (*amd64.UserState, bool) {
	switch {
	case run&ipc.Queued != 0: // u may be another CPU's already
		watchedEndpoints[run%ipc.MaxEndpoints].mark()
		if busy(u) {
			cancelBusy(c, id)
		}
		return standBy(c)
	case run&ipc.GoesOn != 0:
		partners[id.Index()%ipc.MaxThreads].since = 0
		if run %= ipc.MaxThreads; !offer(run, isWhole) {
			rendezvous.Requeue(c.Index, run)
		}
		return stay(c, u, true, false)
	}
	return serveOther(c, u, uint32(u.RAX)-abi.Base, now)
}

// stay has a thread go on whose call is over, whole if its result is in the registers.
// soon: it has said that it will wait.
func stay(c *amd64.CPU, u *amd64.UserState, whole, soon bool) (*amd64.UserState, bool) {
	me := int32(c.Index) + 1
	u.CPU.Store(me) // also the fence before the checks
	d := attention.due.Load()
	if d&dueNow == 0 && rendezvous.Waiting(c.Index) {
		if numCPU.Load() == 1 { // nobody else could run it: perhaps the next call does
			attention.due.Store(dueLater(c))
		} else {
			d = place(c, soon)
		}
	}
	if d&dueNow != 0 || !whole || u.Kick.Load() != 0 {
		return leave(u, whole), false
	}
	c.SetFPUOwner(u)
	u.FPUCPU.Store(me)
	return u, true
}

// directKinds are the kinds of targets of the operations of a call; nothing known is of
// the others'.
var directKinds = [8]TargetKind{^NoTarget, ^NoTarget, SendTarget, ^NoTarget, ReceiveTarget, ^NoTarget, ^NoTarget, ^NoTarget}

// switchTo goes on with a thread that waited, is ready and in no queue, and has its
// result in the registers.
//
//go:nosplit
func switchTo(c *amd64.CPU, run uint32, now int64) (*amd64.UserState, bool) {
	q := &partners[run%ipc.MaxThreads]
	v := userStateAt(q.state)
	q.waited += now - q.since
	q.since = 0
	me := int32(c.Index) + 1
	v.CPU.Store(me)
	c.UserSpace.Store(q.space) // also the fence before the checks
	if v.Kick.Load()|v.Work.Load()&^amd64.WorkLater|attention.due.Load()&dueNow|uint32(v.Away.Load()>>(c.Index&63))&1 != 0 {
		return barred(c, v, run, now)
	}
	if gen := load64(q.gen); c.Space != q.space || c.Gen != gen {
		c.NewRoot, c.Gen = q.root, gen
	}
	c.SetUser(v)
	c.SetFPUOwner(v)
	v.FPUCPU.Store(me)
	v.LastCPU.Store(me - 1)
	if c.SliceArmed == 0 && !enterUser(c, v, q.space, c.Gen, q.root) {
		armTimer(c, now) // user mode is entered all the same
	}
	return v, true
}

// limit announces until when a thread waits in the call that it is about to make. It
// reports false if the call has no time limit.
func limit(u *amd64.UserState, op uint32) bool {
	if !callShapes[op%8].timed || u.RDX == abi.Now || u.Partner == 0 {
		return false
	}
	if rendezvous.Limit(u.Partner, u.RDX) {
		attention.due.Store(dueNow)
	}
	return true
}

// suspend prepares a thread to wait, before it does: others may switch to it at once.
func suspend(c *amd64.CPU, u *amd64.UserState, p *partner, now int64) {
	p.since = now
	c.FPU = 0
	u.FPUCPU.Store(0)
	u.CPU.Store(0)
}

// serveOther serves any message call. What it does not finish leaves user mode with
// the call's registers as they were.
func serveOther(c *amd64.CPU, u *amd64.UserState, op uint32, now int64) (next *amd64.UserState, enter bool) {
	i := u.Partner
	p := &partners[i%ipc.MaxThreads]
	shape := &callShapes[op%8]
	k := &p.known[u.RDI%knownTargets]
	switch {
	case i == 0:
		return elsewhere(u), false
	case shape.kind != NoTarget && (k.key != shape.kind.key(u.RDI) || p.seen != load64(p.changes)):
		return elsewhere(u), false
	case shape.sends && uint32(u.RSI) > abi.ShortBytes:
		return elsewhere(u), false
	case u.Work.Load()&^amd64.WorkLater != 0:
		return elsewhere(u), false
	}
	id, badge := p.id, k.badge
	if op == abi.SignalWait-abi.Base {
		second := &p.known[(u.RDI+1)%knownTargets]
		if second.key != NotificationTarget.key(u.RSI) {
			return elsewhere(u), false
		}
		badge = uint64(second.id)
	}
	limited := u.RDX != abi.Forever && limit(u, op)
	suspend(c, u, p, now)
	run := perform(c, u, i, op, k.id, badge, u.RDX)
	if run == i {
		if limited {
			rendezvous.Unlimit(i)
		}
		p.since = 0
		rendezvous.Leave(c.Index)
		r := rendezvous.Result(i)
		if r.Err == linux.EBADF {
			return elsewhere(u), false // was that the endpoint's end?
		}
		return stay(c, u, take(u, i, r), op == abi.Signal-abi.Base && uint32(u.RSI)&abi.Soon != 0)
	}
	if run == 0 || !rendezvous.IsDirect(run) {
		if rendezvous.Put(c.Index) {
			attention.due.Store(dueNow)
		}
		if busy(u) {
			cancelBusy(c, id)
		}
		return standBy(c)
	}
	rendezvous.Leave(c.Index)
	if busy(u) {
		cancelBusy(c, id)
	}
	lastOfLater(c)
	q := &partners[run%ipc.MaxThreads]
	v := userStateAt(q.state)
	if !take(v, run, rendezvous.Result(run)) {
		q.waited += now - q.since
		q.since = 0
		return leave(v, false), false
	}
	return switchTo(c, run, now)
}

// lastOfLater is called when a thread was taken that the CPU may have kept for later.
func lastOfLater(c *amd64.CPU) {
	if later := dueLater(c); attention.due.Load()&later != 0 && !rendezvous.Waiting(c.Index) {
		attention.due.And(^later)
	}
}

// place decides what becomes of the threads that the CPU's current one has woken, which
// goes on. The result is dueNow if it is to leave user mode for them. soon: it has said that
// it will wait.
func place(c *amd64.CPU, soon bool) uint32 {
	later := dueLater(c)
	switch {
	case soon && later != 0:
		armTimer(c, now()+soonTime)
		attention.due.Or(later)
		return later
	case offerAll(c), callLingerer(c):
		return 0
	}
	return dueNow
}

// soonTime is how long a thread waits, in nanoseconds, for one that will wait soon.
const soonTime = 50_000

// elsewhere leaves a call to the thread's goroutine, as any system call. What those
// save and a message call does not is made up for.
func elsewhere(u *amd64.UserState) *amd64.UserState {
	rendezvous.Unlimit(u.Partner)
	partners[u.Partner%ipc.MaxThreads].since = 0
	u.RCX, u.R11 = u.RIP, u.RFLAGS
	u.Trap.Kind = amd64.TrapSyscall
	u.CPU.Store(0)
	return u
}

// leave leaves user mode after a call that is over, whole if its result is in the
// registers.
func leave(u *amd64.UserState, whole bool) *amd64.UserState {
	attention.due.Store(dueNow)
	u.Trap.Kind, u.Trap.Error = amd64.TrapMessage, 0
	if !whole {
		u.Trap.Error = 1
	}
	u.CPU.Store(0)
	return u
}

// busy tells whether a thread that has come to wait was given something to do
// meanwhile. It may be another CPU's already.
func busy(u *amd64.UserState) bool {
	return u.Work.Add(0)&^amd64.WorkLater != 0 // locked: after the store that says it waits
}

// cancelBusy ends the wait of such a thread. Whoever is current on the CPU goes into
// the run queue.
func cancelBusy(c *amd64.CPU, id ipc.ID) {
	rendezvous.Cancel(c.Index, id)
	rendezvous.Put(c.Index) // Cancel made somebody current
	attention.due.Store(dueNow)
}

// perform carries out an operation of a thread that is ready and in no queue. The
// result is which thread is current on the CPU then; if it is another, or none, this
// one waits, and is not ours any more. A deadline that is a time was given to Limit
// before; a Signal's bits are in the place of the deadline.
func perform(c *amd64.CPU, u *amd64.UserState, i, op uint32, id ipc.ID, badge, deadline uint64) (run uint32) {
	n, core := &rendezvous, c.Index
	th := n.Thread(i)
	n.Enter(core, i)
	info := ipc.Info(u.RSI)
	th.Short[0], th.Short[1], th.Short[2] = u.R8, u.R9, u.R12
	th.Short[3], th.Short[4], th.Short[5] = u.R13, u.R14, u.R15
	switch op + abi.Base {
	case abi.Call:
		if run = n.Call(core, id, badge, info, deadline).Run; run != i {
			markSenders(id)
		}
	case abi.ReplyRecv:
		run = n.ReplyRecv(core, ipc.Token(u.R10), info, id, deadline).Run
	case abi.Send:
		if run = n.Send(core, id, badge, info, deadline).Run; run != i {
			markSenders(id)
		}
	case abi.Recv:
		run = n.Recv(core, id, deadline).Run
	case abi.Reply:
		run = n.Reply(core, ipc.Token(u.R10), info).Run
	case abi.Signal:
		e := linux.Errno(linux.EINVAL)
		if info&^abi.Soon == 0 {
			_, e = n.Signal(core, id, deadline)
		}
		*n.Result(i) = ipc.Result{Err: e}
		if run = i; e == 0 && n.Bits(id) != 0 {
			watchedNotifications[id.Index()%ipc.MaxNotifications].mark()
		}
	case abi.Wait:
		run = n.Wait(core, id, deadline).Run
	case abi.SignalWait:
		peer, bits := ipc.ID(badge), u.R8
		u.RAX = abi.Wait // to be repeated once the bits are set
		if run = n.SignalWait(core, peer, bits, id, deadline).Run; run == i {
			u.RAX = abi.SignalWait
		}
		if n.Bits(peer) != 0 {
			watchedNotifications[peer.Index()%ipc.MaxNotifications].mark()
		}
	}
	return run
}

func markSenders(id ipc.ID) {
	if rendezvous.Senders(id) {
		watchedEndpoints[id.Index()%ipc.MaxEndpoints].mark()
	}
}

// take puts the result of a call into the thread's registers. It reports false if
// that is not all.
func take(u *amd64.UserState, i uint32, r *ipc.Result) bool {
	th := rendezvous.Thread(i)
	if r.Err >= linux.ERESTARTSYS || r.Info.Bytes() > abi.ShortBytes || th.Came != 0 {
		return false
	}
	put(u, th, r)
	return true
}

func put(u *amd64.UserState, th *ipc.Thread, r *ipc.Result) {
	u.RAX = uint64(r.Info)
	if r.Err != 0 {
		u.RAX = errno(r.Err)
	}
	u.RDX, u.R10 = r.Badge, uint64(r.Token)
	u.R8, u.R9, u.R12 = th.Short[0], th.Short[1], th.Short[2]
	u.R13, u.R14, u.R15 = th.Short[3], th.Short[4], th.Short[5]
}

// Private calls of the kernel's goroutines, by the first argument of sysMessage.
const (
	messageNewThread = iota
	messageEndThread
	messageNewEndpoint
	messageEndEndpoint
	messageNewNotification
	messageEndNotification
	messageCancel
	messageTake
	messageEndLinger
	messageExpire
)

// serveRendezvous serves sysMessage. A negative result is an errno.
func serveRendezvous(c *amd64.CPU, what, a, b uint64) uint64 {
	n, core := &rendezvous, c.Index
	result := func(id ipc.ID, e linux.Errno) uint64 {
		if e != 0 {
			return errno(e)
		}
		return uint64(id)
	}
	var r uint64
	switch what & 0xff {
	case messageNewThread:
		return result(n.NewThread(core, 0))
	case messageNewEndpoint:
		id, e := n.NewEndpoint(core)
		watchedEndpoints[id.Index()%ipc.MaxEndpoints].watched.Store(0)
		return result(id, e)
	case messageNewNotification:
		id, e := n.NewNotification(core)
		watchedNotifications[id.Index()%ipc.MaxNotifications].watched.Store(0)
		return result(id, e)
	case messageEndThread:
		n.Enter(core, ipc.ID(a).Index())
		n.DestroyThread(core, ipc.ID(a))
	case messageEndEndpoint:
		n.DestroyEndpoint(core, ipc.ID(a))
	case messageEndNotification:
		n.DestroyNotification(core, ipc.ID(a))
	case messageEndLinger:
		callLingerer(c)
	case messageCancel:
		n.Cancel(core, ipc.ID(a))
	case messageExpire:
		r = uint64(n.Expire(core, uint32(b), a))
	case messageTake:
		return takeWoken(core)
	}
	if n.Put(core) {
		attention.due.Store(dueNow)
	}
	return r
}

// takeWoken returns up to four threads that were woken, 16 bits each.
func takeWoken(core uint32) (r uint64) {
	for from, k := uint32(0), 0; from < uint32(numCPU.Load()) && k < 4; {
		i := rendezvous.Take(core, from)
		if i == 0 {
			from++
			continue
		}
		r |= uint64(i) << (16 * k)
		k++
	}
	return r
}
