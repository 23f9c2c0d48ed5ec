package task

import (
	"sync/atomic"
	"unsafe"
)

const frameSize = unsafe.Sizeof(Frame{})

// Next is the frame above f: the one to hand to a callee while a task is forked
// at f. There always is one: a fork in the last frame panics.
func (f *Frame) Next() *Frame { return (*Frame)(unsafe.Add(unsafe.Pointer(f), frameSize)) }

func (f *Frame) prev() *Frame { return (*Frame)(unsafe.Add(unsafe.Pointer(f), -int(frameSize))) }

// addr orders the frames of one worker. A frame never moves: it is on the heap.
func (f *Frame) addr() uintptr { return uintptr(unsafe.Pointer(f)) }

// at is the frame of a's child n.
func (a *activation) at(n int32) *Frame {
	return (*Frame)(unsafe.Add(unsafe.Pointer(a.base), uintptr(uint32(n))*frameSize))
}

// top is a's first free frame, last the one before it: there must be one.
func (a *activation) top() *Frame  { return a.at(a.n) }
func (a *activation) last() *Frame { return a.at(a.n - 1) }

// Fork spawns task fn with one argument at f. The caller goes on with f.Next(),
// and ends the task with f.Mine, as the last one spawned and not yet ended.
// It costs two stores, two loads and a compare: written so that it is inlined.
func (f *Frame) Fork(fn ID, a uint64) {
	f.fn, f.a = fn, a
	if uintptr(unsafe.Pointer(f)) >= atomic.LoadUintptr(&f.w.limit) {
		f.pushed()
	}
}

// Fork2 is Fork with two arguments.
func (f *Frame) Fork2(fn ID, a, b uint64) {
	f.fn, f.a, f.b = fn, a, b
	if uintptr(unsafe.Pointer(f)) >= atomic.LoadUintptr(&f.w.limit) {
		f.pushed()
	}
}

func (w *Worker) index(f *Frame) uint32 {
	return uint32((f.addr() - w.frames[0].addr()) / frameSize)
}
