package main

import (
	"hardtack/abi/linux"
	"hardtack/arch/amd64"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/disk/block"
	"hardtack/kernel/fs/devfs"
	"hardtack/kernel/fs/nsfs"
	"hardtack/kernel/fs/tmpfs"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/mm/pagecache"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/netif"
	"hardtack/kernel/net/netlink"
	"hardtack/kernel/net/packet"
	"hardtack/kernel/net/sock"
	"hardtack/kernel/net/unix"
	"hardtack/kernel/process/endpoint"
	"hardtack/kernel/process/posixtimer"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/process/program"
	"hardtack/kernel/process/sysv"
	"hardtack/kernel/pseudofs/diskfiles"
	"hardtack/kernel/pseudofs/procfs"
	"hardtack/kernel/pseudofs/procnet"
	"hardtack/kernel/pseudofs/sysfs"
	"hardtack/kernel/syscall"
	"hardtack/kernel/trace"
	"hardtack/kernel/tty"
	"hardtack/nucleus"
)

// The plug board: packages that call each other without an import are joined here and
// in plug_files.go, and nowhere else (docs/decisions/0154-one-plug-board.md).

// plug joins the kernel's packages before anything of it runs.
func (k *kernel) plug() {
	k.plugCalls()
	k.plugProcesses()
	plugMessages()
	k.plugMemory()
	plugFiles()
	plugSockets()
	plugTerminals()
	plugProcFS()
}

// plugCalls joins threads and system calls.
func (k *kernel) plugCalls() {
	proc.RandomFile.Set(devfs.Random)
	wait.SetTurns(wait.TurnHooks{
		Due: amd64.SetTimerDue, CPU: nucleus.CurrentCPU, Kick: nucleus.KickCPU,
		Idle: nucleus.IdleCPUs, Go: nucleus.GoTo, Wanted: &nucleus.Wanted,
		Begin: amd64.BeginSlice, Count: nucleus.CountTurns, Pending: nucleus.Pending,
		Slept: proc.SleptKey,
	})
	syscall.Init()
	call := syscall.Do
	if _, ok := k.option("strace"); ok {
		call = traced(call)
		proc.TraceFault.Set(printFault)
	}
	proc.Syscall.Set(call)
	proc.Intercept.Set(syscall.DoIntercepted)
	proc.Reboot.Set(k.reboot)
	caller.OnSignalSelf.Set(proc.SignalSelf)
	caller.OnKilled.Set(proc.KilledSelf)
	caller.OnMemoryWanted.Set(proc.MemoryCameSelf)
	caller.OnRest.Set(proc.RestSelf)
	vfs.SignalIO.Set(syscall.SignalIO)
	nsfs.Install.Set(func(c *caller.Ctx, f *vfs.File) (int32, linux.Errno) { return jobs{}.Install(c, f, true) })
}

// plugProcesses joins processes, the machine and what ends with a process.
func (k *kernel) plugProcesses() {
	proc.CPUs.Set(nucleus.CPUs)
	proc.CPUIdled.Set(nucleus.CPUIdled)
	plugProcessors()
	program.SetHWCap(hwCap())
	proc.InitExited.Set(k.initExited)
	proc.Execed.Set(func(t *proc.Thread) { posixtimer.DeleteAll(t.Proc) })
	proc.SignalTaken.Set(trace.Signalled)
	proc.ThreadExited.Set(func(t *proc.Thread, last bool) {
		trace.Exited(t, last)
		if last {
			posixtimer.DeleteAll(t.Proc)
			sysv.SemExit(t.Proc.PID)
		}
	})
	if how, _ := k.option("panic"); how != "stop" { // else panics end the machine
		proc.MayOutlive.Set(mayOutlive)
		proc.Oops.Set(reportOops)
	}
}

// plugMessages joins message calls, which the nucleus carries out, with the threads
// and files that take part.
func plugMessages() {
	wait.Tell.Set(nucleus.EndLinger)
	proc.LeftUser.Set(endpoint.Left)
	nucleus.HookMessages(nucleus.MessageHooks{
		Woken:             endpoint.Woken,
		Deadline:          endpoint.Deadline,
		EndpointReady:     endpoint.EndpointReady,
		NotificationReady: endpoint.NotificationReady,
	})
}

// plugMemory joins address spaces and the machine, and those who want memory and those
// who give it back.
func (k *kernel) plugMemory() {
	vm.SetMMU(vm.MMU{
		FillUpper:  nucleus.KernelPML4,
		Invalidate: (*nucleus.AddressSpace).Invalidate,
		Retire:     (*nucleus.AddressSpace).Retire,
	})
	mem.Reclaim.Set(pagecache.Reclaim)
	vm.OutOfMemory.Set(func() { proc.KillBiggest() })
	proc.Relieve.Set(relief.Start)
	netif.Short.Set(func() bool {
		if !relief.Short() {
			return false
		}
		relief.Start()
		// Programs that behave get their answers while there is half of the reserve: the other
		// end waits longer and longer to send again.
		m := nucleus.MemoryInfo()
		return m.Free < m.Reserve/2
	})
	mem.Given.Set(proc.Serve)
	vm.Await.Set(proc.AwaitPage)
	proc.KeptBy.Set(func(uid uint32) int64 {
		return tmpfs.KeptBy(uid) + vm.SegmentsOf(uid) + unix.KeptBy(uid) + inet.KeptBy(uid)
	})
	proc.Killed.Set(reportKilled)
	proc.HoldsMore.Set(posixtimer.Holds)
	ledger.SetKeepers(tmpfs.Ledger, sysv.Ledger, unix.Ledger, inet.Ledger, endpoint.Ledger, k.ringsLedger)
}

// plugSockets makes the address families known. Those of the Internet come with the
// network (plugNetwork).
func plugSockets() {
	sock.Register(linux.AF_UNIX, unix.Create, unix.Pair)
	sock.Register(linux.AF_NETLINK, netlink.Create, nil)
	sock.Register(linux.AF_PACKET, packet.Create, nil)
	inet.Changed.Set(netlink.Announce)
	inet.InterfaceAdded.Set(func(n *inet.Net, i *inet.Interface) {
		procnet.AddInterface(n, i)
		sysfs.AddInterface(n, i)
	})
}

// plugNetwork makes the machine's network known to sockets.
func plugNetwork(n *inet.Net) {
	sock.Register(linux.AF_INET, n.Socket, nil)
	sock.Register(linux.AF_INET6, n.Socket, nil)
	sock.DeviceIoctl.Set(n.DeviceIoctl)
	sock.DeviceIndex.Set(n.DeviceIndex)
	sock.DeviceName.Set(n.DeviceName)
}

// plugTerminals joins terminals and processes.
func plugTerminals() {
	tty.SetJobControl(jobs{})
	proc.SessionEnded.Set(func(s *proc.Session) { tty.SessionEnded(s.ID) })
}

// plugProcFS gives /proc and /sys what they show of other parts.
func plugProcFS() {
	procfs.Init()
	procnet.Init()
	procfs.CommandLine.Set(nucleus.Cmdline)
	procfs.CPUInfo.Set(cpuInfo)
	procfs.CPUInterrupts.Set(nucleus.CPUInterrupts)
	procfs.Interrupts.Set(allInterrupts)
	procfs.IRQs.Set(deviceInterrupts)
	procfs.Memory.Set(memory)
	procfs.PtyMinors.Set(tty.Minors)
	procfs.Ptys.Set(tty.Open)
	procfs.DiskWait.Set(block.Waited)
	procfs.DiskSectors.Set(block.Sectors)
	block.PartAdded.Set(diskfiles.Add)
	block.PartRemoved.Set(diskfiles.Remove)
	procfs.Register("partitions", diskfiles.PartitionsText)
	procfs.Register("diskstats", diskfiles.DiskstatsText)
	sysfs.Caches.Set(caches)
	sysfs.Place.Set(nucleus.APICID)
	sysfs.Levels.Set(levels)
}
