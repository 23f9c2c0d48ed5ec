package main

import (
	"fmt"
	"math/bits"
	"runtime"

	"hardtack/driver/pci"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/net/netlink"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/pseudofs/sysfs"
	"hardtack/nucleus"
)

// plugProcessors joins what happens when a processor goes or comes.
func plugProcessors() {
	proc.PlugCPU.Set(plugCPU)
	proc.CPUPlugged.Set(func(cpu int, on bool) {
		sysfs.CPUPlugged(cpu, on)
		action := "offline"
		if on {
			action = "online"
		}
		cpuEvent(action, cpu)
	})
	proc.CPUMoved.Set(func(cpu int, here bool) {
		sysfs.CPUMoved(cpu, here)
		action := "remove"
		if here {
			action = "add"
		}
		cpuEvent(action, cpu)
	})
}

func cpuEvent(action string, cpu int) {
	netlink.Uevent(action, fmt.Sprintf("/devices/system/cpu/cpu%d", cpu), "cpu", "DRIVER=processor")
}

// reserveProcessors makes room for those of other clusters, which may come. There are n in
// the machine.
func (k *kernel) reserveProcessors(n int) {
	nucleus.ReserveCPUs(n)
	wait.SetProcessors(nucleus.NumCPU())
	proc.SetPresent(nucleus.PresentCPUs())
	wait.SetAlone(bits.OnesCount64(proc.OnlineCPUs()) == 1)
}

// releaseProcessor gives up the processor with a local APIC ID: it is parked then, and another
// kernel may start it. That this kernel has no such processor is as good.
func releaseProcessor(apic uint32) error {
	cpu := nucleus.CPUByAPIC(apic)
	if cpu < 0 {
		return nil
	}
	return proc.RemoveCPU(cpu, nucleus.DropCPU)
}

// adoptProcessor has a parked processor run here.
func adoptProcessor(apic uint32) error {
	if nucleus.CPUByAPIC(apic) >= 0 {
		return nil
	}
	_, err := proc.AddCPU(func() (int, error) { return nucleus.TakeCPU(apic) }, func(int) { nucleus.SeizeCPU(apic) })
	return err
}

// plugCPU has a processor run, or run nothing any more. There are as many Ps as processors
// that run; which P is where is up to Go's scheduler.
func plugCPU(cpu int, on bool) error {
	n := bits.OnesCount64(proc.OnlineCPUs())
	if on {
		if err := nucleus.UnparkCPU(cpu); err != nil {
			return err
		}
		wait.SetAlone(false)
		runtime.GOMAXPROCS(n + 1)
		steer(proc.OnlineCPUs() | 1<<cpu)
		return nil
	}
	steer(proc.OnlineCPUs())
	runtime.GOMAXPROCS(n)
	// This P has the timers of the one that ended. Go's scheduler tells the nucleus of them,
	// or user mode would not be interrupted for them.
	runtime.Gosched()
	wait.SetAlone(n == 1)
	mem.Drain(n)
	return nucleus.ParkCPU(cpu)
}

// steer has devices interrupt only processors that run, the first one instead of others.
func steer(online uint64) {
	pci.Steer(func(home uint64) uint64 { return nucleus.MessageAddress(home, online) })
}
