package runtime

import (
	"internal/runtime/syscall/linux"
	"unsafe"
)

// All that the additions do with raw memory, and their way to hardtack/affinity.

//go:linkname affHooks hardtack/affinity.hooks

// affWord is hchan's fourth word up to its last four bytes: elemsize, closed, laps.
func affWord(c *hchan) *uint32 { return (*uint32)(unsafe.Pointer(&c.elemsize)) }

// affAddr is what a place remembers of a channel: no pointer, so that it does not
// keep it alive.
func affAddr(c *hchan) uintptr { return uintptr(unsafe.Pointer(c)) }

// affTag is what a place remembers of a P: no other P's.
func affTag(pp *p) uintptr { return uintptr(unsafe.Pointer(pp)) }

// affMaskOf reads the mask of a thread, by its id.
func affMaskOf(tid uintptr, m *affMask) bool {
	*m = affMask{}
	return sched_getaffinity(tid, unsafe.Sizeof(*m), (*byte)(unsafe.Pointer(m))) > 0
}

// affBind gives a thread a mask.
func affBind(tid uintptr, m *affMask) bool {
	_, _, e := linux.Syscall6(sysSchedSetaffinity, tid, unsafe.Sizeof(*m), uintptr(unsafe.Pointer(m)), 0, 0, 0)
	return e == 0
}

// affCPU is the CPU that the calling thread is on.
func affCPU() (cpu uint32) {
	linux.Syscall6(sysGetcpu, uintptr(unsafe.Pointer(&cpu)), 0, 0, 0, 0, 0)
	return cpu
}

// affRead and affWrite are the system calls; b is not empty.
func affRead(fd int32, b []byte) int32 { return read(fd, unsafe.Pointer(&b[0]), int32(len(b))) }

func affWrite(fd int32, b []byte) { write1(uintptr(fd), unsafe.Pointer(&b[0]), int32(len(b))) }
