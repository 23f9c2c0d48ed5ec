package maxlive

import (
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"hardtack/tool/maxlive/internal/graph"
)

// most are the bounds of the cases that are above what one run allocates; the others are
// exact.
var most = map[string]uint64{
	"Once":     24,  // it runs once
	"Argument": 48,  // the first of two is dead, but is not known to be
	"Printed":  600, // the printer comes from a pool
	"Stringer": 600,
	"Number":   700, // all growth up to the most digits
	"Checked":  920, // 808 are in a class of 896, and the slice in an interface is 24
	"Clone":    48,  // in an interface
	"Pointed":  24,  // without the point's page
}

// TestGraph: a call costs what its own target costs, not what those of the same type do.
func TestGraph(t *testing.T) {
	r, err := Run(&Config{Patterns: []string{"./internal/graph"}, Entries: regexp.MustCompile(`graph\.(` + strings.Join(graphCases(), "|") + `)$`), Stack: 8192})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	if !r.OK() {
		t.Fatal(text.String())
	}
	t.Log(text.String())
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	seen := 0
	for i := range r.Bounds {
		b := &r.Bounds[i]
		name := b.Name[strings.LastIndex(b.Name, ".")+1:]
		if b.Point {
			if name != "reserved" || b.Cost.Peak.Total() != 4096 {
				t.Errorf("the point is %s with %d bytes", name, b.Cost.Peak.Total())
			}
			continue
		}
		seen++
		peak := b.Cost.Peak
		all, _ := measure(graph.All[name])
		if name == "Pool" {
			all = 24 // the collector takes the pool's own arrays, which are made again
		}
		limit, loose := most[name]
		switch {
		case name == "Pointed" && (len(b.Points) != 1 || !r.Whole(b)):
			t.Errorf("%s reaches the points %v", name, b.Points)
		case peak.Total() < all && name != "Pointed":
			t.Errorf("%s: the bound is %d, measured %d", name, peak.Total(), all)
		case loose && peak.Total() > limit, !loose && peak.Total() != all:
			t.Errorf("%s: the bound is %d, measured %d, want at most %d", name, peak.Total(), all, limit)
		}
	}
	if seen != len(graph.All) {
		t.Errorf("%d cases, want %d", seen, len(graph.All))
	}
}

func graphCases() []string {
	var out []string
	for n := range graph.All {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}
