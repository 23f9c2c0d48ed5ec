package endpoint

//oops:stop the nucleus believes the thread to be in a call

import (
	"encoding/binary"

	"hardtack/abi/ipc"
	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/process/proc"
	"hardtack/nucleus"
	core "hardtack/nucleus/ipc"
)

// Message calls (abi/ipc). The nucleus carries out those that need only registers
// (nucleus/partner.go). All others come to message, on the thread's goroutine, which packs
// the message for the nucleus. A thread that waits in a call has no goroutine.

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

// message prepares the call: it is made when the thread would go back to user mode.
func (p *partner) message(op uint32) linux.Errno {
	target, e := p.target(op)
	if e != 0 {
		return e
	}
	switch op + ipc.Base {
	case ipc.Send, ipc.Call, ipc.Reply, ipc.ReplyRecv:
		th, _ := p.t.User.MessageState()
		if e := p.pack(th); e != 0 {
			return e
		}
	}
	p.t.User.Prepare(op, &target)
	return 0
}

// Undo implements proc.Partner: the prepared call is made again later.
func (p *partner) Undo() {
	t := p.t
	th, _ := t.User.MessageState()
	dropFiles(&th.Out)
	t.User.Work.And(^uint32(nucleus.WorkMessage))
	t.SetCallNumber(uint64(uint32(t.User.RAX)))
	t.FinishRestart(linux.ERESTARTNOINTR)
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
	if bytes > ipc.ShortBytes {
		long := th.LongBytes()
		if _, e := t.Mem.CopyIn(long[:bytes], at); e != 0 {
			return e
		}
		clear(long[bytes:min(bytes+8, ipc.LongBytes)]) // of the last word, too
	}
	if n > 0 {
		if _, e := t.Mem.CopyIn(p.numbers[:4*n], at+ipc.LongBytes); e != 0 {
			return e
		}
	}
	for i := range n {
		f := t.FDs.Get(int32(binary.LittleEndian.Uint32(p.numbers[4*i:])))
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
// descriptor table.
func (p *partner) Finish() {
	t := p.t
	u := &t.User
	th, r := u.MessageState()
	dropFiles(&th.Out) // nobody took them
	if u.TakeResult() {
		return
	}
	if r.Err >= linux.ERESTARTSYS {
		t.SetCallNumber(uint64(uint32(u.RAX)))
		t.FinishRestart(r.Err)
		return
	}
	at := uio.Addr(u.RBX)
	bytes, n := r.Info.Bytes(), 0
	if bytes > ipc.ShortBytes {
		copy(th.Short[:], th.Long[:])
		if at != 0 {
			t.Mem.CopyOut(at, th.LongBytes()[:bytes])
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
		binary.LittleEndian.PutUint32(p.numbers[4*n:], uint32(fd))
		if _, e := t.Mem.CopyOut(at+ipc.LongBytes+uio.Addr(4*n), p.numbers[4*n:4*n+4]); e != 0 {
			t.FDs.Close(&t.Ctx, fd)
			continue
		}
		n++
	}
	th.Came = 0
	r.Info = core.MakeInfo(bytes, n)
	u.PutResult()
}
