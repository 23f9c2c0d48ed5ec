package nucleus

import (
	"hardtack/arch/amd64"
)

// Local APIC registers (SDM vol. 3, table 11-1), as offsets of the memory form;
// the x2APIC MSR is 0x800 + offset/16.
const (
	apicID        = 0x20
	apicTPR       = 0x80
	apicEOI       = 0xb0
	apicSpurious  = 0xf0
	apicICRLow    = 0x300
	apicICRHigh   = 0x310
	apicLVTTimer  = 0x320
	apicLVTLint0  = 0x350
	apicLVTLint1  = 0x360
	apicLVTError  = 0x370
	apicInitial   = 0x380
	apicCurrent   = 0x390
	apicDivide    = 0x3e0
	apicMasked    = 1 << 16
	msrAPICBase   = 0x1b
	msrTSCDeadln  = 0x6e0
	deadlineMode  = 2 << 17
	divideBy1     = 0xb
	x2apicBit     = 1 << 10
	icrPending    = 1 << 12
	icrInit       = 5<<8 | 1<<14
	icrStartup    = 6<<8 | 1<<14
	defaultAPICPA = 0xfee00000
)

// apic is set up by the first CPU; immutable afterwards.
var apic struct {
	regs     uintptr // 0 in x2APIC mode
	x2       bool
	deadline bool   // TSC-deadline timers
	mult     uint64 // timer counts a nanosecond, 32 binary places
}

func apicRead(reg uint32) uint32 {
	if apic.x2 {
		return uint32(amd64.ReadMSR(0x800 + reg>>4))
	}
	return mmioLoad32(apic.regs + uintptr(reg))
}

func apicWrite(reg, v uint32) {
	if apic.x2 {
		amd64.WriteMSR(0x800+reg>>4, uint64(v))
		return
	}
	mmioStore32(apic.regs+uintptr(reg), v)
}

func eoi() { apicWrite(apicEOI, 0) }

// initAPIC enables the running CPU's local APIC.
func initAPIC(c *amd64.CPU) {
	_, _, ecx, _ := amd64.CPUID(1, 0)
	if c.Index == 0 {
		apic.x2 = ecx>>21&1 != 0
		apic.deadline = ecx>>24&1 != 0
		if !apic.x2 {
			apic.regs = uintptr(mapDevice(nil, defaultAPICPA, pageSize))
		}
	}
	base := amd64.ReadMSR(msrAPICBase) | 1<<11
	if apic.x2 {
		base |= x2apicBit
	}
	amd64.WriteMSR(msrAPICBase, base)
	apicWrite(apicSpurious, 0x100|vectorSpurious)
	apicWrite(apicTPR, 0)
	apicWrite(apicLVTLint0, apicMasked)
	apicWrite(apicLVTLint1, apicMasked)
	apicWrite(apicLVTError, apicMasked)
	apicWrite(apicDivide, divideBy1)
	if apic.deadline {
		apicWrite(apicLVTTimer, vectorTimer|deadlineMode)
	} else {
		apicWrite(apicLVTTimer, vectorTimer)
	}
	c.APICID = apicRead(apicID)
	if !apic.x2 {
		c.APICID >>= 24
	}
}

// setTimer makes the running CPU's timer fire once, ns from now.
func setTimer(ns int64) {
	if apic.deadline {
		amd64.WriteMSR(msrTSCDeadln, amd64.TSC()+nsToTicks(ns))
		return
	}
	n := uint64(min(ns, 1e9)) * apic.mult >> 32
	apicWrite(apicInitial, uint32(min(max(n, 1), 0xffffffff)))
}

// stopTimer makes the running CPU's timer not fire.
func stopTimer() {
	if apic.deadline {
		amd64.WriteMSR(msrTSCDeadln, 0)
		return
	}
	apicWrite(apicInitial, 0)
}

func icr(dest uint32, low uint32) {
	if apic.x2 {
		amd64.WriteMSR(0x830, uint64(dest)<<32|uint64(low))
		return
	}
	for apicRead(apicICRLow)&icrPending != 0 {
		amd64.Pause()
	}
	apicWrite(apicICRHigh, dest<<24)
	apicWrite(apicICRLow, low)
}

// sendIPI interrupts another CPU, unless it is parked: it may be another kernel's now.
func sendIPI(cpu int, vector uint32) {
	if o := &cpus[cpu]; o.absent.Load() < cpuParked {
		icr(o.APICID, vector|1<<14)
	}
}

// flushKernel makes every CPU forget its kernel translations and waits for it.
func flushKernel(c *amd64.CPU) {
	n := int(numCPU.Load())
	for i := range n {
		if i != int(c.Index) && cpus[i].absent.Load() < cpuParked {
			cpus[i].flush.Store(1)
			sendIPI(i, vectorFlush)
		}
	}
	flushAll()
	for i := range n {
		if i == int(c.Index) {
			continue
		}
		for cpus[i].waitsForFlush() {
			serveFlush(c)
			amd64.Pause()
		}
	}
}

// yield is core.Yield: what a CPU does while it waits for a lock.
func yield() { serveFlush(amd64.GetCPU()) }

// serveFlush forgets the running CPU's translations if another asked for it.
func serveFlush(c *amd64.CPU) {
	if f := &cpus[c.Index].flush; f.Load() != 0 {
		flushAll()
		f.Store(0)
	}
}

// flushAll drops global translations too, by turning them off and on (SDM vol.
// 3, 4.10.4.1).
func flushAll() {
	v := amd64.ReadCR4()
	amd64.WriteCR4(v &^ (1 << 7))
	amd64.WriteCR4(v)
}
