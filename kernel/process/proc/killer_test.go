package proc

import (
	"slices"
	"testing"

	"hardtack/kernel/base/ledger"
)

func TestChoose(t *testing.T) {
	const mib = 1 << 20
	type one struct {
		uid           uint32
		pages, kernel int64
		adj           int64
		kept          int64
	}
	many := func(n int, o one) (all []one) {
		for range n {
			all = append(all, o)
		}
		return all
	}
	for _, x := range []struct {
		name  string
		all   []one
		bytes int64
		want  []int
	}{
		{"nobody", nil, mib, nil},
		{"who has most pages", []one{{1, mib, 0, 0, 0}, {2, 50 * mib, 0, 0, 0}, {1, 2 * mib, 0, 0, 0}}, mib, []int{1}},
		{"the kernel's heap counts too", []one{{1, 5 * mib, 0, 0, 0}, {2, mib, 20 * mib, 0, 0}}, mib, []int{1}},
		{"the youngest of equals", many(3, one{1, mib, 0, 0, 0}), mib, []int{2}},
		{"as many as are needed", many(4, one{1, mib, 0, 0, 0}), 2 * mib, []int{3, 2}},
		{"of one user only", []one{{1, 9 * mib, 0, 0, 0}, {2, 9*mib - 1, 0, 0, 0}}, 20 * mib, []int{0}},
		{"and of one size only", []one{{1, 9 * mib, 0, 0, 0}, {1, mib, 0, 0, 0}}, 20 * mib, []int{0}},
		{"oom_score_adj adds thousandths of all memory", []one{{1, 5 * mib, 0, 0, 0}, {1, mib, 0, 100, 0}}, mib, []int{1}},
		{"and takes them away", []one{{1, 50 * mib, 0, -500, 0}, {1, mib, 0, 0, 0}}, mib, []int{1}},
		{"a thousand small ones before one that is larger", append(many(1000, one{1, mib / 8, 0, 0, 0}), one{2, mib, 0, 0, 0}), 1, []int{999}},
		{"one large one before three of half its size", append(many(3, one{1, 20 * mib, 0, 0, 0}), one{2, 50 * mib, 0, 0, 0}), mib, []int{3}},
		{"of the small ones a user's who keeps much", []one{{1, 2 * mib, 0, 0, 0}, {2, mib, 0, 0, 30 * mib}}, mib, []int{1}},
		{"many small ones whose user keeps much", append(many(100, one{1, mib / 8, 0, 0, 16 * mib}), one{2, 7 * mib, 0, 0, 0}), 1, []int{99}},
		{"who holds much though another keeps more", []one{{1, 20 * mib, 0, 0, 0}, {2, mib, 0, 0, 60 * mib}}, mib, []int{0}},
		{"never more than there is room for", many(200, one{1, mib, 0, 0, 0}), 1 << 40, nil},
	} {
		list := make([]candidate, len(x.all))
		for i, o := range x.all {
			list[i] = candidate{had: Holding{UID: o.uid}, adj: o.adj, kept: o.kept}
			list[i].had.Add(ledger.Pages, o.pages)
			list[i].had.Add(ledger.Processes, o.kernel)
		}
		got := choose(list, 100*mib, x.bytes)
		if x.want == nil && len(x.all) > 0 {
			if len(got) != maxVictims {
				t.Errorf("%s: %d die, want %d", x.name, len(got), maxVictims)
			}
			continue
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: %v die, want %v", x.name, got, x.want)
		}
	}
}

func TestKillsGrow(t *testing.T) {
	part := int64(0)
	for i, x := range []struct{ ago, want int64 }{
		{0, 16}, {1, 8}, {1, 4}, {1, 3}, {againSoon, 3}, {againSoon + 1, 16}, {1, 8},
	} {
		if part = nextPart(part, x.ago); part != x.want {
			t.Errorf("kill %d is for one part in %d, want %d", i, part, x.want)
		}
	}
}
