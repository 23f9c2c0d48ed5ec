package vm

import (
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/fs/vfs"
)

// asking is a file that counts how often its memory is asked for.
type asking struct {
	*fakeFile
	asked int
}

func (a *asking) Holds(s *ledger.Sum) {
	a.asked++
	s.Add(ledger.Files, 1000)
}

// An estimate of many mappings is near their sum, and looks at few of them.
func TestHoldsAbout(t *testing.T) {
	s := newSpace(t)
	defer s.Release()
	o, _ := newFakeFile(t, 1, linux.O_RDONLY)
	a := &asking{fakeFile: o}
	const n = 500
	for range n { // each with a file of its own: they are not merged
		f := vfs.NewFile(a, linux.O_RDONLY)
		mmap(t, s, MapArgs{Length: pageSize, Prot: linux.PROT_READ, Flags: linux.MAP_PRIVATE, File: f})
		f.Put()
	}
	var exact ledger.Sum
	s.Holds(&exact)
	if a.asked < n {
		t.Fatalf("%d of %d files were asked", a.asked, n)
	}
	for _, most := range []int{2, 8, 100, 2 * n} {
		var about ledger.Sum
		a.asked = 0
		s.HoldsAbout(&about, most)
		if x, y := about.All(), exact.All(); x < y*8/10 || x > y*12/10 {
			t.Errorf("%d looked at: about %d bytes, exactly %d", most, x, y)
		}
		if a.asked > 2*most {
			t.Errorf("%d files were asked for an estimate from %d", a.asked, most)
		}
	}
}
