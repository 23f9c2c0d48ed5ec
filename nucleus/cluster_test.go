package nucleus

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"hardtack/abi/boot"
)

// physical is the address at which the direct map would have p, were this ring 0.
func physical(p unsafe.Pointer) uint64 { return uint64(uintptr(p)) - boot.DirectBase }

func resetPlan(t *testing.T) {
	clear := func() {
		cluster.others = 0
		cluster.plan = [boot.MaxClusters - 1]clusterPlan{}
	}
	clear()
	t.Cleanup(clear)
}

// What other clusters get is RAM, theirs alone, whole large pages, and not the archive.
func TestCarve(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		resetPlan(t)
		ram := []boot.MemMapEntry{
			{Addr: 0, Size: 0x9fc00, Type: 1},
			{Addr: 0x100000, Size: r.Uint64N(2 << 30), Type: 1},
			{Addr: 3 << 30, Size: 1 << 20, Type: 2},
			{Addr: 4 << 30, Size: r.Uint64N(2<<30) * r.Uint64N(2), Type: 1},
		}
		si := boot.StartInfo{MemMap: physical(unsafe.Pointer(&ram[0])), MemMapEntries: uint32(len(ram))}
		low := ram[1].Addr + ram[1].Size
		archive := [2]uint64{low - min(low, r.Uint64N(100<<20)), low}
		for range r.IntN(len(cluster.plan)) {
			size := (1 + r.Uint64N(200)) * largeSize
			start, end := carve(&si, archive, size)
			if end == 0 {
				break
			}
			inside := false
			for _, e := range ram {
				inside = inside || e.Type == 1 && start >= e.Addr && end <= e.Addr+e.Size
			}
			if !inside || end-start != size || start%largeSize != 0 || start < archive[1] && end > archive[0] {
				t.Fatalf("RAM %+v, archive %#x: [%#x, %#x)", ram, archive, start, end)
			}
			for _, p := range cluster.plan[:cluster.others] {
				if start < p.end && end > p.base {
					t.Fatalf("[%#x, %#x) is another cluster's, too", start, end)
				}
			}
			cluster.plan[cluster.others] = clusterPlan{base: start, end: end}
			cluster.others++
		}
		// The first cluster maps no other's memory, and all else.
		for _, p := range cluster.plan[:cluster.others] {
			if whole, any := ownMemory(p.base, p.end); whole || any {
				t.Fatalf("the first cluster has [%#x, %#x), too", p.base, p.end)
			}
			if whole, any := ownMemory(p.base-largeSize, p.end+largeSize); whole || !any {
				t.Fatal("of a range that holds another cluster's memory all or nothing is the first's")
			}
		}
		runtime.KeepAlive(ram)
	}
}

func TestNumber(t *testing.T) {
	for text, want := range map[string]uint64{"0": 0, "128": 128, "7:x": 7, "": 0, "x": 0, "99999999999999999999999": 1 << 32} {
		b := append([]byte(text), 0)
		n, _ := number(uintptr(unsafe.Pointer(&b[0])))
		if n != want {
			t.Errorf("%q is read as %d", text, n)
		}
		runtime.KeepAlive(b)
	}
}
