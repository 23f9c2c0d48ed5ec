package nucleus

import (
	"errors"
	"math/bits"
	"runtime"
	"time"

	"hardtack/abi/boot"
	"hardtack/arch/amd64"
)

// Processors move between the kernels of a machine. Each kernel numbers its own: a number
// without a processor is as one that is off, and the next processor that comes gets the
// lowest such number. What goes is parked first (hotplug.go), so all that the other kernel
// needs of it is its local APIC ID: INIT takes it wherever it is.

// ReserveCPUs makes numbers for n processors in all, most of which may come later. It is
// called once, after the last StartCPU.
func ReserveCPUs(n int) {
	if n = min(n, maxCPUs); n > NumCPU() {
		amd64.Syscall(sysReserve, uint64(n), 0, 0)
	}
}

// serveReserve makes numbers without processors. Alone.
func serveReserve(n uint64) uint64 {
	for i := numCPU.Load(); i < int32(n); i++ {
		cpus[i].absent.Store(cpuGone)
		cpus[i].idleSince.Store(1) // it has done nothing so far
	}
	guard.SetCores(uint32(n))
	numCPU.Store(int32(n))
	return 0
}

// PresentCPUs returns the numbers that have a processor.
func PresentCPUs() (present uint64) {
	for i := range NumCPU() {
		if cpus[i].absent.Load() != cpuGone {
			present |= 1 << i
		}
	}
	return present
}

// CPUByAPIC returns the number of a processor of this kernel, -1 if it has no such one.
func CPUByAPIC(apic uint32) int {
	for i := range NumCPU() {
		if cpus[i].absent.Load() != cpuGone && cpus[i].APICID == apic {
			return i
		}
	}
	return -1
}

// DropCPU gives up a processor that ParkCPU took. One caller at a time, as of the next. The
// processor leaves this kernel's code, stack and tables for those that all kernels share.
func DropCPU(i int) error {
	if i <= 0 || i >= NumCPU() || !parked(i) {
		return errors.New("nucleus: there is no such parked processor")
	}
	amd64.Syscall(sysDrop, uint64(i), 0, 0)
	for tries := 1; amd64.Syscall(sysParkCPU, uint64(cpus[i].APICID), 2, 0) == 0; tries++ {
		amd64.Pause()
		if tries%1000 == 0 {
			runtime.Gosched()
		}
	}
	amd64.Syscall(sysDrop, uint64(i), 1, 0)
	return nil
}

// serveDrop has a parked processor halt; stage 1 forgets it. Alone: nobody is about to send it
// a message.
func serveDrop(cpu, stage uint64) uint64 {
	o := &cpus[cpu]
	if stage == 1 {
		o.absent.Store(cpuGone)
	} else if o.absent.Load() == cpuParked {
		store64(mailboxes()+uintptr(o.APICID)*boot.MailboxSize+24, 0)
		o.absent.Store(cpuHalted)
		icr(o.APICID, vectorReturn|1<<14)
	}
	return 0
}

// TakeCPU gives a processor that nobody uses a number, and leaves it as ParkCPU does:
// UnparkCPU starts it.
func TakeCPU(apic uint32) (int, error) {
	free := (1<<uint(NumCPU()) - 1) &^ PresentCPUs()
	switch {
	case apic >= boot.MaxMailboxes || CPUByAPIC(apic) >= 0:
		return 0, errors.New("nucleus: there is no such processor to take")
	case free == 0:
		return 0, errors.New("nucleus: too many processors")
	}
	i := bits.TrailingZeros64(free)
	amd64.Syscall(sysTake, uint64(i), uint64(apic), 0)
	return i, nil
}

// serveTake prepares a number for its processor. Alone.
func serveTake(c *amd64.CPU, cpu uint64, apic uint32) uint64 {
	o := &cpus[cpu]
	if o.stacks.nucleus == 0 {
		o.stacks.make(c)
	}
	o.APICID = apic
	store64(mailboxes()+uintptr(apic)*boot.MailboxSize+24, 1) // whatever it does, INIT ends it
	o.absent.Store(cpuHalted)
	return 0
}

// SeizeCPU parks a processor wherever it is, for one that did not start in time, and that
// nobody waits for: no kernel has it afterwards. It reports false if the processor does
// not answer.
func SeizeCPU(apic uint32) bool {
	if apic >= boot.MaxMailboxes {
		return false
	}
	parked := seize([]uint32{apic})
	if i := CPUByAPIC(apic); i > 0 && parked {
		amd64.Syscall(sysDrop, uint64(i), 1, 0)
	}
	return parked
}

// seize parks processors, and waits until they are: an emulator may take a while to deliver
// the messages. It reports false if one does not answer.
func seize(apic []uint32) bool {
	for _, id := range apic {
		amd64.Syscall(sysParkCPU, uint64(id), 0, 0)
	}
	for _, id := range apic {
		for tries := 0; amd64.Syscall(sysParkCPU, uint64(id), 2, 0) == 0; tries++ {
			if tries == stopTries {
				return false
			}
			if tries%16 == 15 {
				amd64.Syscall(sysParkCPU, uint64(id), 1, 0)
			}
			time.Sleep(time.Millisecond)
		}
	}
	return true
}

// stopTries bounds seize's patience, in milliseconds.
const stopTries = 30000
