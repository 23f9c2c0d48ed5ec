package procfs

import (
	"fmt"
	"math"
	"testing"

	"hardtack/kernel/mm/vm"
)

func TestHex(t *testing.T) {
	for _, v := range []uint64{0, 1, 9, 10, 15, 16, 255, 256, 4095, 4096, 0xfffffff, 0x10000000, 0xffffffff, 0x100000000, math.MaxUint64} {
		for _, width := range []int{1, 2, 8, 30} {
			if got, want := string(appendHex(nil, v, width)), fmt.Sprintf("%0*x", width, v); got != want {
				t.Errorf("appendHex(%#x, %d) is %q, want %q", v, width, got, want)
			}
		}
	}
}

// Every line of sizes is as Linux prints it, those too whose number does not fit.
func TestSizes(t *testing.T) {
	values := []uint64{0, 1 << 10, 9 << 10, 10 << 10, 4096, 99999999 << 10, 100000000 << 10, math.MaxUint64}
	for _, v := range values {
		if got, want := string(appendSize([]byte("x"), "Rss", v)), fmt.Sprintf("x%-16s%8d kB\n", "Rss:", v>>10); got != want {
			t.Errorf("appendSize(%d) is %q, want %q", v, got, want)
		}
		for _, w := range values {
			r := vm.Residency{SharedClean: w, SharedDirty: v, PrivateClean: 8 << 10, PrivateDirty: v, Referenced: w, Anonymous: 0}
			want := ""
			for _, l := range []struct {
				name string
				v    uint64
			}{{"Shared_Clean", w}, {"Shared_Dirty", v}, {"Private_Clean", 8 << 10}, {"Private_Dirty", v}, {"Referenced", w}, {"Anonymous", 0},
				{"LazyFree", 0}, {"AnonHugePages", 0}, {"ShmemPmdMapped", 0}, {"FilePmdMapped", 0}, {"Shared_Hugetlb", 0},
				{"Private_Hugetlb", 0}, {"Swap", 0}, {"SwapPss", 0}, {"Locked", w}} {
				want += fmt.Sprintf("%-16s%8d kB\n", l.name+":", l.v>>10)
			}
			if got := string(appendRest(nil, &r, w)); got != want {
				t.Fatalf("with %d and %d:\n%s\nwant\n%s", v, w, got, want)
			}
		}
	}
}
