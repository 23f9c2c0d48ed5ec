package nucleus

import (
	"errors"
	"sync/atomic"
	"time"

	"hardtack/abi/boot"
	"hardtack/arch/amd64"
)

// Clusters are kernels beside each other in one machine. Each has processors, memory and
// devices of its own, and its page tables map no memory of another but what both agreed
// on. The first cluster is the one that the loader started; the kernel parameters
// cluster=CPUS:MIB[:PROGRAM[:always]], one for each of the others, say what it leaves to them
// (docs/decisions/0196-clusters.md).

// cluster is what this kernel knows of its own; immutable after boot.
var cluster struct {
	index     uint32
	base, end uint64  // its memory by the plan, of another than the first
	top       uint64  // end of the machine's memory, likewise
	shift     uint64  // the image's data are so much above where the linker put them
	mail      uintptr // the mailboxes of processors

	// In the first cluster: what the others get, and the image's data as they were at
	// the start.
	others int
	plan   [boot.MaxClusters - 1]clusterPlan
	data   uint64 // physical address
	size   uint64
}

type clusterPlan struct {
	base, end uint64
	cpus      int
	first     uint32  // local APIC ID of its first processor, once it was started
	areas     uint64  // what it shares with the first cluster in this life, or 0
	before    uint64  // the same of the life before
	view      uintptr // where its first pages are mapped, or 0
}

// readCluster finds out which cluster the kernel is.
func readCluster(si *boot.StartInfo) {
	if si.Magic != boot.StartMagic || si.Flags&boot.ClusterFlag == 0 {
		cluster.mail = direct(boot.Mailboxes)
		return
	}
	info := clusterInfo(direct(amd64.BootInfo))
	cluster.index = info.Index
	cluster.base, cluster.end, cluster.shift, cluster.top = info.Base, info.End, info.DataShift, info.Top
}

// bootRoot is the page table root that the cluster's processors start with.
func bootRoot() uint64 {
	if cluster.index == 0 {
		return boot.StubBase + boot.StubPML4
	}
	return cluster.base + boot.ClusterRoot
}

func mailboxes() uintptr {
	if cluster.mail == 0 {
		cluster.mail = uintptr(mapPages(nil, boot.Mailboxes, pageSize, 0))
	}
	return cluster.mail
}

// ownMemory tells whether the whole of a range of physical addresses, and whether any of
// it, is this cluster's to map when it starts. To the first one belongs all that is not another's.
func ownMemory(start, end uint64) (whole, any bool) {
	if cluster.index > 0 {
		info := clusterInfo(direct(cluster.base))
		for _, r := range info.Map[:info.Start.MemMapEntries] {
			whole = whole || start >= r.Addr && end <= r.Addr+r.Size
			any = any || start < r.Addr+r.Size && end > r.Addr
		}
		return whole, any
	}
	whole, any = true, true
	for _, p := range cluster.plan[:cluster.others] {
		if start < p.end && end > p.base {
			whole = false
		}
		if start >= p.base && end <= p.end {
			any = false
		}
	}
	return whole, any
}

// planClusters reads the kernel's parameters and takes the other clusters' memory from
// the end of RAM, above least.
func planClusters(si *boot.StartInfo, archive [2]uint64, least uint64) {
	for p := direct(si.Cmdline); si.Cmdline != 0 && load8(p) != 0; {
		var ok bool
		if p, ok = skipWord(p, "cluster="); !ok {
			p = skipRest(p)
			continue
		}
		var cpus, mib uint64
		cpus, p = number(p)
		if load8(p) == ':' {
			mib, p = number(p + 1)
		}
		if cpus == 0 || cpus > maxCPUs || mib < minClusterMiB || mib > 1<<19 || load8(p) > ' ' && load8(p) != ':' {
			halt("want cluster=CPUS:MIB[:PROGRAM[:always]], with 32 MiB or more")
		}
		if cluster.others == len(cluster.plan) {
			halt("too many clusters")
		}
		plan := &cluster.plan[cluster.others]
		plan.cpus = int(cpus)
		plan.base, plan.end = carve(si, archive, (mib<<20+largeSize-1)&^(largeSize-1))
		if plan.base < least+minClusterMiB<<20 {
			halt("too little memory for the clusters")
		}
		cluster.others++
	}
}

// minClusterMiB is less than any cluster can start with.
const minClusterMiB = 32

// carve finds the last size bytes of RAM that are neither the boot archive's nor another
// cluster's; it returns zeros where there are none.
func carve(si *boot.StartInfo, archive [2]uint64, size uint64) (start, end uint64) {
	for i := range int(si.MemMapEntries) {
		e := memMapEntry(si.MemMap, i)
		if e.Type != 1 {
			continue
		}
		top := (e.Addr + e.Size) &^ (largeSize - 1)
		for again := true; again; {
			again = false
			if archive[0] < top && archive[1] > top-size {
				top, again = archive[0]&^(largeSize-1), true
			}
			for _, p := range cluster.plan[:cluster.others] {
				if p.base < top && p.end > top-size {
					top, again = p.base, true
				}
			}
			if top < size {
				break
			}
		}
		if top >= size && top-size >= e.Addr && top > end {
			start, end = top-size, top
		}
	}
	return start, end
}

// skipWord skips the blanks at p, and then a word if it is there.
func skipWord(p uintptr, word string) (uintptr, bool) {
	for load8(p) == ' ' {
		p++
	}
	for i := range uintptr(len(word)) {
		if load8(p+i) != word[i] {
			return p, false
		}
	}
	return p + uintptr(len(word)), true
}

// skipRest skips the rest of a word.
func skipRest(p uintptr) uintptr {
	for load8(p) > ' ' {
		p++
	}
	return p
}

// number reads decimal digits; what is too large comes out as a number that is.
func number(p uintptr) (n uint64, rest uintptr) {
	for ; load8(p) >= '0' && load8(p) <= '9'; p++ {
		n = min(n*10+uint64(load8(p)-'0'), 1<<32)
	}
	return n, p
}

// saveData keeps a copy of the image's data as the linker made them: what has changed
// until now is zero in the image. rodata is where they begin.
func saveData(rodata uint64) {
	size := initialised(rodata)
	pages := int((size + pageSize - 1) / pageSize)
	if cluster.data = allocContiguous(pages); cluster.data == 0 {
		halt("too little memory")
	}
	cluster.size = size
	copy(RAM(cluster.data, int(size)), bytesAt(uintptr(rodata), int(size)))
}

// logByte adds a byte to the log that the first cluster reads.
func logByte(b byte) {
	s := clusterState(direct(cluster.base + boot.ClusterStatus))
	at := s.Logged % boot.ClusterLogLen
	*logAt(direct(cluster.base + boot.ClusterLog + at)) = b
	atomic.StoreUint64(&s.Logged, s.Logged+1)
}

// endCluster tells the first cluster how this one ended. It takes the processors away.
func endCluster(state, status uint32) {
	s := clusterState(direct(cluster.base + boot.ClusterStatus))
	atomic.StoreUint32(&s.Status, status)
	atomic.StoreUint32(&s.State, state)
	for {
		amd64.CLI()
		amd64.Pause()
	}
}

// doorbell is the vector of the interrupt slot that other clusters' rings go to, or 0.
var doorbell atomic.Uint64

// rang is when the last doorbell's interrupt came, in ticks.
var rang atomic.Uint64

// DoorbellDelay returns how long ago the last doorbell's interrupt came.
func DoorbellDelay() time.Duration {
	return time.Duration(now() - ticksToNS(rang.Load()-amd64.ClockBase))
}

// OnDoorbell has the bottom half fn called when another cluster has rung.
func OnDoorbell(fn func()) error {
	i, ok := allocIRQ(fn)
	if !ok {
		return errors.New("nucleus: too many interrupts")
	}
	doorbell.Store(uint64(vectorDevice + i))
	return nil
}

// RingCluster interrupts another cluster's first processor.
func RingCluster(index int) {
	to := uint64(0)
	switch {
	case cluster.index > 0:
		to = uint64(clusterInfo(direct(cluster.base)).First)
	default:
		to = uint64(cluster.plan[index-1].first)
	}
	amd64.Syscall(sysRing, to, 0, 0)
}
