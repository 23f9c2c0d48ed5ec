package signals

import (
	"math/rand/v2"
	"testing"

	"hardtack/abi/linux"
	"hardtack/nucleus"
)

func randomContext(r *rand.Rand) *nucleus.UserContext {
	u := new(nucleus.UserContext)
	for _, p := range generalRegs(&u.Regs) {
		*p = r.Uint64()
	}
	u.RIP &= linux.TaskSize/2 - 1
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
		var f Frame
		f.place(0x7fff_0000_1234)
		alt := linux.StackT{SP: 0x1000, Size: 0x8000}
		info := linux.Siginfo{Signo: 11, Code: 1}
		f.build(u, &info, &linux.SigAction{Restorer: 0x1234}, &alt, 0xabcdef, Fault{14, 6, 0x999})
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
	var f Frame
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
		var f Frame
		f.place(1 << 40)
		u := randomContext(r)
		f.build(u, new(linux.Siginfo), new(linux.SigAction), new(linux.StackT), 0, Fault{})
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
		if ok && v.RIP >= linux.TaskSize {
			t.Fatalf("rip %#x", v.RIP)
		}
		if f.parseFP(v, r.IntN(fpSize+1)) && v.MXCSR&^0xffff != 0 {
			t.Fatalf("mxcsr %#x", v.MXCSR)
		}
	}
}
