// Command kernel is the operating system. It connects the packages, in the order in which
// they need each other, starts process 1 and waits for its end.
package main

import (
	"fmt"
	"math/bits"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"

	"hardtack/arch/amd64"
	"hardtack/driver/acpi"
	"hardtack/driver/power"
	"hardtack/driver/rtc"
	"hardtack/driver/virtio"
	"hardtack/driver/virtio/rng"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/ktime"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/live"
	"hardtack/nucleus"
)

// kernel is the machine with everything on it.
type kernel struct {
	platform platform
	cmdline  string
	power    *power.Control
	ctx      *caller.Ctx
	console  *console
	control  *control
	live     *live.Link // to the host; nil without the port
	livePort *livePort
	feed     atomic.Pointer[live.Link] // live, for what comes in
	visitors *visitors                 // of live
	lives    int                       // how many live has been
	copies   copies
	entropy  []*rng.Device
	others   others

	processors int    // in the machine, if it has clusters
	estate     estate // what others' may ask for
}

func main() {
	initMemory()
	k := &kernel{cmdline: nucleus.Cmdline(), ctx: caller.NewKernelCtx()}
	k.tuneCollector()
	k.plug()
	stirFromProcessor()
	tables := &acpi.Tables{}
	if nucleus.ClusterIndex() == 0 {
		tables = k.firmware()
		k.startProcessors(tables)
	} else {
		k.joinCluster()
	}
	runtime.GOMAXPROCS(nucleus.NumCPU())
	k.reserveProcessors(k.processors)
	if err := nucleus.InitMessages(); err != nil {
		warn("no message calls: %v", err)
	}
	k.record()
	go nucleus.ServeInterrupts()
	initVDSO()
	wait.SetClock(amd64.ClockBase, amd64.ClockMult)
	var found []virtio.Transport
	if nucleus.ClusterIndex() == 0 {
		k.setClock(tables)
		found = k.shareDevices(transports(&k.platform, tables, k.cmdline), tables)
		k.startClusters()
	} else {
		k.setClusterClock()
		k.meetFirst()
		found = given(&k.platform, k.cmdline)
	}

	root, fs, config, err := k.unpackRoot()
	if err != nil {
		k.fail("the root file system: %v", err)
	}
	if nucleus.ClusterIndex() > 0 {
		config.Terminal, config.Pprof = false, 0
	}
	vfs.SetMemory(mem.Total())
	k.console = newConsole(&k.platform, config)
	if config.Terminal { // else the console is the program's
		warn("%d CPUs, concurrency control %s", bits.OnesCount64(nucleus.PresentCPUs()), nucleus.Control())
	}
	devices := k.startDevices(found, tables)
	if name, ok := k.option("root"); ok {
		if root, err = k.diskRoot(name); err != nil {
			k.fail("root=%s: %v", name, err)
		}
	}
	go k.keepStirring()
	mountAll(k.ctx, root)
	k.mountFolders(config, root)
	k.startNetwork(devices, config, root)
	k.introspect(config)
	mem.SetKeepable()
	k.startInit(config, root, fs)
	select {}
}

// firmware reads what the firmware tells of the machine.
func (k *kernel) firmware() *acpi.Tables {
	tables, err := acpi.Find(&k.platform, nucleus.RSDP())
	if err != nil {
		warn("ACPI: %v", err)
		tables = &acpi.Tables{}
	}
	k.power = power.New(&k.platform, tables)
	if err := nucleus.Works(); err != nil {
		k.fail("%v", err)
	}
	return tables
}

// option returns the value of a kernel parameter, and whether it was given.
func (k *kernel) option(name string) (string, bool) {
	for _, w := range strings.Fields(k.cmdline) {
		if w == name {
			return "", true
		}
		if v, ok := strings.CutPrefix(w, name+"="); ok {
			return v, true
		}
	}
	return "", false
}

// fail ends the machine because it cannot be of use.
func (k *kernel) fail(format string, args ...any) {
	fmt.Printf("kernel: "+format+"\n", args...)
	if k.control != nil {
		k.control.Exit(exitUnusable)
	}
	nucleus.Exit(exitUnusable)
	k.powerOff()
	panic("the machine cannot be turned off")
}

// powerOff switches the machine off, if it can be.
func (k *kernel) powerOff() {
	if k.power != nil {
		k.power.Off()
	}
}

// exitUnusable is the status of a machine that cannot start process 1, as a
// shell's for a command that it cannot run.
const exitUnusable = 126

// setAside is the address space that the runtime has set aside when the kernel
// starts (Sys in /proc/hardtack/heap): most of it never gets memory behind it.
const setAside = 8 << 20

// limitHeap lets the kernel's heap grow to a quarter of memory.
func limitHeap() { mem.SetHeapLimit(setAside + int64(nucleus.MemoryInfo().Total)*4096/4) }

// tuneCollector lets the kernel's heap grow to a quarter of the machine's memory
// before the collector works harder instead: a soft limit, which names of files
// raise while memory is free (mem.HeapCache). It is held against all
// address space that is set aside; without what is so from the start a small
// machine would do nothing but collect (docs/decisions/0036-the-kernels-collector.md).
//
// The smallest heap that is collected has 4 MiB times the percentage, of which
// little is alive; a machine with room collects less often. The kernel parameter
// gcpercent=N overrides the percentage, for measurements; gcpercent=off collects only
// at the limit.
func (k *kernel) tuneCollector() {
	limitHeap()
	total := int64(nucleus.MemoryInfo().Total) * 4096
	percent := int(min(max(100*(total>>20)/64, 200), 400))
	if how, ok := k.option("gcpercent"); how == "off" {
		percent = -1
	} else if n, err := strconv.Atoi(how); ok && err == nil && n > 0 {
		percent = n
	}
	debug.SetGCPercent(percent)
}

// setClock reads the wall clock.
func (k *kernel) setClock(tables *acpi.Tables) {
	f, _ := tables.FADT()
	if t, err := rtc.Read(&k.platform, f.Century); err == nil {
		ktime.SetRealtime(t.UnixNano())
		amd64.RealtimeBase = uint64(clocks.RealtimeOffset())
	} else {
		warn("the clock: %v", err)
	}
}
