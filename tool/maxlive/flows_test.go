package maxlive

import (
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"hardtack/tool/maxlive/internal/flows"
)

// TestFlows: what outlives a call in devious ways is found to last.
func TestFlows(t *testing.T) {
	r, err := Run(&Config{Patterns: []string{"./internal/flows"}, Entries: regexp.MustCompile(`flows\.[A-Z]\w*$`), Stack: 8192})
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK() || len(r.Bounds) != len(flows.All) {
		var text strings.Builder
		if err := r.Text(&text); err != nil {
			t.Fatal(err)
		}
		t.Fatalf("%d bounds, want %d\n%s", len(r.Bounds), len(flows.All), text.String())
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, b := range r.Bounds {
		name := b.Name[strings.LastIndex(b.Name, ".")+1:]
		peak, lasting := b.Cost.Peak, b.Cost.Lasting()
		all, left := measure(flows.All[name])
		if peak.Total() < all || lasting.Total() < left {
			t.Errorf("%s: peak %d, measured %d; lasting %d, measured %d", name, peak.Total(), all, lasting.Total(), left)
		}
		t.Logf("%s: peak %d, measured %d", name, peak.Total(), all)
	}
}
