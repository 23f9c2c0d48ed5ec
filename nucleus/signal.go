package nucleus

import (
	"math/bits"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/arch/amd64"
)

// Signals of the Go runtime itself: SIGURG asks a goroutine to yield, faults
// become panics, SIGPROF takes a profile sample.
const (
	sigBUS  = 7
	sigFPE  = 8
	sigSEGV = 11
	sigURG  = 23
	sigPROF = 27

	saOnStack = 0x08000000
	numSig    = 64
)

// sigaction is struct kernel_sigaction. They change alone.
type sigaction struct{ handler, flags, restorer, mask uint64 }

var actions [numSig + 1]sigaction

// sigFrame is Linux's rt_sigframe (arch/x86/include/asm/sigframe.h), followed
// by the vector registers in our own form: nobody but us reads those.
type sigFrame struct {
	ret uint64
	// struct ucontext, 304 bytes
	flags, link                  uint64
	stackSP, stackFlags, stackSz uint64
	regs                         amd64.Frame
	segments                     uint64
	err, trap, oldMask, cr2      uint64
	fpstate                      uint64
	_                            [8]uint64
	mask                         uint64
	// struct siginfo, 128 bytes
	signo, errno_ int32
	code, _       int32
	addr          uint64
	_             [13]uint64

	ymm [16][32]byte
}

const sigFrameSize = 8 + 304 + 128 + 512

func sysSigaction(c *amd64.CPU, sig, act, old uint64) uint64 {
	if sig < 1 || sig > numSig {
		return errno(linux.EINVAL)
	}
	a := &actions[sig]
	if old != 0 {
		if !touch(c, uintptr(old), 32) {
			return errno(linux.EFAULT)
		}
		p := uintptr(old)
		store64(p, a.handler)
		store64(p+8, a.flags)
		store64(p+16, a.restorer)
		store64(p+24, a.mask)
	}
	if act != 0 {
		if !touch(c, uintptr(act), 32) {
			return errno(linux.EFAULT)
		}
		p := uintptr(act)
		*a = sigaction{load64(p), load64(p + 8), load64(p + 16), load64(p + 24)}
	}
	return 0
}

func sysSigprocmask(c *amd64.CPU, t *thread, how, set, old uint64) uint64 {
	if old != 0 {
		if !touch(c, uintptr(old), 8) {
			return errno(linux.EFAULT)
		}
		store64(uintptr(old), t.mask)
	}
	if set != 0 {
		if !touch(c, uintptr(set), 8) {
			return errno(linux.EFAULT)
		}
		v := load64(uintptr(set))
		switch how {
		case 0:
			v |= t.mask
		case 1:
			v = t.mask &^ v
		case 2:
		default:
			return errno(linux.EINVAL)
		}
		t.setMask(v)
	}
	return 0
}

func sysSigaltstack(c *amd64.CPU, t *thread, set, old uint64) uint64 {
	if old != 0 {
		if !touch(c, uintptr(old), 24) {
			return errno(linux.EFAULT)
		}
		flags := uint64(0)
		if t.altOff {
			flags = 2 // SS_DISABLE
		}
		store64(uintptr(old), t.altSP)
		store64(uintptr(old)+8, flags)
		store64(uintptr(old)+16, t.altSize)
	}
	if set != 0 {
		if !touch(c, uintptr(set), 24) {
			return errno(linux.EFAULT)
		}
		t.altSP, t.altSize = load64(uintptr(set)), load64(uintptr(set)+16)
		t.altOff = load32(uintptr(set)+8)&2 != 0
	}
	return 0
}

// setMask changes which signals the running thread t does not take. Only it does,
// but others must not miss it when they look whom to tell of a signal.
func (t *thread) setMask(v uint64) {
	t.lock.Acquire()
	t.mask = v
	t.lock.Release()
}

// raise makes sig pending for thread i and sees that it notices.
func raise(c *amd64.CPU, i int32, sig uint64) {
	t, queue := lockWaiting(i)
	atomic.StoreUint64(&t.pending, t.pending|1<<(sig-1))
	woken := false
	if t.mask>>(sig-1)&1 == 0 {
		switch t.state {
		case threadRunning:
			if t.cpu != int32(c.Index) {
				cpus[c.Index].after.ipi |= 1 << t.cpu
			}
		case threadBlocked:
			unblock(i, errno(linux.EINTR))
			woken = true
		}
	}
	unlockWaiting(t, queue)
	if woken {
		ready(c, i, false)
	}
}

// signalled tells whether signals wait for the running thread t.
func (t *thread) signalled() bool { return atomic.LoadUint64(&t.pending)&^t.mask != 0 }

// deliver enters handlers for the pending signals of the thread that c is about
// to resume.
func deliver(c *amd64.CPU) {
	t := &threads[cpus[c.Index].current]
	for t.signalled() {
		t.lock.Acquire()
		bit := bits.TrailingZeros64(t.pending &^ t.mask)
		t.pending &^= 1 << bit
		t.lock.Release()
		sig := uint64(bit) + 1
		if actions[sig].handler > 1 { // neither SIG_DFL nor SIG_IGN
			enterHandler(c, t, sig)
		}
	}
}

func enterHandler(c *amd64.CPU, t *thread, sig uint64) {
	a := &actions[sig]
	sp := t.SP()
	if a.flags&saOnStack != 0 && !t.altOff && (sp <= t.altSP || sp > t.altSP+t.altSize) {
		sp = t.altSP + t.altSize
	} else {
		sp -= 128
	}
	at := (sp-sigFrameSize)&^15 - 8
	if !touch(c, uintptr(at), sigFrameSize) {
		fatal(c, "no stack for a signal of the Go runtime")
	}
	f := frameAt(uintptr(at))
	f.ret = a.restorer
	f.flags, f.link = 0, 0
	f.stackSP, f.stackSz, f.stackFlags = t.altSP, t.altSize, 0
	if t.altOff {
		f.stackFlags = 2
	}
	t.SaveFrame(&f.regs, &f.ymm)
	f.segments = amd64.SelKernelCode
	f.err, f.trap, f.cr2 = t.err, t.faultTrap, t.faultAddr
	f.oldMask, f.mask, f.fpstate = 0, t.mask, 0
	f.signo, f.errno_, f.code, f.addr = int32(sig), 0, int32(t.faultCode), t.faultAddr
	t.faultCode, t.faultAddr = 0, 0
	mask := t.mask | a.mask
	if a.flags&0x40000000 == 0 { // SA_NODEFER
		mask |= 1 << (sig - 1)
	}
	t.setMask(mask)
	t.SetHandler(a.handler, at, sig, at+8+304, at+8)
}

// sysSigreturn returns what the register of results had.
func sysSigreturn(t *thread) uint64 {
	f := frameAt(uintptr(t.SP() - 8))
	t.setMask(f.mask)
	regs, ymm := f.regs, f.ymm
	t.LoadFrame(&regs, &ymm)
	return regs.RAX
}
