package mem

import (
	"sync/atomic"
	"unsafe"
)

var (
	base unsafe.Pointer // where physical address 0 is mapped
	refs unsafe.Pointer // one atomic.Int32 a frame, indexed by frame number
)

// collectorReads is filled by the linker where the image is built with the overlay's topic
// "collector" (overlay/_runtime/collector_unsafe.go), and else stays nil.
//
//go:linkname collectorReads
var collectorReads func(left *int64, short, few int64)

// giveBack is filled in the same way. It gives back about so many bytes of the heap's free pages
// at most and returns how many.
//
//go:linkname giveBack
var giveBack func(bytes uintptr) uintptr

// sweepSome is filled in the same way. It sweeps so many spans of the heap, whose pages may be free
// then, and reports whether there may be more.
//
//go:linkname sweepSome
var sweepSome func(spans int) (more bool)

// endPools is filled in the same way. While it is on, collections free what is in pools
// (sync.Pool) at once.
//
//go:linkname endPools
var endPools func(on bool)

// LetCollectorRead tells the collector where the number of free frames lies. With fewer than
// short, it works harder; while there are more than a few, it does not stop allocations for as
// long as a collection takes.
func LetCollectorRead(left *int64, short, few int64) {
	if collectorReads != nil {
		collectorReads(left, short, few)
	}
}

// Init tells where physical memory is mapped, where the reference counts of
// frames 0 … frames-1 lie (zeroed, outside the Go heap), where free frames come
// from and how many there are in all.
func Init(direct, counts unsafe.Pointer, s Source, n int) {
	base, refs, source = direct, counts, s
	total.Store(int64(n))
}

// Bytes returns the frame's memory.
func (f Frame) Bytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Add(base, uintptr(f)<<PageShift)), PageSize)
}

// Words returns the frame's memory as 64-bit words (page tables, bitmaps).
func (f Frame) Words() *[PageSize / 8]uint64 {
	return (*[PageSize / 8]uint64)(unsafe.Add(base, uintptr(f)<<PageShift))
}

// WordsAt and PageAt return the memory of the frame at a physical address.
func WordsAt(phys uint64) *[PageSize / 8]uint64 {
	return (*[PageSize / 8]uint64)(unsafe.Add(base, uintptr(phys)))
}

// PageAt returns it as bytes.
func PageAt(phys uint64) *[PageSize]byte {
	return (*[PageSize]byte)(unsafe.Add(base, uintptr(phys)))
}

func refOf(f Frame) *atomic.Int32 {
	return (*atomic.Int32)(unsafe.Add(refs, uintptr(f)*4))
}

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// pageLen is PageSize in a variable: with a length that the compiler knows it
// clears and copies with REP STOS and REP MOVS, which are slow where the CPU (or
// its emulator) has no fast strings; the run-time's own loops choose well.
var pageLen = PageSize

// Zero clears the frame.
func (f Frame) Zero() { clear(f.Bytes()[:pageLen]) }

// Copy fills the frame with another's content.
func (f Frame) Copy(from Frame) { copy(f.Bytes()[:pageLen], from.Bytes()[:pageLen]) }

// directLimit is where the memory mapped at base ends.
var directLimit uintptr

// SetDirectLimit says how many bytes of physical memory are mapped at base.
func SetDirectLimit(n uint64) { directLimit = uintptr(n) }

// PhysOf returns the physical address of memory that is in frames, as Bytes
// returns it; false for other memory (the Go heap's).
func PhysOf(b []byte) (phys uint64, ok bool) {
	off := uintptr(unsafe.Pointer(unsafe.SliceData(b))) - uintptr(base)
	return uint64(off), off < directLimit && directLimit-off >= uintptr(len(b))
}
