package nucleus

import (
	"sync/atomic"

	"hardtack/arch/amd64"
	"hardtack/nucleus/control"
)

const pageSize = 4096

// frames is the physical page allocator: frames never used yet come from the
// ends of the RAM regions (so boot-time requests can be contiguous), frames
// that came back are on a stack. Frame numbers are physical addresses >> 12.
//
// Sizes: the stack holds one 32-bit word a frame of RAM, the reference counts
// likewise: together 0.2 % of memory. Where memory may come from other clusters, both have
// more addresses than memory (lendmemory.go).
var frames struct {
	region  [48]struct{ start, end uint64 } // untouched RAM; guarded by memory, as the next
	regions int
	stack   uintptr      // address of the stack; immutable after boot
	depth   int          // frames on the stack; guarded by memory
	counts  uintptr      // address of the reference count of frame 0, or where it would be; immutable after boot
	top     uint64       // end of RAM; immutable after boot
	total   atomic.Int64 // frames of RAM that are the allocator's

	free    atomic.Int64 // frames that allocFrame can still give
	reserve int64        // of those, the kernel keeps so many last ones to itself, but for users who hold little; immutable after boot
	least   int64        // of the reserve, only the kernel's heap gets so many last ones; immutable after boot
	short   int64        // with fewer than so many, threads wait (MemoryShort); immutable after boot
	kernel  atomic.Int64 // frames of the Go heap and other kernel memory
}

// memory guards frames, and the page tables of the heap where they are not alone
// anyway.
var memory control.Object

// allocFrame returns a frame's physical address, or 0; called with memory locked,
// alone, or before interrupts exist.
func allocFrame() uint64 {
	f := &frames
	if f.depth > 0 {
		f.depth--
		f.free.Add(-1)
		return uint64(load32(f.stack+uintptr(f.depth)*4)) << 12
	}
	for i := range f.regions { // low memory first: at boot only that is mapped
		r := &f.region[i]
		if r.start < r.end {
			r.start += pageSize
			f.free.Add(-1)
			return r.start - pageSize
		}
	}
	return 0
}

func freeFrame(pa uint64) {
	f := &frames
	store32(f.stack+uintptr(f.depth)*4, uint32(pa>>12))
	f.depth++
	f.free.Add(1)
}

// allocContiguous takes n frames in a row from the untouched RAM, or returns 0.
func allocContiguous(n int) uint64 {
	size := uint64(n) * pageSize
	for i := range frames.regions {
		r := &frames.region[i]
		if r.end-r.start >= size {
			r.end -= size
			frames.free.Add(-int64(n))
			return r.end
		}
	}
	return 0
}

// kernelFrame is a zeroed frame for the kernel's own use. Running out of them
// is fatal: the reserve is there to prevent it.
func kernelFrame(c *amd64.CPU) uint64 {
	pa := allocFrame()
	if pa == 0 {
		fatal(c, "kernel memory is exhausted")
	}
	frames.kernel.Add(1)
	if frames.free.Load() < frames.short {
		attention.short.Store(1)
	}
	zeroFrame(pa)
	return pa
}

// initFrames takes over the RAM regions of the memory map but for what must be kept.
func initFrames(mapPA uint64, entries int, keep [][2]uint64) {
	f := &frames
	for i := range entries {
		e := memMapEntry(mapPA, i)
		if e.Type != 1 {
			continue
		}
		start, end := (e.Addr+pageSize-1)&^(pageSize-1), (e.Addr+e.Size)&^(pageSize-1)
		end = min(end, 512<<30) // what the direct map covers
		addRegion(start, end, keep)
	}
	total := 0
	for i := range f.regions {
		f.top = max(f.top, f.region[i].end)
		total += int(f.region[i].end-f.region[i].start) / pageSize
	}
	for _, k := range keep { // adopted later, perhaps
		f.top = max(f.top, (k[1]+pageSize-1)&^(pageSize-1))
	}
	f.free.Store(int64(total))
	bottom := cluster.base &^ (countsPiece - 1)
	pages := int((f.top - bottom + countsPiece - 1) / countsPiece)
	stack, counts := allocContiguous(pages), allocContiguous(pages)
	if stack == 0 || counts == 0 {
		halt("too little memory")
	}
	for i := range pages {
		zeroFrame(counts + uint64(i)*pageSize)
	}
	f.stack, f.counts = direct(stack), direct(counts-bottom/pageSize*4)
	total = int(f.free.Load())
	f.total.Store(int64(total))
	f.reserve = min(max(int64(total)/16, 1024), 16384) // 4 to 64 MiB
	f.short = f.reserve
	f.least = f.reserve * 3 / 4
}

// countsPiece is the memory whose frames' counts, or whose places on the stack, fill a page.
const countsPiece = pageSize / 4 * pageSize

// addRegion adds [start, end) minus what must be kept.
func addRegion(start, end uint64, keep [][2]uint64) {
	if start >= end {
		return
	}
	for i, k := range keep {
		ks, ke := k[0]&^(pageSize-1), (k[1]+pageSize-1)&^(pageSize-1)
		if ks < end && ke > start {
			addRegion(start, min(end, ks), keep[i+1:])
			addRegion(max(start, ke), end, keep[i+1:])
			return
		}
	}
	if frames.regions < len(frames.region) {
		frames.region[frames.regions].start, frames.region[frames.regions].end = start, end
		frames.regions++
	}
}
