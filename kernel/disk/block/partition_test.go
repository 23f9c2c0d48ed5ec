package block

import "testing"

func TestNames(t *testing.T) {
	for n, want := range map[int]string{0: "a", 25: "z", 26: "aa", 27: "ab", 701: "zz", 702: "aaa"} {
		if got := Letters(n); got != want {
			t.Errorf("disk %d: %s, want %s", n, got, want)
		}
	}
	if got := partName("nvme0n1", 2); got != "nvme0n1p2" {
		t.Error(got)
	}
	if got := partName("vda", 12); got != "vda12" {
		t.Error(got)
	}
}
