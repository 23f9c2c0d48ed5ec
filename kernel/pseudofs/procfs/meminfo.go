package procfs

import (
	"fmt"
	"runtime/metrics"
	"strings"

	"hardtack/kernel/base/mem"
	"hardtack/kernel/mm/pagecache"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/process/proc"
)

// memoryTotal is all memory that programs and files can have, with what the boot
// archive brought.
func memoryTotal() int { return mem.Total() * mem.PageSize }

// memory is what /proc tells of memory, in pages.
type memory struct {
	total, free, shmem, cached, dirty, writing, slab, anon int
}

func memoryNow() (m memory) {
	cache := pagecache.Count()
	m.total, m.free, m.shmem = memoryTotal()/mem.PageSize, mem.Available(), int(mem.Kept())
	m.cached, m.dirty, m.writing = int(cache.Pages), int(cache.Dirty), int(cache.Writing)
	m.slab = int(kernelHeap() / mem.PageSize)
	m.anon = max(m.total-m.free-m.shmem-m.cached-m.slab, 0)
	return m
}

func meminfo() string {
	m := memoryNow()
	committed, limit := vm.Committed()
	_, threads := proc.Counts()
	var b strings.Builder
	for _, r := range []struct {
		name  string
		pages int
	}{{"MemTotal", m.total}, {"MemFree", m.free}, {"MemAvailable", m.free + m.cached - m.dirty}, {"Buffers", 0}, {"Cached", m.shmem + m.cached},
		{"SwapCached", 0}, {"Active", m.anon + m.shmem}, {"Inactive", m.cached}, {"Active(anon)", m.anon + m.shmem}, {"Inactive(anon)", 0},
		{"Active(file)", 0}, {"Inactive(file)", m.cached}, {"Unevictable", 0}, {"Mlocked", 0}, {"SwapTotal", 0}, {"SwapFree", 0},
		{"Dirty", m.dirty}, {"Writeback", m.writing}, {"AnonPages", m.anon}, {"Mapped", 0}, {"Shmem", m.shmem}, {"KReclaimable", 0},
		{"Slab", m.slab}, {"SReclaimable", 0}, {"SUnreclaim", m.slab}, {"KernelStack", 4 * threads}, {"PageTables", 0}, {"NFS_Unstable", 0},
		{"Bounce", 0}, {"WritebackTmp", 0}, {"CommitLimit", int(limit / mem.PageSize)}, {"Committed_AS", int(max(committed, 0) / mem.PageSize)},
		{"VmallocTotal", 34359738367 / 4}, {"VmallocUsed", 0}, {"VmallocChunk", 0}, {"Percpu", 0}, {"AnonHugePages", 0}, {"ShmemHugePages", 0},
		{"ShmemPmdMapped", 0}, {"FileHugePages", 0}, {"FilePmdMapped", 0}} {
		kb := r.pages * 4
		if r.name == "VmallocTotal" {
			kb = 34359738367
		}
		fmt.Fprintf(&b, "%-16s%8d kB\n", r.name+":", kb)
	}
	for _, name := range []string{"Total", "Free", "Rsvd", "Surp"} {
		fmt.Fprintf(&b, "%-16s%8d\n", "HugePages_"+name+":", 0)
	}
	fmt.Fprintf(&b, "%-16s%8d kB\n%-16s%8d kB\n%-16s%8d kB\n%-16s%8d kB\n", "Hugepagesize:", 2048, "Hugetlb:", 0, "DirectMap4k:", 0, "DirectMap2M:", m.total*4)
	return b.String()
}

// kernelHeap returns the bytes that the kernel's own heap occupies.
func kernelHeap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64() - sample[1].Value.Uint64()
}

// vmstat tells the same in pages, and the page faults.
func vmstat() string {
	m := memoryNow()
	faults := proc.TotalFaults()
	read, written := DiskSectors.Call()
	var b strings.Builder
	for _, r := range []struct {
		name string
		v    int
	}{{"nr_free_pages", m.free}, {"nr_inactive_anon", 0}, {"nr_active_anon", m.anon + m.shmem}, {"nr_inactive_file", m.cached}, {"nr_active_file", 0},
		{"nr_unevictable", 0}, {"nr_mlock", 0}, {"nr_slab_reclaimable", 0}, {"nr_slab_unreclaimable", m.slab}, {"nr_anon_pages", m.anon},
		{"nr_mapped", 0}, {"nr_file_pages", m.cached + m.shmem}, {"nr_dirty", m.dirty}, {"nr_writeback", m.writing}, {"nr_shmem", m.shmem},
		{"pgpgin", int(read / 2)}, {"pgpgout", int(written / 2)}, {"pswpin", 0}, {"pswpout", 0}, {"pgfault", int(faults)}, {"pgmajfault", 0}} {
		fmt.Fprintf(&b, "%s %d\n", r.name, r.v)
	}
	return b.String()
}

// buddyinfo shows the free memory as single pages: there are no greater blocks.
func buddyinfo() string {
	return fmt.Sprintf("Node 0, zone   Normal %6d      0      0      0      0      0      0      0      0      0      0 \n", mem.Available())
}

func zoneinfo() string {
	m := memoryNow()
	return fmt.Sprintf("Node 0, zone   Normal\n  pages free     %d\n        min      0\n        low      0\n        high     0\n"+
		"        spanned  %d\n        present  %d\n        managed  %d\n", m.free, m.total, m.total, m.total)
}
