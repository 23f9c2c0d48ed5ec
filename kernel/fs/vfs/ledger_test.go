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
}

func (h *heavy) Holds(s *ledger.Sum) { s.Add(ledger.Pipes, h.bytes) }

// An estimate of a table is near its sum where the files are of one kind, and exact where they are
// few.
func TestHoldsAbout(t *testing.T) {
	for _, n := range []int{0, 10, 256, 5000} {
		table := vfs.NewFDTable(&creds.RootCred)
		for i := range n {
			f := vfs.NewFile(&heavy{bytes: int64(900 + i%7*100)}, 0)
			if _, e := table.Add(f, 0, 1<<20, false); e != 0 {
				t.Fatal(e)
			}
		}
		var exact, about ledger.Sum
		table.Holds(&exact)
		table.HoldsAbout(&about)
		if n <= 256 && exact != about {
			t.Errorf("%d files: about %v, exactly %v", n, about, exact)
		}
		if a, b := about.All(), exact.All(); a < b*8/10 || a > b*12/10 {
			t.Errorf("%d files: about %d bytes, exactly %d", n, a, b)
		}
		table.Release(caller.NewKernelCtx())
	}
}
