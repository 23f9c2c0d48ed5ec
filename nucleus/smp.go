package nucleus

import (
	"errors"
	"runtime"

	"hardtack/abi/boot"
	"hardtack/arch/amd64"
	"hardtack/nucleus/control"
)

// StartCPU starts the processor with a local APIC ID and waits until it runs.
// The caller raises GOMAXPROCS afterwards.
func StartCPU(apicID uint32) error {
	n := NumCPU()
	if apicID >= boot.MaxMailboxes {
		return errors.New("nucleus: the APIC ID is too large")
	}
	if err := control.Works(n+1, maxCPUs); err != nil {
		return err
	}
	amd64.Syscall(sysStartCPU, uint64(apicID), 0, 0)
	if err := awaitStart(n, func() { amd64.Syscall(sysStartCPU, uint64(apicID), 1, 0) }); err != nil {
		return err
	}
	numCPU.Store(int32(n + 1))
	return nil
}

// awaitStart waits until a processor runs that was sent the messages, and repeats the last
// (SDM vol. 3, 9.4.4.1).
func awaitStart(n int, repeat func()) error {
	deadline := now() + 1e10 // a host that is busy may not run the processor for seconds
	for again := now() + 1e7; !cpus[n].online.Load(); runtime.Gosched() {
		amd64.Pause() // an emulator that runs its CPUs in turn goes on with the next
		if t := now(); t > deadline {
			return errors.New("nucleus: processor does not start")
		} else if t > again {
			repeat()
			again = deadline
		}
	}
	return nil
}

// serveStartCPU prepares the next CPU's memory and starts it; stage as for sendStart.
func serveStartCPU(c *amd64.CPU, apicID uint32, stage uint64) uint64 {
	n := int(numCPU.Load())
	if stage == 0 {
		guard.SetCores(uint32(n) + 1)
		ap, s := &cpus[n].CPU, &cpus[n].stacks
		s.make(c)
		ap.Prepare(n, s.nucleus, s.ist)
		postStart(apicID, bootRoot(), uint64(amd64.APEntry()), uint64(ap.Address()))
	}
	sendStart(apicID, stage)
	return 0
}

// initTrampoline puts the start-up code of processors where real mode reaches it.
func initTrampoline() {
	t := direct(boot.Trampoline)
	from := direct(boot.StubBase + boot.StubTrampoline)
	for i := uintptr(0); i < boot.TrampolineSize; i += 8 {
		store64(t+i, load64(from+i))
	}
	store32(t+boot.TrampolineCR3, boot.StubBase+boot.StubPML4)
	store64(t+boot.TrampolineEntry, uint64(amd64.StartEntry()))
}

// postStart says how a processor goes on behind its start-up code.
func postStart(apicID uint32, root, entry, arg uint64) {
	m := mailboxes() + uintptr(apicID)*boot.MailboxSize
	store64(m, root)
	store64(m+8, entry)
	store64(m+16, arg)
}

// sendStart sends a processor the INIT and start-up messages; stage 1 only repeats the
// last.
func sendStart(apicID uint32, stage uint64) {
	if stage == 0 {
		icr(apicID, icrInit)
		for end := now() + 200e3; now() < end; {
			amd64.Pause()
		}
	}
	icr(apicID, icrStartup|boot.Trampoline>>12)
	c := cpuPointer(amd64.GetCPU())
	for range 4 {
		// An emulator that counts instructions (QEMU 7.2) takes a reset for as many of them as
		// there are until the next timer fires. So one is due soon while others have their turns.
		c.timerAt = 0
		armTimer(&c.CPU, now()+2e3)
		amd64.Pause()
	}
}

// stacks are those of a processor that did not boot.
type stacks struct {
	nucleus, idle uintptr
	ist           [7]uintptr
}

func (s *stacks) make(c *amd64.CPU) {
	for i := 1; i < len(s.ist); i++ {
		s.ist[i] = mapStack(c, trapStack)
	}
	s.nucleus, s.idle = mapStack(c, nucleusStack), mapStack(c, idleStack)
}

// startCPU is amd64.StartCPU: the first Go code on a further processor.
func startCPU(c *amd64.CPU) {
	n := int(c.Index)
	s := &cpus[n].stacks
	initCPU(c, n, s.nucleus, s.ist)
	initAPIC(c)
	initIdle(c, s.idle)
	cpus[n].current = idleIndex(c.Index)
	c.SetThread(&threads[idleIndex(c.Index)].Thread)
	if cpus[n].absent.Load() == cpuRuns {
		cpus[n].idle = 1
		cpus[n].idleSince.Store(1) // it has done nothing so far
	} else {
		cpus[n].comeBack()
	}
	cpus[n].online.Store(true)
}

// BootAPICID returns the local APIC ID of the processor that booted.
func BootAPICID() uint32 { return cpus[0].APICID }

// APICID returns a processor's local APIC ID.
func APICID(cpu int) uint32 { return cpus[cpu].APICID }

// CurrentCPU returns the index of the processor that runs the caller.
func CurrentCPU() int { return int(amd64.GetCPU().Index) }

// KickCPU makes a processor leave user mode, or not enter it the next time.
func KickCPU(i int) {
	cpus[i].Kicked.Or(1)
	amd64.Syscall(sysKick, uint64(i), 0, 0)
}

// ProbeCPU sends a processor a message that does nothing but count as an interrupt.
func ProbeCPU(i int) { amd64.Syscall(sysProbe, uint64(i), 0, 0) }

// CPUs returns how many numbers of processors there are, and which of them runs the caller,
// who may be on another a moment later.
func CPUs() (n, current int) { return NumCPU(), int(amd64.GetCPU().Index) }
