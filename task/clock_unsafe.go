//go:build !race

package task

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

// The scheduler's side of system calls, which the runtime leaves open to packages
// that make their own (go.dev/issue/67401).

//go:linkname entersyscallblock runtime.entersyscallblock
func entersyscallblock()

//go:linkname exitsyscall runtime.exitsyscall
func exitsyscall()

// A workerList links workers that are never freed while the runtime is in use, so
// that a thread which the garbage collector does not know of may follow it.
type workerList struct{ first unsafe.Pointer } // *Worker; replaced atomically

// add enters w, once. Runtime.mu is held.
func (k *clock) add(w *Worker) {
	w.nextAll = (*Worker)(k.list.first)
	atomic.StorePointer(&k.list.first, unsafe.Pointer(w))
}

var clockPause = syscall.NsecToTimespec(int64(clockTick))

// tick ticks until no Run wants it. From entersyscallblock on, as in any system call,
// the thread has no P: it may neither allocate nor grow its stack nor store pointers
// to the heap. What it reads is kept alive by k, and by the runtime around it.
//
//go:nosplit
func (k *clock) tick() {
	entersyscallblock()
	for idle := 0; idle < lingering; {
		syscall.RawSyscall6(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&clockPause)), 0, 0, 0, 0, 0)
		if k.wanted.Load() == 0 {
			idle++
			continue
		}
		idle = 0
		k.ticks.Add(1)
		for w := (*Worker)(atomic.LoadPointer(&k.list.first)); w != nil; w = w.nextAll {
			atomic.StoreUintptr(&w.limit, 0)
		}
	}
	exitsyscall()
}
