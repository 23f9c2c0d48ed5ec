package main

import (
	"bytes"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"

	"hardtack/abi/linux"
	"hardtack/kernel/base/checks"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/random"
	"hardtack/kernel/fs/initramfs"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/pprof"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/pseudofs/procfs"
	"hardtack/kernel/syscall"
	"hardtack/kernel/trace"
	"hardtack/nucleus"
)

// introspect fills /proc/hardtack: what the kernel, a Go program, knows of itself.
// What shows addresses or the kernel's heap, or measures, is for the administrator.
func (k *kernel) introspect(config *initramfs.BootConfig) {
	procfs.RegisterAdmin("hardtack/heap", heapText, collect)
	procfs.RegisterAdmin("hardtack/goroutines", goroutinesText, nil)
	procfs.Register("hardtack/interrupts", interruptsText)
	procfs.RegisterAdmin("hardtack/syscalls", syscallsText, nil)
	procfs.RegisterAdmin("hardtack/latencies", latenciesText, nil)
	procfs.Register("hardtack/frames", framesText)
	procfs.Register("hardtack/control", func() []byte { return []byte(nucleus.Control() + "\n") })
	procfs.RegisterAdmin("hardtack/nucleus", costsText, nil)
	procfs.RegisterAdmin("hardtack/protection", protectionText, nil)
	procfs.RegisterAdmin("hardtack/allocated", allocatedText, nil)
	procfs.RegisterStream("hardtack/trace", trace.Open)
	procfs.RegisterStream("hardtack/flight", trace.OpenRecorder)
	procfs.RegisterStream("hardtack/profile", openProfile)
	procfs.RegisterAdmin("hardtack/processes", procfs.ProcessesText, nil)
	procfs.RegisterAdmin("hardtack/processors", processorsText, nil)
	procfs.RegisterTrigger("hardtack/oops", oopsText, provoke)
	if checks.Bounds {
		procfs.RegisterAdmin("hardtack/bounds", syscall.BoundsText, nil)
	}
	if checks.ChecksLocks() {
		procfs.RegisterAdmin("hardtack/locks", checks.LocksText, nil)
	}
	if config.Pprof > 0 && config.Pprof < 1<<16 {
		if err := pprof.Serve(inet.Default, uint16(config.Pprof), nil); err != nil {
			warn("profiles: %v", err)
		}
	} else {
		runtime.MemProfileRate = 0 // nobody can read the heap's profile: do not make one
	}
}

// processorsText has for each CPU for how many nanoseconds the kernel has run, and for how
// many of them the CPU had nothing to do.
func processorsText() []byte {
	b := new(bytes.Buffer)
	for i := range nucleus.NumCPU() {
		fmt.Fprintf(b, "cpu%d %d %d\n", i, clocks.Monotonic(), nucleus.CPUIdled(i))
	}
	return b.Bytes()
}

// collect is a write to hardtack/heap: garbage is collected and free memory
// given back, so that what is left is in use.
func collect(string) linux.Errno {
	debug.FreeOSMemory()
	return 0
}

func heapText() []byte {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b := new(bytes.Buffer)
	for _, v := range []struct {
		name string
		n    uint64
	}{
		{"HeapAlloc", m.HeapAlloc}, {"HeapInuse", m.HeapInuse}, {"HeapIdle", m.HeapIdle}, {"HeapReleased", m.HeapReleased},
		{"HeapObjects", m.HeapObjects}, {"StackInuse", m.StackInuse}, {"Sys", m.Sys}, {"Mallocs", m.Mallocs},
		{"TotalAlloc", m.TotalAlloc}, {"NumGC", uint64(m.NumGC)}, {"PauseTotalNs", m.PauseTotalNs},
		{"PauseMaxNs", slices.Max(m.PauseNs[:])}, {"GCCPUPpm", uint64(m.GCCPUFraction * 1e6)}, {"NextGC", m.NextGC},
	} {
		fmt.Fprintf(b, "%-14s %d\n", v.name, v.n)
	}
	return b.Bytes()
}

// goroutinesText is the number of goroutines, then their stacks.
func goroutinesText() []byte {
	b := make([]byte, 1<<20)
	b = b[:runtime.Stack(b, true)]
	return fmt.Appendf(nil, "%d\n\n%s", runtime.NumGoroutine(), b)
}

func interruptsText() []byte {
	b := new(bytes.Buffer)
	for i := range nucleus.NumCPU() {
		fmt.Fprintf(b, "cpu%d %d\n", i, nucleus.CPUInterrupts(i))
	}
	for i := 0; ; i++ {
		n, ok := nucleus.IRQCount(i)
		if !ok {
			return b.Bytes()
		}
		fmt.Fprintf(b, "irq%d %d\n", i, n)
	}
}

func syscallsText() []byte {
	b := new(bytes.Buffer)
	for _, c := range syscall.Counts() {
		fmt.Fprintf(b, "%-24s %10d %14d ns %12d B\n", c.Name, c.Calls, c.Nsec, c.Bytes)
	}
	return b.Bytes()
}

// latenciesText has a line for each system call: the time that the measured ones took, and
// pairs of a bound and how many took less, but not less than the bound before.
func latenciesText() []byte {
	b := new(bytes.Buffer)
	for _, l := range syscall.Latencies() {
		fmt.Fprintf(b, "%s %d", l.Name, l.Nsec)
		for i, n := range l.Calls {
			fmt.Fprintf(b, " %d %d", l.Below[i], n)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// costsText is what operations of the nucleus take, measured at the reading.
func costsText() []byte {
	b := new(bytes.Buffer)
	for _, c := range nucleus.Costs() {
		fmt.Fprintf(b, "%-24s %8.1f ns\n", c.Name, c.NS)
	}
	return b.Bytes()
}

// protectionText is what each CPU does to protect the kernel, how many of the kernel's
// pages break its rules, and whether the random numbers can be guessed.
func protectionText() []byte {
	b := new(bytes.Buffer)
	for i := range nucleus.NumCPU() {
		p := nucleus.CPUProtection(i)
		fmt.Fprintf(b, "cpu%d", i)
		for _, f := range []struct {
			name    string
			on, has bool
		}{{"wp", p.WP, true}, {"nx", p.NX, true}, {"smep", p.SMEP, p.Has.SMEP}, {"smap", p.SMAP, p.Has.SMAP}, {"umip", p.UMIP, p.Has.UMIP}} {
			how := "on"
			if !f.on {
				how = "off"
			}
			if !f.has {
				how = "none"
			}
			fmt.Fprintf(b, " %s=%s", f.name, how)
		}
		b.WriteByte('\n')
	}
	pages, wrong := nucleus.WrongPages()
	fmt.Fprintf(b, "pages %d wrong %d foreign %d\nrandom processor=%t ready=%t\n", pages, wrong, nucleus.ForeignPages(), nucleus.HasRandom(), random.Ready())
	return b.Bytes()
}

// allocatedText is what was allocated on the kernel's heap: exactly, by the goroutine
// that runs the asking thread; by estimate, in the system calls of each thread.
func allocatedText() []byte {
	if !checks.CountsAllocated() {
		return []byte("not counted: the image was built with Go's runtime as it is\n")
	}
	b := new(bytes.Buffer)
	fmt.Fprintf(b, "asking %d\n", *checks.AllocatedCount())
	proc.Each(func(p *proc.Process) bool {
		for _, t := range p.Threads() {
			fmt.Fprintf(b, "%d %d %d %s\n", p.PID, t.TID, t.Allocated(), t.Name())
		}
		return true
	})
	return b.Bytes()
}

func framesText() []byte {
	m := nucleus.MemoryInfo()
	return fmt.Appendf(nil, "total %d\nfree %d\nkernel %d\nreserve %d\n", m.Total, m.Free, m.Kernel, m.Reserve)
}
