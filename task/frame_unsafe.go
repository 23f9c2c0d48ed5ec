package task

import (
	"sync/atomic"
	"unsafe"
)

const (
	frameSize  = unsafe.Sizeof(Frame{})
	frameBytes = uint32(frameSize)
	wordSize   = unsafe.Sizeof(uintptr(0))
)

// Next is the frame above f: the one to hand to a callee while a task is forked
// at f. There always is one: a fork in the last frame panics.
func (f *Frame) Next() *Frame { return (*Frame)(unsafe.Add(unsafe.Pointer(f), frameSize)) }

func (f *Frame) prev() *Frame { return (*Frame)(unsafe.Add(unsafe.Pointer(f), -int(frameSize))) }

// addr orders the frames of one worker. A frame never moves: it is on the heap.
func (f *Frame) addr() uintptr { return uintptr(unsafe.Pointer(f)) }

// up is the frame so many bytes above f.
func (f *Frame) up(place uint32) *Frame {
	return (*Frame)(unsafe.Add(unsafe.Pointer(f), uintptr(place)))
}

// at is the frame at this place of a's.
func (a *activation) at(place uint32) *Frame { return a.base.up(place) }

// place is where f is in a.
func (a *activation) place(f *Frame) uint32 { return uint32(f.addr() - a.base.addr()) }

// top is a's first free frame, last the one before it: there must be one.
func (a *activation) top() *Frame  { return a.at(a.used) }
func (a *activation) last() *Frame { return a.at(a.used - frameBytes) }

// limited tells whether a spawn in the frame base.up(place) has to look up. There
// is no such frame if place is usedNone, but its address would be beyond all.
func (w *Worker) limited(base *Frame, place uint32) bool {
	return base.addr()+uintptr(place) >= atomic.LoadUintptr(&w.limit)
}

// Fork spawns task fn with one argument at f. The caller goes on with f.Next(),
// and ends the task with f.Mine, as the last one spawned and not yet ended.
//
// On a full stack Fork panics with ErrDepth, where Spawn runs the child at once. Fork
// cannot: its caller goes on in the frame above f, by an addition without a look, and
// above the last frame there is none, neither for the caller's next fork nor for the
// result of the child. A test in Next or Mine would cost each fork a fifth of its time.
// Memory is bounded all the same, by WithDepth, and only a recursion deeper than that
// gets there; one that may be asks Room first.
//
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

// slotWith gives the first slot of f if that holds fn: the same function value,
// so a slot of the same types. A func value is a pointer to its code and
// variables; the slot keeps it in its first word and so alive, hence no other
// function can have the same address, nor a function of another type.
func slotWith[A, R any](f *Frame, fn func(Ctx, A) R) (*slot[A, R], bool) {
	// The second word of the interface points at the slot.
	s := *(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(&f.ext), wordSize))
	if *(*unsafe.Pointer)(s) != *(*unsafe.Pointer)(unsafe.Pointer(&fn)) {
		return nil, false
	}
	return (*slot[A, R])(s), true
}

// unsetFunc has s hold a function that nobody can spawn.
func unsetFunc[A, R any](s *slot[A, R]) {
	none := noFunc
	*(*unsafe.Pointer)(unsafe.Pointer(&s.fn)) = *(*unsafe.Pointer)(unsafe.Pointer(&none))
}
