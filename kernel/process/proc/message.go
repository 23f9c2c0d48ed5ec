package proc

//oops:stop the nucleus believes the thread to be in a call

import (
	"sync/atomic"

	"hardtack/abi/ipc"
	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/process/endpoint"
	"hardtack/nucleus"
	core "hardtack/nucleus/ipc"
)

// Message calls (abi/ipc). The nucleus carries out those that need only registers
// (nucleus/partner.go), and a thread that waits in one has no goroutine. All others come
// to Message, on the thread's goroutine, which hosts the thread.

// partners are the threads that have made message calls, by their index in the nucleus.
var partners [core.MaxThreads]atomic.Pointer[Thread]

// partnerPool holds the places of partners (0 is unused), which users share.
var partnerPool = accounts.NewPool(core.MaxThreads - 1)

// MessageWoken resumes a thread that waited inside the nucleus. Callers may hold
// Process.mu and treeMu.
func MessageWoken(i uint32, hosted bool) {
	t := partners[i].Load()
	if hosted {
		t.delivered.Store(true)
		t.Wake()
		return
	}
	t.launch()
}

// became returns the thread that left user mode, instead of one that waits inside
// the nucleus now; nil: nobody.
func (t *Thread) became(u *nucleus.UserContext) *Thread {
	r := t.runner
	if u != nil {
		return r.runs(partners[u.Partner].Load())
	}
	r.runs(nil)
	nucleus.ServeMessages()
	if !wait.Quiet() {
		return nil
	}
	i := nucleus.Linger()
	if i == 0 {
		return nil
	}
	next := partners[i].Load()
	next.User.Woken()
	return r.runs(next)
}

// letter is the buffer for a long message or one with descriptors (ipc.Buffer).
type letter [ipc.LongBytes + 4*ipc.MaxDescriptors]byte

// joinNucleus registers a thread with the nucleus.
func (t *Thread) joinNucleus() linux.Errno {
	if t.partner.Load() != 0 {
		return 0
	}
	u := t.Ctx.User()
	if !partnerPool.Charge(u, 1) {
		return linux.ENFILE
	}
	id, e := t.User.Join(&t.Space.AS)
	if e != 0 {
		partnerPool.Release(u, 1)
	} else {
		t.partnerUser = u
		partners[id.Index()].Store(t)
		t.partner.Store(uint64(id))
	}
	return e
}

// leaveNucleus ends that, and callers that wait for a reply get EPIPE. The thread gets
// another address space, or ends.
func (t *Thread) leaveNucleus() {
	id := core.ID(t.partner.Load())
	if id == 0 {
		return
	}
	waited, _ := nucleus.Waited(id.Index(), ticks())
	t.Proc.mu.Lock()
	t.away += waited
	t.partner.Store(0)
	t.Proc.mu.Unlock()
	partners[id.Index()].Store(nil) // the place may be another's once it has left
	t.User.Leave()
	partnerPool.Release(t.partnerUser, 1)
	nucleus.ServeMessages()
}

// inNucleus returns how long the thread has waited inside the nucleus, in ticks, and
// whether it does now.
func (t *Thread) inNucleus(now int64) (int64, bool) {
	if id := core.ID(t.partner.Load()); id != 0 {
		return nucleus.Waited(id.Index(), now)
	}
	return 0, false
}

// endWait ends the thread's wait inside the nucleus: its work word says why.
func (t *Thread) endWait() {
	if id := core.ID(t.partner.Load()); id != 0 {
		nucleus.CancelWait(id)
		nucleus.ServeMessages()
	}
}

// forgetTargets is called when the thread gets another descriptor table.
func (t *Thread) forgetTargets() {
	if t.partner.Load() != 0 {
		t.User.Forget()
	}
}

// Message carries out the message call in the thread's registers.
func (t *Thread) Message() {
	op := uint32(t.User.RAX) - ipc.Base
	if e := t.message(op); e != 0 {
		t.User.RAX = -uint64(e)
	}
}

func (t *Thread) message(op uint32) linux.Errno {
	if e := t.joinNucleus(); e != 0 {
		return e
	}
	target, e := t.target(op)
	if e != 0 {
		return e
	}
	u := &t.User
	th, result := u.MessageState()
	switch op + ipc.Base {
	case ipc.Send, ipc.Call, ipc.Reply, ipc.ReplyRecv:
		if e := t.packMessage(th); e != 0 {
			return e
		}
	}
	limit := int64(wait.NoDeadline)
	switch op + ipc.Base {
	case ipc.Reply, ipc.Signal:
	default:
		if u.RDX != ipc.Now && u.RDX != ipc.Forever {
			limit = max(int64(min(u.RDX, 1<<62)), 1)
		}
	}
	if u.Work.Load()&^workTimer != 0 {
		// First that, or it would end a call that is received at once.
		dropFiles(&th.Out)
		t.SetCallNumber(uint64(uint32(u.RAX)))
		t.FinishRestart(linux.ERESTARTNOINTR)
		return 0
	}
	t.delivered.Store(false)
	u.Host(true)
	waits := u.Message(op, &target, u.RDX == ipc.Now)
	nucleus.ServeMessages()
	timedOut := waits && t.awaitMessage(limit)
	u.Host(false)
	switch {
	case timedOut && (result.Err == linux.ERESTARTSYS || result.Err == linux.EINTR):
		result.Err = linux.ETIMEDOUT
	case result.Err == linux.EBADF:
		result.Err = linux.EPIPE // it ended since target looked
	}
	dropFiles(&th.Out)
	t.finishMessage()
	return 0
}

// awaitMessage waits until the call that the goroutine hosts is over, and reports
// whether that is because of the time limit.
func (t *Thread) awaitMessage(limit int64) (timedOut bool) {
	for {
		t.Arm()
		if t.delivered.Load() {
			return false
		}
		switch t.Sleep(limit) {
		case wait.TimedOut:
			timedOut = true
		case wait.Woken:
			continue
		}
		break
	}
	t.endWait()
	for {
		t.Arm()
		if t.delivered.Load() {
			return timedOut
		}
		t.SleepUninterruptible(wait.NoDeadline)
	}
}

// target finds out what the call's descriptor is, and has the nucleus remember it.
func (t *Thread) target(op uint32) (nucleus.Target, linux.Errno) {
	want := nucleus.MessageTarget(op)
	if want == nucleus.NoTarget {
		return nucleus.Target{}, 0
	}
	fd := uint32(t.User.RDI)
	target, e := t.targetAt(fd, fd, want)
	if e == 0 && op+ipc.Base == ipc.SignalWait {
		var second nucleus.Target
		second, e = t.targetAt(fd+1, uint32(t.User.RSI), want)
		target.Badge = uint64(second.ID)
	}
	return target, e
}

// targetAt is target for a descriptor, remembered at a place.
func (t *Thread) targetAt(at, fd uint32, want nucleus.TargetKind) (nucleus.Target, linux.Errno) {
	seen := t.FDs.Changes.Load()
	f := t.FDs.Get(int32(fd))
	if f == nil {
		return nucleus.Target{}, linux.EBADF
	}
	target, e := endpoint.TargetOf(f)
	f.Put()
	if target.Kind != want {
		return target, linux.EBADF
	}
	target.FD = fd
	if e == 0 {
		t.User.Remember(at, target, &t.FDs.Changes, seen)
	}
	return target, e
}

// packMessage puts what is not in registers into the message: its bytes if they
// are many, its descriptors.
func (t *Thread) packMessage(th *core.Thread) linux.Errno {
	info, at := uint32(t.User.RSI), uio.Addr(t.User.RBX)
	bytes, n := ipc.Bytes(info), ipc.Descriptors(info)
	if bytes > ipc.LongBytes || n > ipc.MaxDescriptors {
		return linux.EMSGSIZE
	}
	if bytes <= ipc.ShortBytes && n == 0 {
		return 0
	}
	if at == 0 {
		return linux.EFAULT
	}
	if t.letter == nil {
		t.letter = new(letter)
	}
	b := t.letter[:]
	if bytes > ipc.ShortBytes {
		if _, e := t.Mem.CopyIn(b[:bytes], at); e != 0 {
			return e
		}
		clear(b[bytes:min(bytes+8, ipc.LongBytes)]) // of the last word, too
		for i := range (bytes + 7) / 8 {
			th.Long[i] = le.Uint64(b[8*i:])
		}
	}
	if n > 0 {
		if _, e := t.Mem.CopyIn(b[:4*n], at+ipc.LongBytes); e != 0 {
			return e
		}
	}
	for i := range n {
		f := t.FDs.Get(int32(le.Uint32(b[4*i:])))
		if f == nil {
			dropFiles(&th.Out)
			return linux.EBADF
		}
		th.Out[i] = endpoint.Send(f)
	}
	return 0
}

// dropFiles closes the files of a message that nobody took.
func dropFiles(numbers *[core.MaxDescriptors]uint64) {
	for i, number := range numbers {
		if number == 0 {
			continue
		}
		numbers[i] = 0
		if f := endpoint.Receive(number); f != nil {
			f.Put()
		}
	}
}

// finishMessage puts the result of a call that is over where it belongs: the
// registers, the Buffer, the descriptor table.
func (t *Thread) finishMessage() {
	u := &t.User
	if u.TakeResult() {
		return
	}
	th, r := u.MessageState()
	if r.Err >= linux.ERESTARTSYS {
		t.SetCallNumber(uint64(uint32(u.RAX)))
		t.FinishRestart(r.Err)
		return
	}
	at := uio.Addr(u.RBX)
	if t.letter == nil {
		t.letter = new(letter)
	}
	b := t.letter[:]
	bytes, n := r.Info.Bytes(), 0
	if bytes > ipc.ShortBytes {
		copy(th.Short[:], th.Long[:])
		for i := range (bytes + 7) / 8 {
			le.PutUint64(b[8*i:], th.Long[i])
		}
		if at != 0 {
			t.Mem.CopyOut(at, b[:bytes])
		}
	}
	for i := range th.Came {
		f := endpoint.Receive(th.In[i])
		if f == nil {
			continue
		}
		fd, e := int32(-1), linux.EFAULT
		if at != 0 {
			fd, e = t.FDs.Add(f, 0, t.NoFile(), true)
		}
		if e != 0 {
			f.Put()
			continue
		}
		le.PutUint32(b[4*n:], uint32(fd))
		if _, e := t.Mem.CopyOut(at+ipc.LongBytes+uio.Addr(4*n), b[4*n:4*n+4]); e != 0 {
			t.FDs.Close(&t.Ctx, fd)
			continue
		}
		n++
	}
	th.Came = 0
	r.Info = core.MakeInfo(bytes, n)
	u.PutResult()
}
