package nucleus

import "hardtack/arch/amd64"

// Interrupt vectors. Devices get those from vectorDevice up to vectorTimer.
const (
	vectorDevice   = 0x30
	vectorTimer    = 0xe0
	vectorResched  = 0xe1 // look at the run queue, the signals; leave user mode
	vectorFlush    = 0xe2 // forget kernel translations
	vectorFPU      = 0xe3 // write the x87 registers back to their owner
	vectorDoorbell = 0xe4 // another cluster rings
	vectorReturn   = 0xf0 // come back; of the highest priority, alone there
	vectorSpurious = 0xff
)

// serveTrap is amd64.TrapHandler.
func serveTrap(ac *amd64.CPU, vector, code uint64, user bool) {
	me := cpuPointer(ac)
	if vector < 32 {
		in := guard.Enter(ac.Index)
		kernelFault(ac, vector, code)
		deliver(ac)
		guard.Leave(ac.Index, in)
		return
	}
	me.Interrupts.Add(1)
	if vector == vectorDoorbell {
		if vector = doorbell.Load(); vector == 0 { // nobody listens yet
			eoi()
			return
		}
		rang.Store(amd64.TSC())
	}
	switch vector {
	case vectorFlush:
		serveFlush(ac)
		eoi()
		return
	case vectorFPU:
		giveUpFPU(ac)
		if me.retire.Swap(false) { // whichever it is: it costs a reload at most
			dropSpace(ac, ac.Space)
		}
		eoi()
		return
	case vectorReturn:
		me.returns()
	case vectorSpurious:
		return
	}
	device := vector < vectorTimer
	if device {
		noteInterrupt(ac, vector, user)
	}
	in := guard.Enter(ac.Index)
	switch {
	case vector == vectorTimer:
		timerFired(ac, user)
	case vector == vectorResched:
		me.resched = true
	case !device || user: // whose goroutine runs next
	case me.current == idleIndex(ac.Index):
		signalIRQ(ac)
	default:
		postponeIRQ(ac)
	}
	schedule(ac)
	deliver(ac)
	guard.Leave(ac.Index, in)
	eoi()
	me.finish()
}

// kernelFault serves an exception in a thread of the runtime: it commits heap memory, and
// turns anything else into a signal, which Go turns into a panic.
func kernelFault(c *amd64.CPU, vector, code uint64) {
	t := &threads[cpus[c.Index].current]
	sig := uint64(sigSEGV)
	switch vector {
	case 14:
		addr := amd64.ReadCR2()
		if addr >= arenaBase && code&1 == 0 && commit(c, addr&^(pageSize-1)) {
			return
		}
		t.faultAddr = addr
		t.faultCode = 1
	case 0, 16, 19:
		sig = sigFPE
		t.faultAddr, t.faultCode = t.PC(), 1
	case 13:
		t.faultAddr, t.faultCode = 0, 0x80
	default:
		fatalTrap(c, vector, code, t.PC(), t.SP())
	}
	if t.mask>>(sig-1)&1 != 0 || actions[sig].handler <= 1 {
		fatalTrap(c, vector, code, t.PC(), t.SP())
	}
	t.faultTrap, t.err = vector, code
	t.lock.Acquire()
	t.pending |= 1 << (sig - 1)
	t.lock.Release()
}
