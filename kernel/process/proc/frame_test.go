package proc

import (
	"math/rand/v2"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/nucleus"
)

func randomContext(r *rand.Rand) *nucleus.UserContext {
	u := new(nucleus.UserContext)
	for _, p := range generalRegs(&u.Regs) {
		*p = r.Uint64()
	}
	u.RIP &= TaskSize/2 - 1
	u.RFLAGS = u.RFLAGS&fixFlags | flagIF | 2
	for i := range u.YMM {
		for j := range u.YMM[i] {
			u.YMM[i][j] = byte(r.Uint32())
		}
	}
	u.MXCSR = 0x1f80 | r.Uint32()&0x3f
	for i := range u.X87[:24] {
		u.X87[i] = byte(r.Uint32())
	}
	for i := range u.X87[32:160] {
		u.X87[32+i] = byte(r.Uint32())
	}
	return u
}

func same(a, b *nucleus.UserContext) bool {
	return a.Regs == b.Regs && a.YMM == b.YMM && a.MXCSR == b.MXCSR && a.X87 == b.X87
}

// What build writes, parse reads back.
func TestFrameRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		u := randomContext(r)
		var f signalFrame
		f.place(0x7fff_0000_1234)
		alt := linux.StackT{SP: 0x1000, Size: 0x8000}
		info := linux.Siginfo{Signo: 11, Code: 1}
		f.build(u, &info, &linux.SigAction{Restorer: 0x1234}, &alt, 0xabcdef, faultInfo{14, 6, 0x999})
		var v nucleus.UserContext
		v.FSBase, v.GSBase, v.RFLAGS = u.FSBase, u.GSBase, flagIF|2
		got, ok := f.parse(&v)
		if !ok || got.mask != 0xabcdef || got.alt != alt || got.fp != f.fp {
			t.Fatalf("%+v %v", got, ok)
		}
		if !f.parseFP(&v, fpSize) || !same(u, &v) {
			t.Fatal("state differs")
		}
	}
}

// Offsets against those that the C library's headers give (asm/sigcontext.h,
// asm/ucontext.h): they are ABI.
func TestFrameLayout(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want int
	}{
		{"uc_stack", frameStack - frameUC, 16},
		{"uc_mcontext", frameMC - frameUC, 40},
		{"uc_sigmask", frameMask - frameUC, 296},
		{"siginfo", frameInfo, 312},
		{"whole", frameSize, 440},
		{"rip", mcRegs + 16*8 - frameMC, 128},
		{"cs", mcSegs - frameMC, 144},
		{"err", mcErr - frameMC, 152},
		{"trapno", mcTrapno - frameMC, 160},
		{"cr2", mcCR2 - frameMC, 176},
		{"fpstate", mcFP - frameMC, 184},
	} {
		if c.got != c.want {
			t.Errorf("%s at %d, want %d", c.name, c.got, c.want)
		}
	}
	var f signalFrame
	for sp := uint64(0x10000); sp < 0x10100; sp++ {
		f.place(sp)
		if f.sp%16 != 8 || f.fp%64 != 0 || f.sp+frameSize > f.fp || f.fp+fpSize > sp {
			t.Fatalf("sp %#x: frame %#x fp %#x", sp, f.sp, f.fp)
		}
	}
}

// Whatever a program puts into a frame, what comes out is safe to run: flags
// that the kernel owns stay, MXCSR has no bit that faults, RIP is canonical.
func TestHostileFrames(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20000 {
		var f signalFrame
		f.place(1 << 40)
		u := randomContext(r)
		f.build(u, new(linux.Siginfo), new(linux.SigAction), new(linux.StackT), 0, faultInfo{})
		for range 1 + r.IntN(20) {
			f.mem[r.IntN(frameSize)] = byte(r.Uint32())
			f.fpmem[r.IntN(fpSize)] = byte(r.Uint32())
		}
		v := new(nucleus.UserContext)
		v.RFLAGS = flagIF | 2
		_, ok := f.parse(v)
		if v.RFLAGS&^uint64(fixFlags) != flagIF|2 {
			t.Fatalf("flags %#x", v.RFLAGS)
		}
		if ok && v.RIP >= TaskSize {
			t.Fatalf("rip %#x", v.RIP)
		}
		if f.parseFP(v, r.IntN(fpSize+1)) && v.MXCSR&^0xffff != 0 {
			t.Fatalf("mxcsr %#x", v.MXCSR)
		}
	}
}

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
		if u.RIP != 0x401000 || u.RDI != uint64(linux.SIGUSR1) || u.RSP%16 != 8 || u.RSP > before.RSP-128 || u.MXCSR != mxcsrDef {
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
		info := DecodeSiginfo(&b)
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
