package nucleus

import (
	"errors"
	"runtime"
	"sync/atomic"

	"hardtack/abi/boot"
	"hardtack/arch/amd64"
	"hardtack/nucleus/control"
)

// Processors go and come back. One that is to go gives its thread and its run queue to
// others the next time it schedules, is called idle by nobody from then on, and parks: it
// sleeps in its idle thread, and its local APIC lets one interrupt through, by which it comes
// back. Its number, stacks and tables stay for that.

// Stages of a processor's absence.
const (
	cpuRuns   = iota
	cpuLeaves // it gives what it has to others
	cpuParked // it sleeps until vectorReturn
	cpuHalted // it belongs to nobody (lend.go), and only INIT has it go on
	cpuGone   // this kernel has no such processor
)

// ParkCPU has a processor, other than the one that booted, run nothing any more. The caller
// lowers GOMAXPROCS before, and calls one at a time.
func ParkCPU(i int) error {
	if i <= 0 || i >= NumCPU() || cpus[i].absent.Load() != cpuRuns {
		return errors.New("nucleus: there is no such processor to park")
	}
	amd64.Syscall(sysLeave, uint64(i), 0, 0)
	// The processor takes timers with it, which nobody has until sysLeft. So this does not
	// sleep, and lets no others run, whose slices all who sleep would be late by.
	for tries := 1; !parked(i); tries++ {
		amd64.Pause() // an emulator that runs its CPUs in turn goes on with the next
		if tries%100_000 == 0 {
			amd64.Syscall(sysKick, uint64(i), 0, 0)
			runtime.Gosched()
		}
	}
	amd64.Syscall(sysLeft, uint64(i), 0, 0)
	// What was on its way there comes late, but not never.
	irqs.pending.Or(1<<uint(irqs.used.Load()) - 1)
	RunPending()
	return nil
}

// parked tells whether a processor runs nothing, and is this kernel's to start.
func parked(i int) bool {
	state := cpus[i].absent.Load()
	return state == cpuParked || state == cpuHalted
}

// UnparkCPU brings a processor back that ParkCPU took. The caller raises GOMAXPROCS
// afterwards.
func UnparkCPU(i int) error {
	if i <= 0 || i >= NumCPU() || !parked(i) {
		return errors.New("nucleus: there is no such processor to start")
	}
	cpus[i].online.Store(false)
	amd64.Syscall(sysReturn, uint64(i), 0, 0)
	if err := awaitStart(i, func() { amd64.Syscall(sysReturn, uint64(i), 1, 0) }); err != nil {
		return err
	}
	amd64.Syscall(sysKick, uint64(i), 0, 0) // it finds itself idle
	return nil
}

// serveLeave has a processor go. Alone: nobody is about to give it a thread.
func serveLeave(c *amd64.CPU, cpu uint64) uint64 {
	me, o := cpuPointer(c), &cpus[cpu]
	o.absent.Store(cpuLeaves)
	o.idle = 0
	if o == me {
		me.resched = true
	} else {
		me.after.ipi |= 1 << cpu
	}
	return 0
}

// leave gives the thread of a processor that is to go, and those in its run queue, to
// others. Called instead of schedule.
func (me *cpu) leave(c *amd64.CPU) {
	idle := idleIndex(c.Index)
	me.resched = false
	if i := me.current; i >= 0 && i != idle {
		t := &threads[i]
		t.timerDue = me.TimerDue
		t.lock.Acquire()
		t.state = threadReady
		t.lock.Release()
		me.handOver(i)
	}
	for {
		i := me.pop(me)
		if i < 0 {
			break
		}
		atomic.StoreUint32(&threads[i].bound, 0)
		me.handOver(i)
	}
	if me.idleSince.Load() == 0 {
		me.idleSince.Store(now()) // until it runs a thread again
	}
	me.current = idle
	c.SetThread(&threads[idle].Thread)
	me.after.idle, me.after.park = true, true
}

// handOver gives another processor a ready thread.
func (me *cpu) handOver(i int32) {
	n := int(numCPU.Load())
	for j := range n {
		if me.give(j, i) {
			return
		}
	}
	// None is idle: the one that booted, which never goes, looks when it schedules next.
	o := &cpus[0]
	o.lock.Acquire()
	o.run.push(i, false)
	o.lock.Release()
	control.Fence(me.Index)
	for j := range n {
		if me.give(j, -1) {
			return
		}
	}
	me.after.ipi |= 1
}

// park is the last thing a processor does, outside of the control, before it sleeps.
func (me *cpu) park() {
	c := &me.CPU
	giveUpFPU(c)
	amd64.WriteCR3(kspace.root)
	c.Space = 0
	stopTimer()
	me.timerAt, me.SliceEnd, me.SliceArmed, me.TimerDue = 0, 0, 0, 0
	apicWrite(apicTPR, parkedPriority)
	me.absent.Store(cpuParked)
}

// parkedPriority keeps all interrupts of a parked processor waiting but vectorReturn.
const parkedPriority = vectorReturn - 0x10

// serveLeft takes over the timers that a parked processor had armed. Alone.
func serveLeft(c *amd64.CPU, cpu uint64) uint64 {
	me := cpuPointer(c)
	for i := range threads[:threadMax] {
		t := &threads[i]
		if at := t.wakeAt; t.cpu == int32(cpu) && at != 0 {
			t.cpu = int32(c.Index)
			me.arm(at)
		}
	}
	if at := profile.next.Load(); profile.period != 0 {
		me.arm(at)
	}
	return 0
}

// serveReturn starts a processor again that is parked or halted; stage as for sendStart. Alone.
func serveReturn(cpu, stage uint64) uint64 {
	o := &cpus[cpu]
	if o.absent.Load() == cpuParked {
		icr(o.APICID, vectorReturn|1<<14)
		return 0
	}
	if stage == 0 {
		store64(mailboxes()+uintptr(o.APICID)*boot.MailboxSize+24, 0)
		o.Prepare(int(cpu), o.stacks.nucleus, o.stacks.ist)
		postStart(o.APICID, bootRoot(), uint64(amd64.APEntry()), uint64(o.Address()))
	}
	sendStart(o.APICID, stage)
	return 0
}

// returns serves vectorReturn: what a parked processor waits for.
func (me *cpu) returns() {
	switch me.absent.Load() {
	case cpuParked:
		apicWrite(apicTPR, 0)
		me.comeBack()
		me.online.Store(true)
	case cpuHalted:
		amd64.Park(mailboxes() + uintptr(me.APICID)*boot.MailboxSize)
	}
}

// comeBack is the first that a processor does which was parked or halted.
func (me *cpu) comeBack() {
	flushAll()
	me.flush.Store(0)
	me.retire.Store(false)
	me.Kicked.Store(0)
	me.resched = false
	me.absent.Store(cpuRuns)
	serveFlush(&me.CPU) // who asked before that did not wait
}

// waitsForFlush reports whether a processor still has to forget translations.
func (o *cpu) waitsForFlush() bool { return o.flush.Load() != 0 && o.absent.Load() < cpuParked }
