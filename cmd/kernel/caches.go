package main

import (
	"math/bits"

	"hardtack/arch/amd64"
	"hardtack/kernel/pseudofs/sysfs"
)

// levels tells how many low bits of local APIC IDs number the threads of a core and the
// processors of a package, by CPUID leaf 0xb. Without it each processor is a core, and
// there is one package.
func levels() (core, pack uint) {
	if top, _, _, _ := amd64.CPUID(0, 0); top < 0xb {
		return 0, 31
	}
	const threads = 1
	for i := uint32(0); i < 4; i++ {
		a, b, c, _ := amd64.CPUID(0xb, i)
		if b&0xffff == 0 {
			break
		}
		pack = uint(a & 31)
		if c>>8&255 == threads {
			core = pack
		}
	}
	return core, pack
}

// caches tells of a CPU's caches, as Linux finds them: by CPUID leaf 4, AMD's leaf
// 0x8000001d of the same form, or the leaves 0x80000005 and 0x80000006 of older AMD
// processors (AMD64 Architecture Programmer's Manual, volume 3, appendix E).
func caches() []sysfs.Cache {
	if top, _, _, _ := amd64.CPUID(0, 0); top >= 4 {
		if list := cacheLeaves(4); list != nil {
			return list
		}
	}
	top, _, _, _ := amd64.CPUID(0x80000000, 0)
	const topologyExtensions = 22
	if _, _, c, _ := amd64.CPUID(0x80000001, 0); top >= 0x8000001d && c>>topologyExtensions&1 != 0 {
		return cacheLeaves(0x8000001d)
	}
	if top < 0x80000006 {
		return nil
	}
	_, _, data, code := amd64.CPUID(0x80000005, 0)
	_, _, second, third := amd64.CPUID(0x80000006, 0)
	core, pack := levels()
	return oldCaches(data, code, second, third, int(core), int(pack))
}

// cacheLeaves reads a leaf that has one subleaf for each cache.
func cacheLeaves(leaf uint32) (list []sysfs.Cache) {
	for i := uint32(0); i < 8; i++ {
		a, b, c, _ := amd64.CPUID(leaf, i)
		kind := [...]string{"", "Data", "Instruction", "Unified"}[min(a&31, 3)]
		if a&31 == 0 || a&31 > 3 {
			break
		}
		x := sysfs.Cache{Level: int(a >> 5 & 7), Type: kind, Line: int(b&0xfff) + 1, Partitions: int(b>>12&0x3ff) + 1,
			Ways: int(b>>22) + 1, Sets: int(c) + 1, Bits: bits.Len32(a >> 14 & 0xfff)}
		x.Size = x.Line * x.Partitions * x.Ways * x.Sets
		list = append(list, x)
	}
	return list
}

// oldCaches makes caches of AMD's older description: the first level's two and the second
// are a core's, the third is the package's.
func oldCaches(data, code, second, third uint32, core, pack int) (list []sysfs.Cache) {
	add := func(level int, kind string, kib, ways, line uint32, low int) {
		if kib == 0 || ways == 0 || line == 0 {
			return
		}
		size := int(kib) << 10
		list = append(list, sysfs.Cache{Level: level, Type: kind, Size: size, Line: int(line), Partitions: 1,
			Ways: int(ways), Sets: max(size/int(line)/int(ways), 1), Bits: low})
	}
	add(1, "Data", data>>24, data>>16&255, data&255, core)
	add(1, "Instruction", code>>24, code>>16&255, code&255, core)
	add(2, "Unified", second>>16, waysOf(second), second&255, core)
	add(3, "Unified", third>>18<<9, waysOf(third), third&255, pack)
	return list
}

// waysOf decodes a cache's associativity in leaf 0x80000006.
func waysOf(register uint32) uint32 {
	return [16]uint32{1: 1, 2: 2, 4: 4, 6: 8, 8: 16, 10: 32, 11: 48, 12: 64, 13: 96, 14: 128, 15: 1}[register>>12&15]
}
