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
	Bits                   int // low bits of Place that number the processors which share it
}

// Caches returns the caches of a CPU.
var Caches = hook.Default(func() []Cache { return nil })

// Place returns where a processor is among the packages and cores: its local APIC ID.
var Place = hook.Default(func(cpu int) uint32 { return uint32(cpu) })

// Levels tells how many low bits of Place number the threads of a core and the processors
// of a package.
var Levels = hook.Default(func() (core, pack uint) { return 0, 31 })

// Together returns the processors online whose Place differs from that of cpu in the low bits only.
func Together(cpu int, bits uint) (set uint64) {
	n, _ := proc.CPUs.Call()
	at := Place.Call(cpu) >> bits
	for i := range n {
		if Place.Call(i)>>bits == at {
			set |= 1 << i
		}
	}
	return set & proc.OnlineCPUs()
}

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

// addCPUs shows the CPUs.
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
	core, pack := Levels.Call()
	place := Place.Call(i)
	at, _ := mkdirs(cpu + "topology/x")
	add(at, "physical_package_id", line("%d", place>>pack))
	for _, f := range []string{"die_id", "cluster_id"} {
		add(at, f, line("0"))
	}
	add(at, "core_id", line("%d", place&(1<<pack-1)>>core))
	add(at, "cluster_cpus", line("%s", bit))
	add(at, "cluster_cpus_list", own)
	for _, level := range []struct {
		bits  uint
		files []string
	}{{core, []string{"core_cpus", "thread_siblings"}}, {pack, []string{"core_siblings", "package_cpus", "die_cpus"}}} {
		together := func() uint64 { return Together(i, level.bits) }
		for _, f := range level.files {
			add(at, f, set(false, together))
			add(at, f+"_list", set(true, together))
		}
	}
	addCaches(cpu, i)
}

func addCaches(cpu string, i int) {
	for k, c := range Caches.Call() {
		at, _ := mkdirs(fmt.Sprintf("%scache/index%d/x", cpu, k))
		shared := func() uint64 { return Together(i, uint(c.Bits)) }
		add(at, "level", line("%d", c.Level))
		add(at, "type", line("%s", c.Type))
		add(at, "size", line("%dK", c.Size>>10))
		add(at, "coherency_line_size", line("%d", c.Line))
		add(at, "ways_of_associativity", line("%d", c.Ways))
		add(at, "number_of_sets", line("%d", c.Sets))
		add(at, "physical_line_partition", line("%d", c.Partitions))
		add(at, "id", line("%d", Place.Call(i)>>c.Bits))
		add(at, "shared_cpu_list", set(true, shared))
		add(at, "shared_cpu_map", set(false, shared))
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
