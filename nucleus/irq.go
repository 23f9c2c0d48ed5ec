package nucleus

import (
	"sync/atomic"

	"hardtack/arch/amd64"
	"hardtack/lock/core"
)

// Device interrupts have two halves. The first, inside, only notes that the
// interrupt came (and masks its line if it is level-triggered). The second, the
// bottom half, is a Go function that a goroutine calls: the goroutine of the
// user thread that was interrupted, on its way through RunPending; or one that
// waits in the Go runtime's poller, when the CPU had nothing else to do.

// maxIRQ bounds the device interrupts: one bit each in irqs.pending.
const maxIRQ = 64

var irqs struct {
	pending atomic.Uint64 // bit per slot: its bottom half must run
	used    atomic.Int32  // slots given out
	slot    [maxIRQ]irqSlot
}

// irqSlot is one interrupt. Vector vectorDevice+i belongs to slot i.
type irqSlot struct {
	fn    func()        // immutable once the slot is used
	state atomic.Uint32 // bottom half: 0 rests, 1 runs, 2 must run again
	count atomic.Uint64
	pin   int32 // I/O APIC pin+1 to mask while the bottom half is due, or 0; immutable once routed
}

// noteInterrupt is the first half. A level-triggered line is masked before the interrupt
// becomes visible; its bottom half unmasks it. user: user mode was interrupted, so its
// goroutine will check for interrupts.
func noteInterrupt(c *amd64.CPU, vector uint64, user bool) {
	i := vector - vectorDevice
	if i >= maxIRQ {
		return
	}
	s := &irqs.slot[i]
	s.count.Add(1)
	if s.pin != 0 {
		maskPin(int(s.pin-1), true)
	}
	irqs.pending.Or(1 << i)
	if !user && cpus[c.Index].current != idleIndex(c.Index) {
		c.Kicked.Or(1)
	}
}

// patience is how long an interrupt waits for the interrupted kernel code before an idle
// CPU is woken for it. That code usually enters user mode or blocks very soon; waking
// another CPU takes longer, and the two would contend for locks.
const patience = 200e3

// postponeIRQ lets the next poll see that an interrupt came, and wakes nobody yet.
func postponeIRQ(c *amd64.CPU) {
	q := &waits[pollQueue]
	q.lock.Acquire()
	poller.irqReady = true
	q.lock.Release()
	if anyIdle() {
		cpuPointer(c).arm(now() + patience)
	}
}

// Pending reports whether bottom halves are due, or the processor that runs the caller is to
// look around.
func Pending() bool { return irqs.pending.Load() != 0 || amd64.GetCPU().Kicked.Load() != 0 }

// RunPending runs the bottom halves that are due. Goroutines call it when user
// mode was interrupted.
func RunPending() {
	for irqs.pending.Load() != 0 {
		bits := irqs.pending.Swap(0)
		for i := 0; bits != 0; i, bits = i+1, bits>>1 {
			if bits&1 != 0 && irqs.slot[i].fn != nil { // a line that was given comes when it likes
				irqs.slot[i].run(i)
			}
		}
	}
}

// NoteBottomHalf is told of every bottom half before it runs; set before there are devices,
// or nil.
var NoteBottomHalf func(i int)

// run calls the bottom half, or leaves that to the goroutine that is in it.
func (s *irqSlot) run(i int) {
	if NoteBottomHalf != nil {
		NoteBottomHalf(i)
	}
	for {
		switch {
		case s.state.CompareAndSwap(0, 1):
			for {
				s.fn()
				if s.pin != 0 {
					amd64.Syscall(sysUnmask, uint64(s.pin-1), 0, 0)
				}
				if s.state.CompareAndSwap(1, 0) {
					return
				}
				s.state.Store(1)
			}
		case s.state.CompareAndSwap(1, 2), s.state.Load() == 2:
			return
		}
	}
}

// allocIRQ takes a slot for a bottom half.
func allocIRQ(fn func()) (int, bool) {
	i := int(irqs.used.Add(1)) - 1
	if i >= maxIRQ || cluster.index > 0 && i >= maxIRQ-GivenLines {
		irqs.used.Add(-1)
		return 0, false
	}
	irqs.slot[i].fn = fn
	return i, true
}

// GivenLines is how many lines of I/O APICs, which the first cluster has, another cluster
// can be given. They use its last slots.
const GivenLines = 16

// GiveLine sends the interrupts of an edge-triggered pin to another cluster, whose processor
// has that APIC ID: they are its line so and so. It reports false where there is no such pin.
func GiveLine(gsi, apic uint32, line int) bool {
	if line < 0 || line >= GivenLines {
		return false
	}
	return amd64.Syscall(sysIRQRoute, uint64(apic+1)<<routeTo, uint64(maxIRQ-1-line), uint64(gsi)) == 0
}

// OnLine connects a line that this cluster was given to a bottom half.
func OnLine(line uint32, fn func()) bool {
	if cluster.index == 0 || line >= GivenLines {
		return false
	}
	s := &irqs.slot[maxIRQ-1-line]
	if s.fn != nil {
		return false
	}
	s.fn = fn
	return true
}

// IRQCount returns how often interrupt slot i came; false past the last slot.
func IRQCount(i int) (uint64, bool) {
	if i >= int(irqs.used.Load()) {
		return 0, false
	}
	return irqs.slot[i].count.Load(), true
}

// RouteGSI connects a global system interrupt of an I/O APIC to a bottom half.
// It reports false where there is no such pin or no slot left.
func RouteGSI(gsi uint32, level, activeLow bool, fn func()) bool {
	i, ok := allocIRQ(fn)
	if !ok {
		return false
	}
	mode := uint64(0)
	if level {
		mode |= routeLevel
	}
	if activeLow {
		mode |= routeLow
	}
	return amd64.Syscall(sysIRQRoute, mode, uint64(i), uint64(gsi)) == 0
}

// RouteMSI returns the address and data that a device must write to cause the
// bottom half on a CPU.
func RouteMSI(cpu int, fn func()) (addr uint64, data uint32, ok bool) {
	i, ok := allocIRQ(fn)
	if !ok || cpu >= NumCPU() {
		return 0, 0, false
	}
	return messageBase | uint64(cpus[cpu].APICID)<<12, uint32(vectorDevice + i), true
}

// messageBase is where message interrupts are written to (SDM vol. 3, 11.11.1).
const messageBase = 0xfee00000

// MessageAddress returns where to send what RouteMSI has a device send to an address, where
// only some processors run: to the one that booted if the other does not run.
func MessageAddress(home, online uint64) uint64 {
	for i := range NumCPU() {
		if home == messageBase|uint64(cpus[i].APICID)<<12 && online>>i&1 == 0 {
			return messageBase | uint64(cpus[0].APICID)<<12
		}
	}
	return home
}

const (
	routeLevel = 1
	routeLow   = 2
	routeTo    = 32 // from this bit on: 1 more than the local APIC ID of another cluster's processor
)

// maxGSI bounds the global system interrupts that can be routed.
const maxGSI = 256

// ioapics are the machine's I/O APICs. Their registers are reached through a pair
// of others, hence a lock under each concurrency control; it comes last.
var ioapics struct {
	lock core.Ticket
	n    int            // set at boot, like the rest but for low, which changes alone
	low  [maxGSI]uint32 // low half of each routed pin's entry, unmasked: reading it costs an exit
	at   [8]struct {
		regs    uintptr
		gsiBase uint32
		pins    uint32
	}
}

// AddIOAPIC makes an I/O APIC known; all its pins are masked. Called at boot.
func AddIOAPIC(phys uint64, gsiBase uint32) {
	regs := uintptr(amd64.Syscall(sysMapDevice, phys, pageSize, 0))
	a := &ioapics.at[ioapics.n]
	a.regs, a.gsiBase = regs, gsiBase
	a.pins = ioapicRead(regs, 1)>>16&0xff + 1
	for p := range a.pins {
		ioapicWrite(regs, 0x10+2*p, 1<<16)
	}
	ioapics.n++
}

func ioapicRead(regs uintptr, r uint32) uint32 {
	mmioStore32(regs, r)
	return mmioLoad32(regs + 0x10)
}

func ioapicWrite(regs uintptr, r, v uint32) {
	mmioStore32(regs, r)
	mmioStore32(regs+0x10, v)
}

// findPin returns the register block and the pin of a GSI.
func findPin(gsi int) (regs uintptr, pin uint32, ok bool) {
	for i := range ioapics.n {
		a := &ioapics.at[i]
		if uint32(gsi) >= a.gsiBase && uint32(gsi) < a.gsiBase+a.pins {
			return a.regs, uint32(gsi) - a.gsiBase, true
		}
	}
	return 0, 0, false
}

func maskPin(gsi int, on bool) {
	if regs, pin, ok := findPin(gsi); ok {
		v := ioapics.low[gsi]
		if on {
			v |= 1 << 16
		}
		ioapics.lock.Spin()
		ioapicWrite(regs, 0x10+2*pin, v)
		ioapics.lock.Release()
	}
}

// serveRoute sends a pin's interrupts to a slot; op is the line's mode. Alone.
func serveRoute(op, slot, gsi uint64) uint64 {
	s := &irqs.slot[slot]
	regs, pin, ok := findPin(int(gsi))
	if !ok || gsi >= maxGSI {
		return 1
	}
	low := uint32(vectorDevice + slot)
	if op&routeLevel != 0 {
		low |= 1 << 15
		s.pin = int32(gsi) + 1
	}
	if op&routeLow != 0 {
		low |= 1 << 13
	}
	to := cpus[0].APICID
	if other := op >> routeTo; other != 0 {
		to = uint32(other - 1)
	}
	ioapics.low[gsi] = low
	ioapics.lock.Spin()
	ioapicWrite(regs, 0x10+2*pin+1, to<<24)
	ioapicWrite(regs, 0x10+2*pin, low)
	ioapics.lock.Release()
	return 0
}
