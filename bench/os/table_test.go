package osbench

import (
	"strings"
	"testing"
)

// The tables show medians, the range of what was repeated, and whether a goal is
// reached; what was not measured is not judged.
func TestTables(t *testing.T) {
	load := Loads[0]
	r := Report{
		Instructions: map[string]map[OS]Result{Rows[0].Name: {OnHardtack: {Median: 245}, OnLinux: {Median: 322}}},
		Times:        Times{},
	}
	for _, v := range []float64{900, 3000, 1200} {
		r.Times.add(load.Name, OnHardtack, v)
		r.Times.add(load.Name, OnLinux, 2*v)
	}
	r.Times.add("boottime", OnHardtack, 465)
	page := r.Markdown()
	for _, want := range []string{
		"| " + Rows[0].Title + " | 245 | 322 | 0.76 |",
		"| " + load.Title + " | 1,200 (900–3,000) | 2,400 (1,800–6,000) | 0.50 | ≥ 1.0 × Linux | missed |",
		"| QEMU's start to the first user instruction, ms | 465 | — | — |",
		"| " + Loads[1].Title + " | — | — | — | ≥ 1.0 × Linux | not measured |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no line %q in\n%s", want, page)
		}
	}
}
