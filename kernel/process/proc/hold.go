package proc

import (
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/hook"
	"hardtack/kernel/base/wait"
)

// While the host saves the machine, no thread is in user mode: each waits on its way there.
// A copy of the machine goes on from the same place, and is made another one before its
// threads go on: with other random numbers, another name, another time. Calls go on in the
// kernel meanwhile.

// RandomFile reports whether reads of a file's operations are random numbers.
var RandomFile = hook.Default(func(ops any) bool { return false })

var holding struct {
	on       atomic.Bool
	renewals atomic.Uint32 // how often this machine has become another
	over     wait.Queue
}

// Hold keeps all threads from entering user mode, and returns when none is there.
func Hold() {
	holding.on.Store(true)
	// A thread that is made from here on looks at held when it begins.
	Each(func(p *Process) bool {
		for _, t := range p.Threads() {
			t.User.Work.Or(workTimer)
			t.User.Kick() // also where it waits inside the nucleus: nobody enters it there
			t.leaveUserMode()
		}
		return true
	})
}

// Release lets the threads go on. If the machine was renewed, those that were handed random
// numbers and have not seen them yet ask for others.
func Release(renewed bool) {
	if renewed {
		holding.renewals.Add(1)
	}
	holding.on.Store(false)
	holding.over.Notify(wait.In)
}

// bornHeld has a new thread look whether it may enter user mode.
func (t *Thread) bornHeld() {
	t.renewals = holding.renewals.Load()
	if holding.on.Load() {
		t.User.Work.Or(workTimer)
	}
}

// waitHeld waits until threads may enter user mode.
func (t *Thread) waitHeld() {
	for holding.on.Load() {
		var e wait.Entry
		t.Arm()
		holding.over.Add(&e, &t.Sleeper, wait.In)
		if holding.on.Load() {
			t.SleepUninterruptible(wait.NoDeadline)
		}
		holding.over.Remove(&e)
	}
	if n := holding.renewals.Load(); n != t.renewals {
		t.renewals = n
		t.drawAgain()
	}
}

// drawAgain has the program ask again for random numbers that it has not looked at: other
// copies of the machine have the same ones. It stands behind its system call then: RCX is
// where that returns to.
func (t *Thread) drawAgain() {
	u := &t.User.Regs
	drew := u.RCX == u.RIP && t.restartErr == 0 && int64(u.RAX) > 0
	switch nr := t.CallNumber(); {
	case !drew:
		return
	case nr == linux.SYS_getrandom && u.RDI == t.Args[0] && u.RSI == t.Args[1]:
	case nr == linux.SYS_read && u.RDI == t.Args[0] && u.RSI == t.Args[1] && u.RDX == t.Args[2]:
		f := t.FDs.Get(int32(t.Args[0]))
		if f == nil {
			return
		}
		random := RandomFile.Call(f.Ops)
		f.Put()
		if !random {
			return
		}
	default:
		return
	}
	t.again(&t.User)
}

// Renewed makes every program forget what it wanted no child to have (MADV_WIPEONFORK).
// Threads are held.
func Renewed() {
	Each(func(p *Process) bool {
		for _, t := range p.Threads() {
			p.mu.Lock()
			s := t.Space
			p.mu.Unlock()
			if s != nil {
				s.Wipe()
				break
			}
		}
		return true
	})
}
