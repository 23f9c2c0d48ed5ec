// Package mem owns the physical pages that user programs and files use: each
// frame has a reference count, and a frame without references goes back to the
// allocator.
//
// On the machine the frames are in the nucleus's direct map; on the host
// InitHost makes an arena, so that everything above is tested with go test.
//
// Each P of the Go scheduler has a magazine of free frames and a smaller one of
// frames that are known to be zero (page tables come back like that), reached
// with preemption off; an empty or full magazine is exchanged with the Source
// in batches. No lock is held while the Source is asked.
//
// The Source also feeds the kernel's own heap. Nothing here takes its last frames:
// SetFloor reserves frames for the kernel, so a program that uses all memory gets ENOMEM
// or is killed, and the kernel continues.
package mem

import (
	"hardtack/kernel/base/hook"
	"sync/atomic"
)

// PageSize and PageShift describe a frame.
const (
	PageSize  = 4096
	PageShift = 12
)

// Frame is a physical page number; 0 is no frame.
type Frame uint32

// Source is where magazines are filled and emptied. Its methods are called with
// preemption off: they must not block.
type Source interface {
	// Refill puts up to len(out) free frames into out and returns how many.
	Refill(out []Frame) int
	// Return takes frames back.
	Return(in []Frame)
	// Free returns how many frames the source still holds.
	Free() int
}

const (
	// magazineSize frames are cached per P (1 MiB); half of it moves at a time.
	magazineSize = 256
	// zeroSize frames known to be zero are cached per P: the page tables of a
	// few small processes.
	zeroSize = 64

	maxProcs = 64
)

type magazine struct {
	n, zeros int
	frames   [magazineSize]Frame
	zero     [zeroSize]Frame
	_        [64]byte // keeps two Ps off one cache line
}

var (
	source    Source
	magazines [maxProcs]magazine // each used by its P alone, preemption off
	total     atomic.Int64       // frames managed
	floor     atomic.Int64       // frames of the source that are not given out here
	favoured  atomic.Int64       // frames of the source that not even Favour gives out

	checkZeroed bool // PutZeroed checks whether it is true (tests)
)

// Total returns how many frames the machine has for user memory and files.
func Total() int { return int(total.Load()) }

// AddTotal counts frames that came after Init (the boot archive's).
func AddTotal(n int) {
	total.Add(int64(n))
}

// Moved counts n frames that came from another cluster, or with n below 0 went to one: what
// is a share of memory follows, as far as it is not measured once.
func Moved(n int) {
	total.Add(int64(n))
	keepable.Add(int64(n))
	plenty.Add(int64(n / 2))
}

// SetFloor keeps the source's last n frames for the kernel itself and for users who hold
// little, and the last least of them for the kernel alone.
func SetFloor(n, least int) {
	floor.Store(int64(n))
	favoured.Store(int64(least))
}

// Spare returns how many frames the source may still give out.
func Spare() int { return max(source.Free()-int(floor.Load()), 0) }

// SpareForLittle returns how many frames the source may still give to users who hold little.
func SpareForLittle() int { return max(source.Free()-int(favoured.Load()), 0) }

// Favour is for a user who holds little while memory is short: it moves frames from below the
// floor to the running P's magazine until that has n, and reports whether it does. The
// caller is about to allocate them; who takes them instead has little time to do so.
//
//go:norace
func Favour(n int) bool {
	n = min(n, magazineSize)
	m := &magazines[procPin()]
	if m.n < n && SpareForLittle() >= n-m.n {
		m.n += source.Refill(m.frames[m.n:n])
	}
	ok := m.n >= n
	procUnpin()
	return ok
}

// Available returns how many frames could be allocated now (an estimate: the
// magazines are read without a lock).
//
//go:norace
func Available() int {
	n := Spare()
	for i := range magazines {
		n += magazines[i].n + magazines[i].zeros
	}
	return n
}

// The functions that use a magazine are hidden from the race detector, which
// does not know that a P runs one goroutine at a time.

// Alloc returns a frame with one reference and unknown content, or false when
// memory is exhausted. Up to a magazine a P may then be unused: other Ps'
// magazines cannot be reached safely.
//
//go:norace
func Alloc() (Frame, bool) {
	m := &magazines[procPin()]
	if m.n == 0 && !m.refill() {
		procUnpin()
		if !reclaimed() {
			Refuse()
			return 0, false
		}
		if m = &magazines[procPin()]; m.n == 0 && !m.refill() {
			procUnpin()
			Refuse()
			return 0, false
		}
	}
	m.n--
	f := m.frames[m.n]
	procUnpin()
	refOf(f).Store(1)
	return f, true
}

// Reclaim makes frames free that hold nothing but copies of what is on disks: up to
// n, and says how many. It is asked when there are none, wherever somebody allocates:
// it takes no lock that anybody may hold there. Set once, before programs run.
var Reclaim hook.Of[func(n int) int]

// reclaimed reports whether there may be frames now.
func reclaimed() bool { return Reclaim.Call != nil && Reclaim.Call(magazineSize) > 0 }

// AllocBatch fills out with frames as Alloc returns them, as far as they go.
func AllocBatch(out []Frame) int {
	n := allocBatch(out)
	if n == 0 && len(out) > 0 && reclaimed() {
		n = allocBatch(out)
	}
	return n
}

//go:norace
func allocBatch(out []Frame) int {
	m := &magazines[procPin()]
	n := 0
	for n < len(out) {
		if m.n == 0 && !m.refill() {
			break
		}
		m.n--
		f := m.frames[m.n]
		refOf(f).Store(1)
		out[n] = f
		n++
	}
	procUnpin()
	return n
}

// AllocZeroed is Alloc with the frame set to zero.
//
//go:norace
func AllocZeroed() (Frame, bool) {
	m := &magazines[procPin()]
	if m.zeros > 0 {
		m.zeros--
		f := m.zero[m.zeros]
		procUnpin()
		refOf(f).Store(1)
		return f, true
	}
	procUnpin()
	f, ok := Alloc()
	if ok {
		f.Zero()
	}
	return f, ok
}

// refill gets half a magazine from the source, or the P's zeroed frames where
// the source has come down to its floor.
//
//go:norace
func (m *magazine) refill() bool {
	if n := min(magazineSize/2, source.Free()-int(floor.Load())); n > 0 {
		m.n = source.Refill(m.frames[:n])
	}
	if m.n == 0 {
		m.n = copy(m.frames[:], m.zero[:m.zeros])
		m.zeros = 0
	}
	return m.n > 0
}

// Get adds a reference to a frame that has one.
func (f Frame) Get() {
	if refOf(f).Add(1) <= 1 {
		panic("mem: a reference to a frame that is free")
	}
}

// Refs returns the number of references (for copy-on-write: 1 means it is ours alone).
func (f Frame) Refs() int32 { return refOf(f).Load() }

// drop gives up a reference and reports whether it was the last. Whoever holds the
// only reference cannot be raced by another Get, which needs a reference too:
// no locked instruction then.
func (f Frame) drop() bool {
	r := refOf(f)
	if r.Load() == 1 {
		r.Store(0)
		return true
	}
	n := r.Add(-1)
	if n < 0 {
		panic("mem: frame freed twice")
	}
	return n == 0
}

// Put drops a reference and frees the frame with the last.
//
//go:norace
func (f Frame) Put() {
	if !f.drop() {
		return
	}
	m := &magazines[procPin()]
	m.free(f)
	procUnpin()
}

// PutBatch drops a reference of each.
//
//go:norace
func PutBatch(fs []Frame) {
	m := &magazines[procPin()]
	for _, f := range fs {
		if f.drop() {
			m.free(f)
		}
	}
	procUnpin()
}

// PutZeroed is PutBatch for frames that nobody else refers to and whose content
// is zero.
//
//go:norace
func PutZeroed(fs []Frame) {
	if checkZeroed {
		for _, f := range fs {
			if *f.Words() != [PageSize / 8]uint64{} {
				panic("mem: a frame that is not zero was given back as zeroed")
			}
		}
	}
	m := &magazines[procPin()]
	for _, f := range fs {
		if !f.drop() {
			continue
		}
		if m.zeros < zeroSize {
			m.zero[m.zeros] = f
			m.zeros++
			continue
		}
		m.free(f)
	}
	procUnpin()
}

// Drain gives back what a P's magazine has, which Go's scheduler has no more.
//
//go:norace
func Drain(p int) {
	m := &magazines[p]
	source.Return(m.frames[:m.n])
	source.Return(m.zero[:m.zeros])
	m.n, m.zeros = 0, 0
}

//go:norace
func (m *magazine) free(f Frame) {
	if m.n == magazineSize {
		source.Return(m.frames[magazineSize/2:])
		m.n = magazineSize / 2
	}
	m.frames[m.n] = f
	m.n++
}

// Adopt makes a frame that was never in the allocator (a page of the boot
// image) an ordinary one with one reference.
func Adopt(f Frame) {
	refOf(f).Store(1)
}

// Phys returns the physical address.
func (f Frame) Phys() uint64 { return uint64(f) << PageShift }

// FrameOf returns the frame at a physical address.
func FrameOf(phys uint64) Frame { return Frame(phys >> PageShift) }
