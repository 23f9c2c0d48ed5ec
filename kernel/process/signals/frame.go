package signals

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/mm/vm"
	"hardtack/nucleus"
)

// The signal frame of x86-64 (arch/x86/include/asm/sigframe.h), offsets from
// the handler's stack pointer:
//
//	0    return address: the restorer
//	8    ucontext: flags 8, link 8, stack 24, mcontext 256, mask 8
//	312  siginfo, 128 bytes
//	440  end
//
// and above it, on a 64-byte boundary, the floating-point state in XSAVE's
// standard format: 512 bytes of FXSAVE, 64 of header, 256 of YMM_Hi128, and
// FP_XSTATE_MAGIC2.
const (
	frameUC        = 8
	frameStack     = frameUC + 16
	frameMC        = frameUC + 40
	frameMask      = frameMC + 256
	frameInfo      = frameMask + 8
	frameSize      = frameInfo + 128
	mcRegs         = frameMC       // r8 … r15 di si bp bx dx ax cx sp ip flags
	mcSegs         = frameMC + 144 // cs gs fs ss, 16 bits each
	mcErr          = frameMC + 152
	mcTrapno       = frameMC + 160
	mcOldMask      = frameMC + 168
	mcCR2          = frameMC + 176
	mcFP           = frameMC + 184
	fxSize         = 512
	xsaveHeader    = 512
	xsaveYMM       = 576
	xsaveSize      = 832
	fpSize         = xsaveSize + 4
	fxSWReserved   = 464
	fpMagic1       = 0x46505853
	fpMagic2       = 0x46505845
	xfeatures      = 7 // x87, SSE, AVX
	xfeatureX87    = 1
	xfeatureSSE    = 2
	xfeatureAVX    = 4
	ucFPXstate     = 1
	ucSigContextSS = 2
	ucStrictSS     = 4

	redZone  = 128
	userCS   = 0x33
	userSS   = 0x2b
	mxcsrDef = 0x1f80
	// mxcsrMask has the MXCSR bits that may be set; others would fault.
	mxcsrMask = 0xffff
	// fcwDef is the x87 control word after FNINIT.
	fcwDef = 0x37f
	// fixFlags are the RFLAGS bits that sigreturn takes from the frame.
	fixFlags = 0x40000 | 0x800 | 0x400 | 0x100 | 0x80 | 0x40 | 0x10 | 0x4 | 0x1 | 0x10000
	flagDF   = 0x400
	flagRF   = 0x10000
	flagTF   = 0x100
	flagIF   = 0x200
)

// Frame is a signal frame as bytes, and where it goes.
type Frame struct {
	sp, fp uint64
	mem    [frameSize]byte
	fpmem  [fpSize]byte
}

// MinStack is AT_MINSIGSTKSZ: the frame, the floating-point state, and what
// aligning them may cost.
const MinStack = (frameSize + fpSize + 64 + 16 + 8 + 15) &^ 15

// Fault is the last exception of a thread, for the frame's trapno, err and cr2.
type Fault struct{ Trapno, Err, CR2 uint64 }

var le = binary.LittleEndian

// generalRegs lists the registers in the order of struct sigcontext.
func generalRegs(u *nucleus.Regs) [18]*uint64 {
	return [18]*uint64{
		&u.R8, &u.R9, &u.R10, &u.R11, &u.R12, &u.R13, &u.R14, &u.R15,
		&u.RDI, &u.RSI, &u.RBP, &u.RBX, &u.RDX, &u.RAX, &u.RCX, &u.RSP,
		&u.RIP, &u.RFLAGS,
	}
}

// place chooses where a frame goes below sp.
func (f *Frame) place(sp uint64) {
	sp -= fpSize
	f.fp = sp &^ 63
	f.sp = (f.fp-frameSize)&^15 - 8
}

// build fills in the frame from the thread's state.
func (f *Frame) build(u *nucleus.UserContext, info *linux.Siginfo, act *linux.SigAction,
	alt *linux.StackT, mask linux.SigSet, fault Fault) {
	b := f.mem[:]
	le.PutUint64(b, act.Restorer)
	le.PutUint64(b[frameUC:], ucFPXstate|ucSigContextSS|ucStrictSS)
	le.PutUint64(b[frameUC+8:], 0)
	le.PutUint64(b[frameStack:], alt.SP)
	le.PutUint64(b[frameStack+8:], uint64(uint32(alt.Flags)))
	le.PutUint64(b[frameStack+16:], alt.Size)
	for i, r := range generalRegs(&u.Regs) {
		le.PutUint64(b[mcRegs+8*i:], *r)
	}
	le.PutUint64(b[mcSegs:], userCS|userSS<<48)
	le.PutUint64(b[mcErr:], fault.Err)
	le.PutUint64(b[mcTrapno:], fault.Trapno)
	le.PutUint64(b[mcOldMask:], uint64(mask))
	le.PutUint64(b[mcCR2:], fault.CR2)
	le.PutUint64(b[mcFP:], f.fp)
	clear(b[mcFP+8 : frameMask])
	le.PutUint64(b[frameMask:], uint64(mask))
	putSiginfo(b[frameInfo:], info)
	f.buildFP(u)
}

func (f *Frame) buildFP(u *nucleus.UserContext) {
	b := f.fpmem[:]
	clear(b)
	copy(b[:160], u.X87[:160])
	le.PutUint32(b[24:], u.MXCSR)
	le.PutUint32(b[28:], mxcsrMask)
	for i := range u.YMM {
		copy(b[160+16*i:], u.YMM[i][:16])
		copy(b[xsaveYMM+16*i:], u.YMM[i][16:])
	}
	sw := b[fxSWReserved:]
	le.PutUint32(sw, fpMagic1)
	le.PutUint32(sw[4:], fpSize)
	le.PutUint64(sw[8:], xfeatures)
	le.PutUint32(sw[16:], xsaveSize)
	le.PutUint64(b[xsaveHeader:], xfeatures)
	le.PutUint32(b[xsaveSize:], fpMagic2)
}

func putSiginfo(b []byte, info *linux.Siginfo) {
	le.PutUint32(b, uint32(info.Signo))
	le.PutUint32(b[4:], uint32(info.Errno))
	le.PutUint32(b[8:], uint32(info.Code))
	le.PutUint32(b[12:], 0)
	for i, d := range info.Data {
		le.PutUint64(b[16+8*i:], d)
	}
}

// EncodeSiginfo returns siginfo_t as user programs see it.
func EncodeSiginfo(info *linux.Siginfo) (b [128]byte) {
	putSiginfo(b[:], info)
	return b
}

// DecodeSiginfo reads siginfo_t.
func DecodeSiginfo(b *[128]byte) (info linux.Siginfo) {
	info.Signo = int32(le.Uint32(b[:]))
	info.Errno = int32(le.Uint32(b[4:]))
	info.Code = int32(le.Uint32(b[8:]))
	for i := range info.Data {
		info.Data[i] = le.Uint64(b[16+8*i:])
	}
	return info
}

// restored is what sigreturn takes from a frame besides the registers.
type restored struct {
	mask linux.SigSet
	alt  linux.StackT
	fp   uint64 // where the floating-point state lies; 0: none
}

// parse puts a frame's registers into u, whatever a program wrote there made
// harmless; ok is false where no program could run with them.
func (f *Frame) parse(u *nucleus.UserContext) (r restored, ok bool) {
	b := f.mem[:]
	old := u.RFLAGS
	for i, p := range generalRegs(&u.Regs) {
		*p = le.Uint64(b[mcRegs+8*i:])
	}
	u.RFLAGS = old&^fixFlags | u.RFLAGS&fixFlags | flagIF
	r.mask = linux.SigSet(le.Uint64(b[frameMask:]))
	r.alt = linux.StackT{
		SP:    le.Uint64(b[frameStack:]),
		Flags: int32(le.Uint32(b[frameStack+8:])),
		Size:  le.Uint64(b[frameStack+16:]),
	}
	r.fp = le.Uint64(b[mcFP:])
	cs := le.Uint16(b[mcSegs:])
	return r, cs|3 == userCS && u.RIP < linux.TaskSize
}

// parseFP puts a frame's floating-point state into u. n bytes of fpmem are there.
func (f *Frame) parseFP(u *nucleus.UserContext, n int) bool {
	b := f.fpmem[:]
	if n < fxSize {
		return false
	}
	have := uint64(xfeatureX87 | xfeatureSSE)
	sw := b[fxSWReserved:]
	if le.Uint32(sw) == fpMagic1 && n >= fpSize && le.Uint32(sw[16:]) == xsaveSize &&
		le.Uint32(sw[4:]) == fpSize && le.Uint32(b[xsaveSize:]) == fpMagic2 {
		have = le.Uint64(b[xsaveHeader:]) & le.Uint64(sw[8:])
		if le.Uint64(b[xsaveHeader:])&^uint64(xfeatures) != 0 {
			return false
		}
	}
	resetFP(u)
	if have&xfeatureX87 != 0 {
		copy(u.X87[:24], b[:24])
		copy(u.X87[32:160], b[32:160])
	}
	if have&(xfeatureSSE|xfeatureAVX) != 0 {
		m := le.Uint32(b[24:])
		if m&^uint32(mxcsrMask) != 0 {
			return false
		}
		u.MXCSR = m
	}
	for i := range u.YMM {
		if have&xfeatureSSE != 0 {
			copy(u.YMM[i][:16], b[160+16*i:])
		}
		if have&xfeatureAVX != 0 {
			copy(u.YMM[i][16:], b[xsaveYMM+16*i:])
		}
	}
	return true
}

// resetFP is the floating-point state of a new program and of a handler.
func resetFP(u *nucleus.UserContext) {
	clear(u.X87[:])
	le.PutUint16(u.X87[:], fcwDef)
	u.MXCSR = mxcsrDef
	clear(u.YMM[:])
}

// Push writes a frame below sp, or on the alternate stack, and points the registers at the
// handler. It reports false if there is no room.
func (f *Frame) Push(s *vm.Space, u *nucleus.UserContext, alt *AltStack, info *linux.Siginfo, act *linux.SigAction,
	mask linux.SigSet, fault Fault) bool {
	if act.Flags&linux.SA_RESTORER == 0 || act.Handler >= linux.TaskSize || s == nil {
		return false
	}
	sp := u.RSP - redZone
	old := alt.stack
	nested := alt.has(u.RSP)
	onAlt := nested
	if act.Flags&linux.SA_ONSTACK != 0 && !nested && old.Size != 0 {
		sp = old.SP + old.Size
		onAlt = true
	}
	f.place(sp)
	// A frame that would leave the alternate stack would overwrite what is below.
	if onAlt && old.Flags&linux.SS_AUTODISARM == 0 && (f.sp < old.SP || f.sp > old.SP+old.Size) || f.sp >= linux.TaskSize {
		return false
	}
	switch {
	case old.Size == 0:
		old.Flags = linux.SS_DISABLE
	case nested:
		old.Flags |= linux.SS_ONSTACK
	}
	u.SyncFPU()
	f.build(u, info, act, &old, mask, fault)
	if _, e := s.CopyOut(uio.Addr(f.fp), f.fpmem[:]); e != 0 {
		return false
	}
	if _, e := s.CopyOut(uio.Addr(f.sp), f.mem[:]); e != 0 {
		return false
	}
	if alt.stack.Flags&linux.SS_AUTODISARM != 0 {
		alt.Clear()
	}
	u.RDI, u.RSI, u.RDX = uint64(info.Signo), f.sp+frameInfo, f.sp+frameUC
	u.RAX = 0
	u.RSP, u.RIP = f.sp, act.Handler
	u.RFLAGS &^= flagDF | flagRF | flagTF
	resetFP(u)
	return true
}

// Pop takes the registers back out of the frame that the stack pointer points behind. It
// returns the mask and the alternate stack that were saved; ok is false for a bad frame.
func (f *Frame) Pop(s *vm.Space, u *nucleus.UserContext) (mask linux.SigSet, alt linux.StackT, ok bool) {
	if _, e := s.CopyIn(f.mem[:], uio.Addr(u.RSP-8)); e != 0 {
		return 0, alt, false
	}
	u.SyncFPU()
	saved := u.Regs
	r, ok := f.parse(u)
	if ok && r.fp != 0 {
		n, _ := s.CopyIn(f.fpmem[:], uio.Addr(r.fp))
		ok = f.parseFP(u, n)
	} else if ok {
		resetFP(u)
	}
	if !ok {
		u.Regs = saved
		return 0, alt, false
	}
	r.alt.Flags &^= linux.SS_ONSTACK
	return r.mask, r.alt, true
}
