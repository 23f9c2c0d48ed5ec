package proc

import (
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/process/signals"
)

// handlerThread runs fn in a child with a stack.
func handlerThread(t *testing.T, fn func(c *Thread, stack uint64)) {
	asInit(func(c *Thread) {
		pid := c.spawn(t, fork, func(c *Thread) {
			stack := c.page(t, 65536) + 65536
			c.User.Reset()
			c.User.RSP, c.User.RIP = stack-4096, 0x400000
			fn(c, stack)
		})
		c.waitFor(t, pid)
	})
}

const handlerFlags = linux.SA_RESTORER | linux.SA_SIGINFO

func TestHandlerAndReturn(t *testing.T) {
	handlerThread(t, func(c *Thread, stack uint64) {
		act := linux.SigAction{Handler: 0x401000, Restorer: 0x402000, Flags: handlerFlags, Mask: linux.SIGUSR2.Set()}
		c.Proc.SetAction(linux.SIGUSR1, &act)
		c.User.RAX, c.User.RBX = 42, 43
		c.User.MXCSR = 0x3f80
		before, mxcsr := c.User.Regs, c.User.MXCSR
		c.call(func() {
			info := UserInfo(&c.Ctx, linux.SIGUSR1, linux.SI_USER)
			c.Signal(&info)
		})
		u := &c.User
		if u.RIP != 0x401000 || u.RDI != uint64(linux.SIGUSR1) || u.RSP%16 != 8 || u.RSP > before.RSP-128 || u.MXCSR != 0x1f80 {
			t.Errorf("handler's registers %+v", u.Regs)
		}
		if c.Blocked() != linux.SIGUSR1.Set()|linux.SIGUSR2.Set() {
			t.Errorf("mask %#x", c.Blocked())
		}
		ret, _ := c.Space.LoadU64(uio.Addr(u.RSP))
		if ret != 0x402000 {
			t.Errorf("returns to %#x", ret)
		}
		var b [128]byte
		c.Space.CopyIn(b[:], uio.Addr(u.RSI))
		info := signals.DecodeSiginfo(&b)
		if pid, _ := info.Sender(); info.Signo != int32(linux.SIGUSR1) || pid != c.PID {
			t.Errorf("%+v", info)
		}
		u.RSP += 8 // the handler's return
		c.call(func() { c.Sigreturn() })
		if c.User.Regs != before || c.User.MXCSR != mxcsr || c.Blocked() != 0 {
			t.Errorf("after sigreturn: %+v mask %#x", c.User.Regs, c.Blocked())
		}
	})
}

func TestAlternateStack(t *testing.T) {
	handlerThread(t, func(c *Thread, stack uint64) {
		alt := c.page(t, 16384)
		if _, e := c.AltStack(&linux.StackT{SP: alt, Size: 1000}); e != linux.ENOMEM {
			t.Error("tiny stack:", e)
		}
		if _, e := c.AltStack(&linux.StackT{SP: alt, Size: 16384}); e != 0 {
			t.Error(e)
		}
		c.Proc.SetAction(linux.SIGUSR1, &linux.SigAction{Handler: 0x401000, Flags: handlerFlags | linux.SA_ONSTACK | linux.SA_NODEFER})
		raise := func() {
			c.call(func() {
				info := UserInfo(&c.Ctx, linux.SIGUSR1, linux.SI_TKILL)
				c.Signal(&info)
			})
		}
		raise()
		first := c.User.RSP
		if first < alt || first > alt+16384 {
			t.Errorf("handler's stack is %#x", first)
		}
		if _, e := c.AltStack(&linux.StackT{Flags: linux.SS_DISABLE}); e != linux.EPERM {
			t.Error("changed while in use:", e)
		}
		raise()
		if c.User.RSP >= first || c.User.RSP < alt {
			t.Errorf("nested handler's stack is %#x", c.User.RSP)
		}
		// It runs over in the end, which is a SIGSEGV and not a write below.
		for range 20 {
			raise()
		}
		if !c.Killed() {
			t.Error("the stack overflowed unnoticed")
		}
	})
}

func TestRestart(t *testing.T) {
	for _, x := range []struct {
		e        linux.Errno
		flags    uint64
		handler  bool
		nr, want uint64
		again    bool
	}{
		{linux.ERESTARTSYS, linux.SA_RESTART, true, 7, 7, true},
		{linux.ERESTARTSYS, 0, true, 7, errno(linux.EINTR), false},
		{linux.ERESTARTNOINTR, 0, true, 7, 7, true},
		{linux.ERESTARTNOHAND, linux.SA_RESTART, true, 7, errno(linux.EINTR), false},
		{linux.ERESTART_RESTARTBLOCK, linux.SA_RESTART, true, 7, errno(linux.EINTR), false},
		{linux.ERESTARTSYS, 0, false, 7, 7, true},
		{linux.ERESTARTNOHAND, 0, false, 7, 7, true},
		{linux.ERESTART_RESTARTBLOCK, 0, false, 7, linux.SYS_restart_syscall, true},
	} {
		handlerThread(t, func(c *Thread, _ uint64) {
			c.Proc.SetAction(linux.SIGUSR1, &linux.SigAction{Handler: 0x401000, Flags: handlerFlags | x.flags})
			c.call(func() {
				c.SetCallNumber(x.nr)
				if x.handler {
					info := kernelInfo(linux.SIGUSR1)
					c.Signal(&info)
				}
				c.FinishRestart(x.e)
			})
			u := &c.User
			if x.handler {
				u.RSP += 8
				c.call(c.Sigreturn)
			}
			rip := uint64(0x400000)
			if x.again {
				rip -= syscallInsnLen
			}
			if u.RAX != x.want || u.RIP != rip {
				t.Errorf("%+v: rax %#x rip %#x", x, u.RAX, u.RIP)
			}
		})
	}
}

func errno(e linux.Errno) uint64 { return ^uint64(e) + 1 }

func TestTempMask(t *testing.T) {
	handlerThread(t, func(c *Thread, _ uint64) {
		c.SetBlocked(linux.SIGUSR1.Set())
		c.Proc.SetAction(linux.SIGUSR1, &linux.SigAction{Handler: 0x401000, Flags: handlerFlags})
		info := kernelInfo(linux.SIGUSR1)
		c.Signal(&info)
		if c.Interrupted() {
			t.Error("a blocked signal interrupts")
		}
		c.call(func() {
			c.SetTempMask(0)
			if !c.Interrupted() {
				t.Error("unblocked by the temporary mask, yet it does not interrupt")
			}
			c.RestoreTempMask(true)
			c.FinishRestart(linux.ERESTARTNOHAND)
		})
		if c.User.RIP != 0x401000 || c.Blocked() != linux.SIGUSR1.Set() {
			t.Errorf("rip %#x mask %#x", c.User.RIP, c.Blocked())
		}
		c.User.RSP += 8
		c.call(c.Sigreturn)
		if c.Blocked() != linux.SIGUSR1.Set() || c.User.RAX != errno(linux.EINTR) {
			t.Errorf("old mask not restored: %#x", c.Blocked())
		}
		// Without a signal the old mask is back at once.
		c.SetTempMask(0)
		c.RestoreTempMask(false)
		if c.Blocked() != linux.SIGUSR1.Set() || c.User.Work.Load()&workMask != 0 {
			t.Errorf("mask %#x", c.Blocked())
		}
	})
}
