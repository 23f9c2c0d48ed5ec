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

//go:nosplit
func (l *workerList) head() *Worker { return (*Worker)(atomic.LoadPointer(&l.first)) }

// nap sleeps for a tick.
//
//go:nosplit
func nap() {
	syscall.RawSyscall6(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&clockPause)), 0, 0, 0, 0, 0)
}
