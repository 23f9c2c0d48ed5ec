package nucleus

import (
	"sync/atomic"
	"unsafe"

	"hardtack/arch/amd64"
)

// FrameSource gives frames to kernel/base/mem; it fits mem.Source but for the frame
// type, which cmd/kernel converts.
//
// AllocFrames fills out with frame numbers and returns how many there were; the
// last ones are kept for the kernel itself.
func AllocFrames(out []uint32) int {
	if len(out) == 0 {
		return 0
	}
	return int(amd64.Syscall(sysAllocFrames, sliceAddr(out), uint64(len(out)), 0))
}

// FreeFrames takes frames back.
func FreeFrames(in []uint32) {
	if len(in) > 0 {
		amd64.Syscall(sysFreeFrames, sliceAddr(in), uint64(len(in)), 0)
	}
}

// AllocContiguous returns the physical address of n frames in a row (device
// memory), or 0. They are not zeroed and never come back.
func AllocContiguous(n int) uint64 { return amd64.Syscall(sysContiguous, uint64(n), 0, 0) }

// MapDevice maps device registers uncached and returns their address.
func MapDevice(pa, size uint64) unsafe.Pointer {
	return pointer(uintptr(amd64.Syscall(sysMapDevice, pa, size, 0)))
}

// Memory is a summary in frames.
type Memory struct{ Total, Free, Kernel, Reserve, Least int }

// MemoryInfo returns the state of physical memory.
func MemoryInfo() Memory {
	return Memory{int(frames.total.Load()), int(frames.free.Load()), int(frames.kernel.Load()), int(frames.reserve), int(frames.least)}
}

// FramesLeft is where the number of free frames lies, for the collector.
func FramesLeft() *int64 { return (*int64)(unsafe.Pointer(&frames.free)) }

// Attention tells whether MessagesDue or MemoryShort may have something to say.
func Attention() bool { return (*atomic.Uint64)(unsafe.Pointer(&attention)).Load() != 0 }

// MemoryShort reports that a part of the kernel's own reserve is used up: memory must be
// made free before threads go on to take more.
func MemoryShort() bool {
	if attention.short.Load() == 0 {
		return false
	}
	attention.short.Store(0)
	if frames.free.Load() >= frames.short {
		return false
	}
	attention.short.Store(1)
	return true
}

// HoldThreads has every thread that enters the kernel see MemoryShort once more: others
// wait for memory, and it should not overtake them.
func HoldThreads() { attention.short.Store(1) }

// HeapRoom returns how many frames calls under way may still take of the kernel's
// reserve. The last quarter is for those that began before memory was short, for what
// runs without a call, and for the collector. The first quarter is left out: users who hold
// little get pages from it.
func HeapRoom() int {
	free, quarter := frames.free.Load(), frames.reserve/4
	return int(free - quarter - min(max(free-frames.least, 0), frames.reserve-frames.least))
}

// GiveFrame gives the allocator a frame that it never had (a page of the boot
// archive that nobody uses).
func GiveFrame(f uint32) { FreeFrames([]uint32{f}) }
