package proc

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
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

	// TaskSize is where user addresses end; no page is above.
	TaskSize = 1<<47 - 4096
)

// signalFrame is a frame as bytes, and where it goes.
type signalFrame struct {
	sp, fp uint64
	mem    [frameSize]byte
	fpmem  [fpSize]byte
}

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
func (f *signalFrame) place(sp uint64) {
	sp -= fpSize
	f.fp = sp &^ 63
	f.sp = (f.fp-frameSize)&^15 - 8
}

// build fills in the frame from the thread's state.
func (f *signalFrame) build(u *nucleus.UserContext, info *linux.Siginfo, act *linux.SigAction,
	alt *linux.StackT, mask linux.SigSet, fault faultInfo) {
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
	le.PutUint64(b[mcErr:], fault.err)
	le.PutUint64(b[mcTrapno:], fault.trapno)
	le.PutUint64(b[mcOldMask:], uint64(mask))
	le.PutUint64(b[mcCR2:], fault.cr2)
	le.PutUint64(b[mcFP:], f.fp)
	clear(b[mcFP+8 : frameMask])
	le.PutUint64(b[frameMask:], uint64(mask))
	putSiginfo(b[frameInfo:], info)
	f.buildFP(u)
}

func (f *signalFrame) buildFP(u *nucleus.UserContext) {
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
func (f *signalFrame) parse(u *nucleus.UserContext) (r restored, ok bool) {
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
	return r, cs|3 == userCS && u.RIP < TaskSize
}

// parseFP puts a frame's floating-point state into u. n bytes of fpmem are there.
func (f *signalFrame) parseFP(u *nucleus.UserContext, n int) bool {
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

// onAltStack reports whether sp is on the alternate stack. With SS_AUTODISARM
// the stack counts as free whenever a signal comes.
func (t *Thread) onAltStack(sp uint64) bool {
	a := &t.sig.alt
	return a.Flags&linux.SS_AUTODISARM == 0 && a.Size != 0 && sp > a.SP && sp-a.SP <= a.Size
}

// pushFrame writes a frame and points the registers at the handler.
func (t *Thread) pushFrame(info *linux.Siginfo, act *linux.SigAction, mask linux.SigSet) bool {
	if act.Flags&linux.SA_RESTORER == 0 || act.Handler >= TaskSize || t.Space == nil {
		return false
	}
	u := &t.User
	sp := u.RSP - redZone
	alt := t.sig.alt
	nested := t.onAltStack(u.RSP)
	onAlt := nested
	if act.Flags&linux.SA_ONSTACK != 0 && !nested && alt.Size != 0 {
		sp = alt.SP + alt.Size
		onAlt = true
	}
	f := t.frameBuffer()
	f.place(sp)
	// A frame that would leave the alternate stack would overwrite what is below.
	if onAlt && alt.Flags&linux.SS_AUTODISARM == 0 && (f.sp < alt.SP || f.sp > alt.SP+alt.Size) || f.sp >= TaskSize {
		return false
	}
	switch {
	case alt.Size == 0:
		alt.Flags = linux.SS_DISABLE
	case nested:
		alt.Flags |= linux.SS_ONSTACK
	}
	u.SyncFPU()
	f.build(u, info, act, &alt, mask, t.sig.fault)
	if _, e := t.Space.CopyOut(uio.Addr(f.fp), f.fpmem[:]); e != 0 {
		return false
	}
	if _, e := t.Space.CopyOut(uio.Addr(f.sp), f.mem[:]); e != 0 {
		return false
	}
	if t.sig.alt.Flags&linux.SS_AUTODISARM != 0 {
		t.sig.alt = linux.StackT{}
	}
	u.RDI, u.RSI, u.RDX = uint64(info.Signo), f.sp+frameInfo, f.sp+frameUC
	u.RAX = 0
	u.RSP, u.RIP = f.sp, act.Handler
	u.RFLAGS &^= flagDF | flagRF | flagTF
	resetFP(u)
	return true
}

func (t *Thread) frameBuffer() *signalFrame {
	if t.frame == nil {
		t.frame = new(signalFrame)
	}
	return t.frame
}

// Sigreturn is rt_sigreturn: it goes back to where a handler interrupted. A bad
// frame is a SIGSEGV.
func (t *Thread) Sigreturn() {
	f := t.frameBuffer()
	u := &t.User
	if _, e := t.Space.CopyIn(f.mem[:], uio.Addr(u.RSP-8)); e != 0 {
		t.forceSegv(0)
		return
	}
	u.SyncFPU()
	saved := u.Regs
	r, ok := f.parse(u)
	if ok && r.fp != 0 {
		n, _ := t.Space.CopyIn(f.fpmem[:], uio.Addr(r.fp))
		ok = f.parseFP(u, n)
	} else if ok {
		resetFP(u)
	}
	if !ok {
		u.Regs = saved
		t.forceSegv(0)
		return
	}
	t.sig.restartErr = 0
	t.SetBlocked(r.mask)
	r.alt.Flags &^= linux.SS_ONSTACK
	t.setAltStack(&r.alt, u.RSP) // what was saved was valid; errors are the program's
}

// setAltStack is sigaltstack with sp as the stack pointer.
func (t *Thread) setAltStack(n *linux.StackT, sp uint64) linux.Errno {
	if t.onAltStack(sp) {
		return linux.EPERM
	}
	if n.Flags&^(linux.SS_DISABLE|linux.SS_ONSTACK|linux.SS_AUTODISARM) != 0 {
		return linux.EINVAL
	}
	mode := n.Flags &^ linux.SS_AUTODISARM
	switch {
	case mode == linux.SS_DISABLE:
		t.sig.alt = linux.StackT{}
	case mode != 0 && mode != linux.SS_ONSTACK:
		return linux.EINVAL
	case n.Size < linux.MINSIGSTKSZ:
		return linux.ENOMEM
	default:
		t.sig.alt = linux.StackT{SP: n.SP, Size: n.Size, Flags: n.Flags & linux.SS_AUTODISARM}
	}
	return 0
}

// AltStack is sigaltstack: it returns the old stack and sets a new one if n is given.
func (t *Thread) AltStack(n *linux.StackT) (old linux.StackT, e linux.Errno) {
	old = t.sig.alt
	switch {
	case old.Size == 0:
		old.Flags = linux.SS_DISABLE
	case t.onAltStack(t.User.RSP):
		old.Flags |= linux.SS_ONSTACK
	}
	if n != nil {
		e = t.setAltStack(n, t.User.RSP)
	}
	return old, e
}
