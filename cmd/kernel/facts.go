package main

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"hardtack/arch/amd64"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/pseudofs/procfs"
	"hardtack/kernel/pseudofs/sysfs"
	"hardtack/nucleus"
)

// deviceInterrupts are the interrupt lines of devices.
func deviceInterrupts() (list []procfs.IRQ) {
	for i := 0; ; i++ {
		n, ok := nucleus.IRQCount(i)
		if !ok {
			return list
		}
		list = append(list, procfs.IRQ{Count: n, Name: "device"})
	}
}

// allInterrupts is how many there were on all CPUs.
func allInterrupts() (n uint64) {
	for i := range nucleus.NumCPU() {
		n += nucleus.CPUInterrupts(i)
	}
	return n
}

// hwCap is AT_HWCAP: the features of the CPU as leaf 1 of CPUID has them in EDX.
func hwCap() uint64 {
	_, _, _, edx := amd64.CPUID(1, 0)
	return uint64(edx)
}

// cpuInfo is the text of /proc/cpuinfo.
func cpuInfo() string {
	level, b, c, d := amd64.CPUID(0, 0)
	vendor := registers(b, d, c)
	signature, _, ecx, edx := amd64.CPUID(1, 0)
	family, model := signature>>8&15, signature>>4&15
	if family == 15 {
		family += signature >> 20 & 255
	}
	if family >= 6 {
		model |= signature >> 12 & 0xf0
	}
	_, ebx7, _, _ := amd64.CPUID(7, 0)
	_, _, _, edx81 := amd64.CPUID(0x80000001, 0)
	var flags []string
	for _, f := range featureNames {
		if [...]uint32{edx, ecx, ebx7, edx81}[f.register]>>f.bit&1 != 0 {
			flags = append(flags, f.name)
		}
	}
	hz, _ := nucleus.TSCFrequency()
	widths, _, _, _ := amd64.CPUID(0x80000008, 0)
	size := 0 // of the last cache
	for _, c := range caches() {
		size = c.Size
	}
	core, pack := levels()
	var text strings.Builder
	for i := range nucleus.NumCPU() {
		if !proc.Online(i) {
			continue
		}
		fmt.Fprintf(&text, "processor\t: %d\nvendor_id\t: %s\ncpu family\t: %d\nmodel\t\t: %d\nmodel name\t: %s\nstepping\t: %d\ncpu MHz\t\t: %d.%03d\n",
			i, vendor, family, model, brand(), signature&15, hz/1e6, hz/1000%1000)
		if size > 0 {
			fmt.Fprintf(&text, "cache size\t: %d KB\n", size>>10)
		}
		id, siblings := nucleus.APICID(i), bits.OnesCount64(sysfs.Together(i, pack))
		fmt.Fprintf(&text, "physical id\t: %d\nsiblings\t: %d\ncore id\t\t: %d\ncpu cores\t: %d\napicid\t\t: %d\ninitial apicid\t: %d\n",
			id>>pack, siblings, id&(1<<pack-1)>>core, siblings/bits.OnesCount64(sysfs.Together(i, core)), id, id)
		fmt.Fprintf(&text, "fpu\t\t: yes\nfpu_exception\t: yes\ncpuid level\t: %d\nwp\t\t: yes\nflags\t\t: %s\nbugs\t\t:\nbogomips\t: %d.%02d\nclflush size\t: 64\ncache_alignment\t: 64\n",
			level, strings.Join(flags, " "), hz/500000, hz/5000%100)
		fmt.Fprintf(&text, "address sizes\t: %d bits physical, %d bits virtual\npower management:\n\n", widths&255, widths>>8&255)
	}
	return text.String()
}

// featureNames are the features that programs look for: bits of CPUID leaf 1
// (EDX, ECX), leaf 7 (EBX) and leaf 0x80000001 (EDX).
var featureNames = []struct {
	register, bit int
	name          string
}{
	{0, 0, "fpu"}, {0, 4, "tsc"}, {0, 8, "cx8"}, {0, 15, "cmov"}, {0, 19, "clflush"}, {0, 23, "mmx"}, {0, 24, "fxsr"}, {0, 25, "sse"}, {0, 26, "sse2"},
	{3, 11, "syscall"}, {3, 20, "nx"}, {3, 27, "rdtscp"}, {3, 29, "lm"},
	{1, 0, "pni"}, {1, 1, "pclmulqdq"}, {1, 9, "ssse3"}, {1, 12, "fma"}, {1, 13, "cx16"}, {1, 19, "sse4_1"}, {1, 20, "sse4_2"}, {1, 22, "movbe"},
	{1, 23, "popcnt"}, {1, 25, "aes"}, {1, 26, "xsave"}, {1, 28, "avx"}, {1, 29, "f16c"}, {1, 30, "rdrand"}, {1, 31, "hypervisor"},
	{2, 3, "bmi1"}, {2, 5, "avx2"}, {2, 8, "bmi2"}, {2, 9, "erms"}, {2, 18, "rdseed"}, {2, 19, "adx"},
}

// brand is the processor's name.
func brand() string {
	var name string
	for leaf := uint32(0x80000002); leaf <= 0x80000004; leaf++ {
		a, b, c, d := amd64.CPUID(leaf, 0)
		name += registers(a, b, c, d)
	}
	name, _, _ = strings.Cut(name, "\x00")
	return strings.TrimSpace(name)
}

// registers is the text that CPUID packs into registers.
func registers(r ...uint32) string {
	var b []byte
	for _, v := range r {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return string(b)
}

// memoryNames are Linux's names of the types of a memory map.
var memoryNames = map[uint32]string{1: "System RAM", 2: "Reserved", 3: "ACPI Tables", 4: "ACPI Non-volatile Storage", 5: "Unusable memory",
	7: "Persistent Memory", 12: "Persistent Memory (legacy)"}

// memory is physical memory as the loader's map has it, with the kernel in it. What
// devices decode is not in that map.
func memory() (list []procfs.Resource) {
	code, rodata, data := nucleus.Image()
	for _, r := range nucleus.MemoryMap() {
		m := procfs.Resource{Start: r.Start, End: r.End, Name: memoryNames[r.Type]}
		if m.Name == "" {
			m.Name = "Unknown E820 type"
		}
		for _, part := range []struct {
			nucleus.Range
			name string
		}{{code, "Kernel code"}, {rodata, "Kernel rodata"}, {data[0], "Kernel data"}, {data[1], "Kernel data"}} {
			if part.Start >= r.Start && part.End <= r.End {
				m.Parts = append(m.Parts, procfs.Resource{Start: part.Start, End: part.End, Name: part.name})
			}
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b procfs.Resource) int { return cmp.Compare(a.Start, b.Start) })
	return list
}
