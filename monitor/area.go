package monitor

import "sync/atomic"

// An area is memory that two clusters map. It holds one link, in pages of 4 KiB:
//
//	0      what each side has written and read: a line of 64 bytes each, which only
//	       that side writes, behind them a line each that says it was rung, and the
//	       bells of its channels
//	1, 2   bytes of frames from the lower cluster, the link's side 0
//	3, 4   bytes of frames from the higher one, its side 1
//	5-8    the ring of messages from side 0
//	9-12   the ring of messages from side 1
//
// All is zero at the start. The peer may write anything anywhere at any time: each word
// is loaded once, and then checked.
const (
	pageBytes  = 4096
	frameBytes = 2 * pageBytes
	ringBytes  = 4 * pageBytes

	AreaPages = 13
)

// sideWords are the words of one side, a line of its own.
type sideWords struct {
	Written atomic.Uint32 // bytes of frames, modulo 2^32
	Read    atomic.Uint32 // bytes of the other side's frames
	Closed  atomic.Uint32
	Asked   atomic.Uint32 // grows when the other side is to answer, see Link.Bell
	Heard   atomic.Uint32 // the other side's Asked, as it was answered
	Took    atomic.Uint32 // nanoseconds from the interrupt until then
	_       [10]uint32
}

// control is page 0.
type control struct {
	Side [2]sideWords
	Rung [2]struct { // set by the other side, cleared by this one
		Set atomic.Uint32
		_   [15]uint32
	}
	Bells [2]bells // set by the other side, cleared by this one
}

// bells say which of a side's channels were rung.
type bells struct {
	Set  atomic.Uint32 // a bit for each word of Rung that has changed since the side last looked
	_    [15]uint32
	Rung [maxChannels / 64]atomic.Uint64 // a bit for each channel, which its reader takes away
}

// area is an area as it is in memory.
type area struct {
	control *control
	frames  [2][]byte
	rings   [2][]byte
}

// openArea divides memory of AreaPages pages.
func openArea(mem []byte) *area {
	if len(mem) != AreaPages*pageBytes {
		panic("monitor: an area of another size")
	}
	a := &area{control: controlOf(mem)}
	at := pageBytes
	for i := range a.frames {
		a.frames[i] = mem[at : at+frameBytes : at+frameBytes]
		at += frameBytes
	}
	for i := range a.rings {
		a.rings[i] = mem[at : at+ringBytes : at+ringBytes]
		at += ringBytes
	}
	return a
}
