package vfs_test

import (
	"testing"

	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/fs/vfs"
)

// heavy is a file that takes memory.
type heavy struct {
	vfs.BaseOps
	bytes int64
	asked *int
}

func (h *heavy) Holds(s *ledger.Sum) {
	*h.asked++
	s.Add(ledger.Pipes, h.bytes)
}

// An estimate of a table is near its sum where the files are of one kind, and exact where they are
// few; it asks no more files than it may.
func TestHoldsAbout(t *testing.T) {
	for _, n := range []int{0, 10, 256, 79 * 64} {
		table, asked := vfs.NewFDTable(&creds.RootCred), 0
		for i := range n {
			f := vfs.NewFile(&heavy{bytes: int64(900 + i%7*100), asked: &asked}, 0)
			if _, e := table.Add(f, 0, 1<<20, false); e != 0 {
				t.Fatal(e)
			}
		}
		var exact, about ledger.Sum
		table.Holds(&exact)
		table.HoldsAbout(&about, 256)
		if n <= 256 && exact != about {
			t.Errorf("%d files: about %v, exactly %v", n, about, exact)
		}
		for _, most := range []int{256, 8} {
			about, asked = ledger.Sum{}, 0
			if table.HoldsAbout(&about, most); asked >= 2*most {
				t.Errorf("%d files asked, of %d, for an estimate from %d", asked, n, most)
			}
			if a, b := about.All(), exact.All(); a < b*7/10 || a > b*13/10 {
				t.Errorf("%d files, %d looked at: about %d bytes, exactly %d", n, most, a, b)
			}
		}
		table.Release(caller.NewKernelCtx())
	}
}
