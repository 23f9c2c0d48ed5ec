package nucleus

import (
	"math/rand/v2"
	"testing"
)

// resetFrames forgets all memory.
func resetFrames(t *testing.T) {
	clear := func() {
		frames.regions, frames.depth = 0, 0
		frames.region = [len(frames.region)]struct{ start, end uint64 }{}
		frames.free.Store(0)
	}
	clear()
	t.Cleanup(clear)
}

// The regions are what was given, less what must be kept, in whole pages.
func TestRegions(t *testing.T) {
	const pages = 64
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		resetFrames(t)
		start, end := r.Uint64N(pages), r.Uint64N(pages+1)
		var keep [][2]uint64
		var kept [pages]bool
		for range r.IntN(4) {
			from := r.Uint64N(pages * pageSize)
			to := min(from+1+r.Uint64N(8*pageSize), pages*pageSize)
			keep = append(keep, [2]uint64{from, to})
			for p := from / pageSize; p <= (to-1)/pageSize; p++ {
				kept[p] = true
			}
		}
		addRegion(start*pageSize, end*pageSize, keep)
		var has [pages]bool
		for i := range frames.regions {
			for p := frames.region[i].start; p < frames.region[i].end; p += pageSize {
				if has[p/pageSize] {
					t.Fatalf("page %d is in two regions", p/pageSize)
				}
				has[p/pageSize] = true
			}
		}
		for p := range uint64(pages) {
			if want := p >= start && p < end && !kept[p]; has[p] != want {
				t.Fatalf("[%d, %d) without %v: page %d is there: %v", start, end, keep, p, has[p])
			}
		}
	}
}

// Single frames come from the low ends, runs of frames from the high ones, and none twice.
func TestUntouchedFrames(t *testing.T) {
	resetFrames(t)
	addRegion(1<<20, 1<<20+8*pageSize, nil)
	addRegion(4<<20, 4<<20+8*pageSize, nil)
	frames.free.Store(16)
	if pa := allocContiguous(9); pa != 0 {
		t.Errorf("nine frames at %#x, of regions of eight", pa)
	}
	if pa := allocContiguous(6); pa != 1<<20+2*pageSize {
		t.Errorf("six frames at %#x", pa)
	}
	seen := map[uint64]bool{}
	for range 10 {
		pa := allocFrame()
		if pa == 0 || seen[pa] || pa >= 1<<20+2*pageSize && pa < 1<<20+8*pageSize {
			t.Fatalf("frame %#x after %v", pa, seen)
		}
		seen[pa] = true
	}
	if pa := allocFrame(); pa != 0 || frames.free.Load() != 0 {
		t.Errorf("frame %#x, %d free", pa, frames.free.Load())
	}
}
