package task

import (
	"sync/atomic"
	"unsafe"
)

const (
	frameSize  = unsafe.Sizeof(Frame{})
	frameBytes = uint32(frameSize)
)

// Next is the frame above f: the one to hand to a callee while a task is forked
// at f. There always is one: a fork in the last frame panics.
func (f *Frame) Next() *Frame { return (*Frame)(unsafe.Add(unsafe.Pointer(f), frameSize)) }

func (f *Frame) prev() *Frame { return (*Frame)(unsafe.Add(unsafe.Pointer(f), -int(frameSize))) }

// addr orders the frames of one worker. A frame never moves: it is on the heap.
func (f *Frame) addr() uintptr { return uintptr(unsafe.Pointer(f)) }

// at is the frame at this place of a's.
func (a *activation) at(place uint32) *Frame {
	return (*Frame)(unsafe.Add(unsafe.Pointer(a.base), uintptr(place)))
}

// place is where f lies in a.
func (a *activation) place(f *Frame) uint32 { return uint32(f.addr() - a.base.addr()) }

// top is a's first free frame, last the one before it: there must be one.
func (a *activation) top() *Frame  { return a.at(a.used) }
func (a *activation) last() *Frame { return a.at(a.used - frameBytes) }

// limited tells whether a spawn in a's first free frame has to look up, or that a
// is not in use: then there is no such frame, but its address is beyond all.
func (a *activation) limited() bool {
	return a.base.addr()+uintptr(a.used) >= atomic.LoadUintptr(&a.w.limit)
}

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

// slotIs tells whether the first slot of f holds fn: the same function value, so
// a slot of the same types. A func value is a pointer to its code and variables;
// the slot keeps it in its first word and so alive, hence no other function can
// have the same address, nor a function of another type.
func slotIs[A, R any](f *Frame, fn func(Ctx, A) R) bool {
	return **(**unsafe.Pointer)(extOf(f)) == *(*unsafe.Pointer)(unsafe.Pointer(&fn))
}

// slotOf is the first slot of f after slotIs has told its type.
func slotOf[A, R any](f *Frame) *slot[A, R] { return *(**slot[A, R])(extOf(f)) }

// extOf points at the second word of the interface f.ext: the pointer to the slot.
func extOf(f *Frame) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(&f.ext), unsafe.Sizeof(uintptr(0)))
}

// unsetFunc has s hold a function that nobody can spawn.
func unsetFunc[A, R any](s *slot[A, R]) {
	none := noFunc
	*(*unsafe.Pointer)(unsafe.Pointer(&s.fn)) = *(*unsafe.Pointer)(unsafe.Pointer(&none))
}
