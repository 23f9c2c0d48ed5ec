package main

import (
	"fmt"
	"math/bits"
	"runtime"

	"hardtack/driver/pci"
	"hardtack/kernel/base/mem"
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
		netlink.Uevent(action, fmt.Sprintf("/devices/system/cpu/cpu%d", cpu), "cpu", "DRIVER=processor")
	})
}

// plugCPU has a processor run, or run nothing any more. There are as many Ps as processors
// that run; which P is where is up to Go's scheduler.
func plugCPU(cpu int, on bool) error {
	n := bits.OnesCount64(proc.OnlineCPUs())
	if on {
		if err := nucleus.UnparkCPU(cpu); err != nil {
			return err
		}
		runtime.GOMAXPROCS(n + 1)
		steer(proc.OnlineCPUs() | 1<<cpu)
		return nil
	}
	steer(proc.OnlineCPUs())
	runtime.GOMAXPROCS(n)
	mem.Drain(n)
	return nucleus.ParkCPU(cpu)
}

// steer has devices interrupt only processors that run, the first one instead of others.
func steer(online uint64) {
	pci.Steer(func(home uint64) uint64 { return nucleus.MessageAddress(home, online) })
}
