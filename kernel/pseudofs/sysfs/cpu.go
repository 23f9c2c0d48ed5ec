package sysfs

import (
	"fmt"

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

// addCPUs shows the CPUs: cores of one package, each with one thread.
func addCPUs() {
	const at = "devices/system/cpu/"
	n, _ := proc.CPUs.Call()
	list, mask := procfs.CPURange(n), procfs.CPUMask(n)
	for _, f := range []string{"online", "possible", "present"} {
		Add(at+f, line("%s", list))
	}
	for _, f := range []string{"offline", "isolated", "nohz_full"} {
		Add(at+f, line(""))
	}
	Add(at+"kernel_max", line("63"))
	Add(at+"smt/active", line("0"))
	Add(at+"smt/control", line("notsupported"))
	for i := range n {
		cpu := fmt.Sprintf("%scpu%d/", at, i)
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
			Add(cpu+"topology/"+f, line("%s", mask))
			Add(cpu+"topology/"+f+"_list", line("%s", list))
		}
		if i > 0 {
			Add(cpu+"online", line("1"))
		}
		Link(cpu+"node0", "../../node/node0")
		Link(cpu+"subsystem", "../../../../bus/cpu")
		Link(fmt.Sprintf("bus/cpu/devices/cpu%d", i), fmt.Sprintf("../../../devices/system/cpu/cpu%d", i))
		addCaches(cpu, i, n)
	}
	addNode(n, list, mask)
}

func addCaches(cpu string, i, n int) {
	for k, c := range Caches.Call() {
		at := fmt.Sprintf("%scache/index%d/", cpu, k)
		list, mask := fmt.Sprint(i), procfs.CPUMaskOf(n, i)
		if c.Shared {
			list, mask = procfs.CPURange(n), procfs.CPUMask(n)
		}
		id := i
		if c.Shared {
			id = 0
		}
		Add(at+"level", line("%d", c.Level))
		Add(at+"type", line("%s", c.Type))
		Add(at+"size", line("%dK", c.Size>>10))
		Add(at+"coherency_line_size", line("%d", c.Line))
		Add(at+"ways_of_associativity", line("%d", c.Ways))
		Add(at+"number_of_sets", line("%d", c.Sets))
		Add(at+"physical_line_partition", line("%d", c.Partitions))
		Add(at+"id", line("%d", id))
		Add(at+"shared_cpu_list", line("%s", list))
		Add(at+"shared_cpu_map", line("%s", mask))
	}
}

// addNode shows the memory of the one node.
func addNode(n int, list, mask string) {
	const at = "devices/system/node/"
	for _, f := range []string{"online", "possible", "has_cpu", "has_memory", "has_normal_memory"} {
		Add(at+f, line("0"))
	}
	Add(at+"node0/cpulist", line("%s", list))
	Add(at+"node0/cpumap", line("%s", mask))
	Add(at+"node0/distance", line("10"))
	Add(at+"node0/meminfo", func() string {
		total, free := mem.Total()*mem.PageSize>>10, mem.Available()*mem.PageSize>>10
		return fmt.Sprintf("Node 0 MemTotal:       %8d kB\nNode 0 MemFree:        %8d kB\nNode 0 MemUsed:        %8d kB\n", total, free, max(total-free, 0))
	})
	for i := range n {
		Link(fmt.Sprintf("%snode0/cpu%d", at, i), fmt.Sprintf("../../cpu/cpu%d", i))
	}
	Link("bus/node/devices/node0", "../../../devices/system/node/node0")
}
