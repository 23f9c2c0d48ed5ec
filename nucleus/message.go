package nucleus

import (
	abi "hardtack/abi/ipc"
	"hardtack/abi/linux"
	"hardtack/arch/amd64"
	"hardtack/nucleus/ipc"
)

// serveMessage is amd64.MessageHandler. What it does not finish here leaves user mode
// with the call's registers as they were.
func serveMessage(c *amd64.CPU, u *amd64.UserState) (next *amd64.UserState, enter bool) {
	i, op := u.Partner, (uint32(u.RAX)-abi.Base)%amd64.MessageCalls
	p := &partners[i%ipc.MaxThreads]
	if i == 0 {
		return elsewhere(u)
	}
	var t *Target
	if want := targetOf[op]; want != NoTarget {
		fd := uint32(u.RDI)
		t = &p.known[fd%knownTargets]
		if t.FD != fd || t.Kind != want || p.seen != load64(p.changes) {
			return elsewhere(u)
		}
	}
	deadline := uint64(ipc.Forever)
	if u.RDX == abi.Now {
		deadline = ipc.Now
	} else if u.RDX != abi.Forever && timed[op] {
		return elsewhere(u)
	}
	if uint32(u.RSI) > abi.ShortBytes && sends[op] {
		return elsewhere(u)
	}

	// It is to be ready to wait before it does: others may switch to it at once.
	now := int64(amd64.TSC())
	p.since = now
	u.CPU.Store(0)
	run := perform(c, i, op, t, deadline)
	if run == i {
		u.CPU.Store(int32(c.Index) + 1)
		p.since = 0
		meeting.Leave(c.Index)
		r := meeting.Result(i)
		if r.Err == linux.EBADF {
			return elsewhere(u) // was that the endpoint's end?
		}
		whole := take(u, i, r)
		if meeting.Put(c.Index) || due.Load() != 0 || !whole || u.Kick.Load() != 0 {
			return leave(u, whole)
		}
		return u, true
	}
	cancelBusy(c, u, p.id)
	if run == 0 || partners[run%ipc.MaxThreads].hosted {
		if meeting.Put(c.Index) {
			due.Store(1)
		}
		return nil, false
	}
	return switchTo(c, run, now)
}

// timed calls have a deadline in RDX, and sends a message in RSI.
var (
	timed = [amd64.MessageCalls]bool{abi.Send - abi.Base: true, abi.Recv - abi.Base: true, abi.Call - abi.Base: true,
		abi.ReplyRecv - abi.Base: true, abi.Wait - abi.Base: true}
	sends = [amd64.MessageCalls]bool{abi.Send - abi.Base: true, abi.Call - abi.Base: true, abi.Reply - abi.Base: true,
		abi.ReplyRecv - abi.Base: true}
)

// elsewhere leaves a call to the thread's goroutine, as any system call.
func elsewhere(u *amd64.UserState) (*amd64.UserState, bool) {
	u.CPU.Store(0)
	return u, false
}

// leave leaves user mode after a call that is over, whole if its result is in the
// registers.
func leave(u *amd64.UserState, whole bool) (*amd64.UserState, bool) {
	due.Store(1)
	u.Trap.Kind, u.Trap.Error = amd64.TrapMessage, 0
	if !whole {
		u.Trap.Error = 1
	}
	u.CPU.Store(0)
	return u, false
}

// cancelBusy ends the wait of a thread that has come to wait while somebody gave it
// something to do. It may be another's already: nothing of it is changed.
func cancelBusy(c *amd64.CPU, u *amd64.UserState, id ipc.ID) {
	if u.Work.Add(0)&^amd64.WorkLater != 0 { // locked: after the store that says it waits
		meeting.Cancel(c.Index, id)
	}
}

// switchTo goes on with a thread that waited.
func switchTo(c *amd64.CPU, i uint32, now int64) (*amd64.UserState, bool) {
	p := &partners[i%ipc.MaxThreads]
	u := userStateAt(p.state)
	p.waited += now - p.since
	p.since = 0
	whole := take(u, i, meeting.Result(i))
	meeting.Leave(c.Index)
	u.CPU.Store(int32(c.Index) + 1)
	c.UserSpace.Store(p.space) // also the fence before the checks
	if meeting.Put(c.Index) || due.Load() != 0 || !whole || u.Kick.Load() != 0 || u.Work.Load()&^amd64.WorkLater != 0 {
		return leave(u, whole)
	}
	c.SetUser(u)
	if gen := load64(p.gen); c.Space != p.space || c.Gen != gen || c.FPUOwner() != u || c.SliceArmed == 0 {
		if !enterUser(c, u, p.space, gen, p.root) {
			return leave(u, whole)
		}
	}
	return u, true
}

// perform carries out an operation of a thread that is ready and in no queue. The
// result is which thread is current on the CPU then; if it is another, or none, this
// one waits, and is not ours any more.
func perform(c *amd64.CPU, i, op uint32, t *Target, deadline uint64) (run uint32) {
	n, core := &meeting, c.Index
	u, th := userStateAt(partners[i%ipc.MaxThreads].state), n.Thread(i)
	n.Enter(core, i)
	info := ipc.Info(u.RSI)
	th.Short[0], th.Short[1], th.Short[2] = u.R8, u.R9, u.R12
	th.Short[3], th.Short[4], th.Short[5] = u.R13, u.R14, u.R15
	switch op + abi.Base {
	case abi.Call:
		if run = n.Call(core, t.ID, t.Badge, info, deadline).Run; run != i {
			markSenders(t.ID)
		}
	case abi.ReplyRecv:
		run = n.ReplyRecv(core, ipc.Token(u.R10), info, t.ID, deadline).Run
	case abi.Send:
		if run = n.Send(core, t.ID, t.Badge, info, deadline).Run; run != i {
			markSenders(t.ID)
		}
	case abi.Recv:
		run = n.Recv(core, t.ID, deadline).Run
	case abi.Reply:
		run = n.Reply(core, ipc.Token(u.R10), info).Run
	case abi.Signal:
		_, e := n.Signal(core, t.ID, u.RDX)
		*n.Result(i) = ipc.Result{Err: e}
		if run = i; e == 0 && n.Bits(t.ID) != 0 {
			watchedNotifications[t.ID.Index()%ipc.MaxNotifications].mark()
		}
	case abi.Wait:
		run = n.Wait(core, t.ID, deadline).Run
	}
	return run
}

func markSenders(id ipc.ID) {
	if meeting.Senders(id) {
		watchedEndpoints[id.Index()%ipc.MaxEndpoints].mark()
	}
}

// take puts the result of a call into the thread's registers. It reports false if
// that is not all.
func take(u *amd64.UserState, i uint32, r *ipc.Result) bool {
	th := meeting.Thread(i)
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
	messagePerform
)

// messageWaits is messagePerform's result when the thread waits.
const messageWaits = 1

// serveMeeting serves sysMessage. A negative result is an errno.
func serveMeeting(c *amd64.CPU, what, a, b uint64) uint64 {
	n, core := &meeting, c.Index
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
	case messageCancel:
		n.Cancel(core, ipc.ID(a))
	case messageTake:
		// Up to four, 16 bits each.
		for from, k := uint32(0), 0; from < uint32(numCPU.Load()) && k < 4; {
			i := n.Take(core, from)
			if i == 0 {
				from++
				continue
			}
			r |= uint64(i) << (16 * k)
			k++
		}
		return r
	case messagePerform:
		// what: call | op<<8 | index<<16 | deadline is Now<<32
		i := uint32(what >> 16 & 0xffff)
		p := &partners[i%ipc.MaxThreads]
		u, id := userStateAt(p.state), p.id
		deadline := uint64(ipc.Forever)
		if what>>32 != 0 {
			deadline = ipc.Now
		}
		t := Target{ID: ipc.ID(a), Badge: b}
		if perform(c, i, uint32(what>>8&0xff)%amd64.MessageCalls, &t, deadline) != i {
			r = messageWaits
			cancelBusy(c, u, id)
		} else {
			n.Leave(core)
		}
	}
	if n.Put(core) {
		due.Store(1)
	}
	return r
}
