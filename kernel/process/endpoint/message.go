package endpoint

//oops:stop the nucleus believes the thread to be in a call

import (
	"encoding/binary"

	"hardtack/abi/ipc"
	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/process/proc"
	"hardtack/nucleus"
	core "hardtack/nucleus/ipc"
)

// Message calls (abi/ipc). The nucleus carries out those that need only registers
// (nucleus/partner.go), and a thread that waits in one has no goroutine. All others come
// to message, on the thread's goroutine, which hosts the thread.

// message carries out the message call in the thread's registers.
func message(t *proc.Thread) {
	op := uint32(t.User.RAX) - ipc.Base
	e := linux.Errno(0)
	p := partners[t.User.Partner%core.MaxThreads].Load() // nil: this is its first
	if p == nil {
		p, e = join(t)
	}
	if e == 0 {
		e = p.message(op)
	}
	if e != 0 {
		t.User.RAX = -uint64(e)
	}
}

func (p *partner) message(op uint32) linux.Errno {
	t := p.t
	target, e := p.target(op)
	if e != 0 {
		return e
	}
	u := &t.User
	th, result := u.MessageState()
	switch op + ipc.Base {
	case ipc.Send, ipc.Call, ipc.Reply, ipc.ReplyRecv:
		if e := p.pack(th); e != 0 {
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
	if u.Work.Load()&^nucleus.WorkLater != 0 {
		// First that, or it would end a call that is received at once.
		dropFiles(&th.Out)
		t.SetCallNumber(uint64(uint32(u.RAX)))
		t.FinishRestart(linux.ERESTARTNOINTR)
		return 0
	}
	p.delivered.Store(false)
	u.Host(true)
	waits := u.Message(op, &target, u.RDX == ipc.Now)
	nucleus.ServeMessages()
	timedOut := waits && p.await(limit)
	u.Host(false)
	switch {
	case timedOut && (result.Err == linux.ERESTARTSYS || result.Err == linux.EINTR):
		result.Err = linux.ETIMEDOUT
	case result.Err == linux.EBADF:
		result.Err = linux.EPIPE // it ended since target looked
	}
	dropFiles(&th.Out)
	p.Finish()
	return 0
}

// await waits until the call that the goroutine hosts is over, and reports
// whether that is because of the time limit.
func (p *partner) await(limit int64) (timedOut bool) {
	t := p.t
	for {
		t.Arm()
		if p.delivered.Load() {
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
	p.CancelWait()
	for {
		t.Arm()
		if p.delivered.Load() {
			return timedOut
		}
		t.SleepUninterruptible(wait.NoDeadline)
	}
}

// target finds out what the call's descriptor is, and has the nucleus remember it.
func (p *partner) target(op uint32) (nucleus.Target, linux.Errno) {
	want := nucleus.MessageTarget(op)
	if want == nucleus.NoTarget {
		return nucleus.Target{}, 0
	}
	fd := uint32(p.t.User.RDI)
	target, e := p.targetAt(fd, fd, want)
	if e == 0 && op+ipc.Base == ipc.SignalWait {
		var second nucleus.Target
		second, e = p.targetAt(fd+1, uint32(p.t.User.RSI), want)
		target.Badge = uint64(second.ID)
	}
	return target, e
}

// targetAt is target for a descriptor, remembered at a place.
func (p *partner) targetAt(at, fd uint32, want nucleus.TargetKind) (nucleus.Target, linux.Errno) {
	t := p.t
	seen := t.FDs.Changes.Load()
	f := t.FDs.Get(int32(fd))
	if f == nil {
		return nucleus.Target{}, linux.EBADF
	}
	target, e := targetOf(f)
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

// pack puts what is not in registers into the message: its bytes if they
// are many, its descriptors.
func (p *partner) pack(th *core.Thread) linux.Errno {
	t := p.t
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
	if p.buffer.Load() == nil {
		p.buffer.Store(new(buffer))
	}
	b := p.buffer.Load()[:]
	if bytes > ipc.ShortBytes {
		if _, e := t.Mem.CopyIn(b[:bytes], at); e != 0 {
			return e
		}
		clear(b[bytes:min(bytes+8, ipc.LongBytes)]) // of the last word, too
		for i := range (bytes + 7) / 8 {
			th.Long[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
	}
	if n > 0 {
		if _, e := t.Mem.CopyIn(b[:4*n], at+ipc.LongBytes); e != 0 {
			return e
		}
	}
	for i := range n {
		f := t.FDs.Get(int32(binary.LittleEndian.Uint32(b[4*i:])))
		if f == nil {
			dropFiles(&th.Out)
			return linux.EBADF
		}
		th.Out[i] = send(f, p.t)
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
		if f := receive(number); f != nil {
			f.Put()
		}
	}
}

// Finish implements proc.Partner: the result goes to the registers, the Buffer, the
// descriptor tabbinary.LittleEndian.
func (p *partner) Finish() {
	t := p.t
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
	if p.buffer.Load() == nil {
		p.buffer.Store(new(buffer))
	}
	b := p.buffer.Load()[:]
	bytes, n := r.Info.Bytes(), 0
	if bytes > ipc.ShortBytes {
		copy(th.Short[:], th.Long[:])
		for i := range (bytes + 7) / 8 {
			binary.LittleEndian.PutUint64(b[8*i:], th.Long[i])
		}
		if at != 0 {
			t.Mem.CopyOut(at, b[:bytes])
		}
	}
	for i := range th.Came {
		f := receive(th.In[i])
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
		binary.LittleEndian.PutUint32(b[4*n:], uint32(fd))
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
