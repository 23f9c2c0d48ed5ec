package nucleus

import (
	"math/rand/v2"
	"runtime"
	"testing"
)

// A piece that is wanted and wholly free is taken out of the allocator, wherever its frames
// are, and all other free frames stay.
func TestClaim(t *testing.T) {
	const pieces = 12
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		resetFrames(t)
		stack := make([]uint32, pieces*PieceFrames)
		frames.stack, frames.depth = sliceOf(stack), 0
		// Frames are in use, on the stack or in regions, in stretches, which often are pieces.
		var free [pieces * PieceFrames]bool
		for at := uint64(0); at < pieces*PieceFrames; {
			n := uint64(PieceFrames)
			if r.IntN(3) == 0 {
				n = 1 + r.Uint64N(2*PieceFrames)
			}
			n = min(n, pieces*PieceFrames-at)
			how := r.IntN(3)
			if how == 2 && frames.regions == len(frames.region) {
				how = 1
			}
			for f := at; how > 0 && f < at+n; f++ {
				free[f] = true
				if how == 1 {
					stack[frames.depth] = uint32(f)
					frames.depth++
				}
			}
			if how == 2 {
				frames.region[frames.regions] = struct{ start, end uint64 }{at * pageSize, (at + n) * pageSize}
				frames.regions++
			}
			at += n
		}
		r.Shuffle(frames.depth, func(i, j int) { stack[i], stack[j] = stack[j], stack[i] })
		if r.IntN(4) == 0 { // no place for more regions
			for frames.regions < len(frames.region) {
				frames.region[frames.regions] = struct{ start, end uint64 }{1 << 40, 1<<40 + pageSize}
				frames.regions++
			}
		}
		flags := make([]uint16, pieces)
		countFree(flagsAt(flags), pieces, 0)
		for p := range flags {
			n := 0
			for _, is := range free[p*PieceFrames : (p+1)*PieceFrames] {
				if is {
					n++
				}
			}
			if int(flags[p]) != n {
				t.Fatalf("piece %d has %d free frames, counted %d", p, n, flags[p])
			}
		}
		clear(flags)
		wanted := map[int]bool{}
		for range r.IntN(pieces) {
			p := r.IntN(pieces)
			wanted[p], flags[p] = true, wantedPiece
		}
		claim(flagsAt(flags), pieces)
		var has [pieces * PieceFrames]bool
		put := func(f uint64) {
			if f < uint64(len(has)) {
				if has[f] {
					t.Fatalf("frame %d is there twice", f)
				}
				has[f] = true
			}
		}
		for _, f := range stack[:frames.depth] {
			put(uint64(f))
		}
		for i := range frames.regions {
			for pa := frames.region[i].start; pa < frames.region[i].end; pa += pageSize {
				put(pa / pageSize)
			}
		}
		for p := range pieces {
			all := true
			for f := p * PieceFrames; f < (p+1)*PieceFrames; f++ {
				all = all && free[f]
			}
			taken := wanted[p] && all
			if got := flags[p] == wantedPiece|PieceFrames; got != taken {
				t.Fatalf("piece %d is claimed: %v", p, got)
			}
			for f := p * PieceFrames; f < (p+1)*PieceFrames; f++ {
				if has[f] != (free[f] && !taken) {
					t.Fatalf("frame %d of piece %d is there: %v, was free: %v, claimed: %v", f, p, has[f], free[f], taken)
				}
			}
		}
		runtime.KeepAlive(stack)
	}
}

// Regions grow together, and emptied ones are used again.
func TestAddPart(t *testing.T) {
	resetFrames(t)
	for _, p := range []uint64{8, 4, 6, 12, 10} {
		if !addPart(p*largeSize, (p+2)*largeSize) {
			t.Fatal(p)
		}
	}
	n := 0
	for i := range frames.regions {
		if r := &frames.region[i]; r.start < r.end {
			n++
			r.end = r.start
		}
	}
	if n > 3 {
		t.Errorf("%d regions of one stretch", n)
	}
	for i := range uint64(len(frames.region)) {
		if !addPart(i*4*largeSize, (i*4+1)*largeSize) {
			t.Fatalf("%d parts fill all places", i)
		}
	}
	if addPart(1<<40, 1<<40+largeSize) {
		t.Error("a place too many")
	}
}
