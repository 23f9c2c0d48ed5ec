package sysfs

import (
	"fmt"

	"hardtack/abi/linux"
	"hardtack/kernel/base/hook"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/pseudofs/procfs"
)

// Cache is a cache of a processor.
type Cache struct {
	Level                  int
	Type                   string // Data, Instruction or Unified
	Size, Line, Ways, Sets int    // Size in bytes
	Partitions             int
	Shared                 bool // by all CPUs
}

// Caches returns the caches of a CPU.
var Caches = hook.Default(func() []Cache { return nil })

func line(format string, args ...any) func() string {
	s := fmt.Sprintf(format, args...) + "\n"
	return func() string { return s }
}

const cpuDir = "devices/system/cpu/"

// set returns a file's text of some processors, as words or as a list, whenever it is read.
func set(list bool, which func() uint64) func() string {
	return func() string {
		n, _ := proc.CPUs.Call()
		words, numbers := procfs.CPUSet(n, which())
		if list {
			return numbers + "\n"
		}
		return words + "\n"
	}
}

// offline returns the processors that are not online.
func offline() uint64 { return proc.AllCPUs() &^ proc.OnlineCPUs() }

// addCPUs shows the CPUs: cores of one package, each with one thread.
func addCPUs() {
	const at = cpuDir
	n, _ := proc.CPUs.Call()
	Add(at+"possible", line("%s", procfs.CPURange(n)))
	Add(at+"present", set(true, proc.PresentCPUs))
	Add(at+"online", set(true, proc.OnlineCPUs))
	Add(at+"offline", set(true, offline))
	for _, f := range []string{"isolated", "nohz_full"} {
		Add(at+f, line(""))
	}
	Add(at+"kernel_max", line("63"))
	Add(at+"smt/active", line("0"))
	Add(at+"smt/control", line("notsupported"))
	for i := range n {
		if proc.PresentCPUs()>>i&1 != 0 {
			addPresent(i)
			addOnline(fmt.Sprintf("%scpu%d/", at, i), i, n)
		}
	}
	addNode()
}

// addPresent shows a processor that may be online or not.
func addPresent(i int) {
	cpu := fmt.Sprintf("%scpu%d/", cpuDir, i)
	if i > 0 {
		addSwitch(cpu+"online", i)
	}
	Link(cpu+"node0", "../../node/node0")
	Link(cpu+"subsystem", "../../../../bus/cpu")
	Link(fmt.Sprintf("bus/cpu/devices/cpu%d", i), fmt.Sprintf("../../../devices/system/cpu/cpu%d", i))
	Link(fmt.Sprintf("devices/system/node/node0/cpu%d", i), fmt.Sprintf("../../cpu/cpu%d", i))
}

// CPUMoved shows that the machine has a processor no more, or has it anew, but not online.
func CPUMoved(cpu int, here bool) {
	if here {
		addPresent(cpu)
		return
	}
	Remove(fmt.Sprintf("%scpu%d", cpuDir, cpu))
	Remove(fmt.Sprintf("bus/cpu/devices/cpu%d", cpu))
	Remove(fmt.Sprintf("devices/system/node/node0/cpu%d", cpu))
}

// addSwitch adds the file by which a processor goes and comes.
func addSwitch(path string, cpu int) {
	AddWritable(path, func() string {
		if proc.Online(cpu) {
			return "1\n"
		}
		return "0\n"
	}, func(s string) linux.Errno {
		on, ok := boolean(s)
		if !ok {
			return linux.EINVAL
		}
		return proc.SetOnline(cpu, on)
	})
}

// boolean is Linux's kstrtobool.
func boolean(s string) (v, ok bool) {
	switch s[0] {
	case 'y', 'Y', 't', 'T', '1':
		return true, true
	case 'n', 'N', 'f', 'F', '0':
		return false, true
	case 'o', 'O':
		if len(s) > 1 {
			switch s[1] {
			case 'n', 'N':
				return true, true
			case 'f', 'F':
				return false, true
			}
		}
	}
	return false, false
}

// CPUPlugged shows that a processor went or came.
func CPUPlugged(cpu int, on bool) {
	at := fmt.Sprintf("%scpu%d/", cpuDir, cpu)
	if !on {
		Remove(at + "topology")
		Remove(at + "cache")
		return
	}
	n, _ := proc.CPUs.Call()
	addOnline(at, cpu, n)
}

// addOnline adds what only a processor has that is online.
func addOnline(cpu string, i, n int) {
	own, bit := line("%d", i), procfs.CPUMaskOf(n, i)
	for _, f := range []string{"physical_package_id", "die_id", "cluster_id"} {
		Add(cpu+"topology/"+f, line("0"))
	}
	Add(cpu+"topology/core_id", own)
	for _, f := range []string{"core_cpus", "thread_siblings", "cluster_cpus"} {
		Add(cpu+"topology/"+f, line("%s", bit))
		Add(cpu+"topology/"+f+"_list", own)
	}
	for _, f := range []string{"core_siblings", "package_cpus", "die_cpus"} {
		Add(cpu+"topology/"+f, set(false, proc.OnlineCPUs))
		Add(cpu+"topology/"+f+"_list", set(true, proc.OnlineCPUs))
	}
	addCaches(cpu, i)
}

func addCaches(cpu string, i int) {
	for k, c := range Caches.Call() {
		at := fmt.Sprintf("%scache/index%d/", cpu, k)
		shared := func() uint64 { return 1 << i }
		id := i
		if c.Shared {
			shared, id = proc.OnlineCPUs, 0
		}
		Add(at+"level", line("%d", c.Level))
		Add(at+"type", line("%s", c.Type))
		Add(at+"size", line("%dK", c.Size>>10))
		Add(at+"coherency_line_size", line("%d", c.Line))
		Add(at+"ways_of_associativity", line("%d", c.Ways))
		Add(at+"number_of_sets", line("%d", c.Sets))
		Add(at+"physical_line_partition", line("%d", c.Partitions))
		Add(at+"id", line("%d", id))
		Add(at+"shared_cpu_list", set(true, shared))
		Add(at+"shared_cpu_map", set(false, shared))
	}
}

// addNode shows the memory of the one node.
func addNode() {
	const at = "devices/system/node/"
	for _, f := range []string{"online", "possible", "has_cpu", "has_memory", "has_normal_memory"} {
		Add(at+f, line("0"))
	}
	Add(at+"node0/cpulist", set(true, proc.OnlineCPUs))
	Add(at+"node0/cpumap", set(false, proc.OnlineCPUs))
	Add(at+"node0/distance", line("10"))
	Add(at+"node0/meminfo", func() string {
		total, free := mem.Total()*mem.PageSize>>10, mem.Available()*mem.PageSize>>10
		return fmt.Sprintf("Node 0 MemTotal:       %8d kB\nNode 0 MemFree:        %8d kB\nNode 0 MemUsed:        %8d kB\n", total, free, max(total-free, 0))
	})
	Link("bus/node/devices/node0", "../../../devices/system/node/node0")
}
