package maxlive

import (
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"hardtack/tool/maxlive/internal/cases"
)

const casesPath = "hardtack/tool/maxlive/internal/cases."

// analysed is the result for the cases; one run is for all tests.
var analysed = sync.OnceValues(func() (*Result, error) {
	return Run(&Config{Patterns: []string{"./internal/cases"}, Entries: regexp.MustCompile(`cases\.[A-Z]\w*$`), Models: "testdata/models.txt", Stack: 8192})
})

func bounds(t *testing.T) map[string]Bound {
	t.Helper()
	r, err := analysed()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Bound{}
	for _, b := range r.Bounds {
		for i, c := range b.Causes {
			t.Errorf("%s: %v (%s)", b.Name, c, b.Paths[i])
		}
		out[strings.TrimPrefix(b.Name, casesPath)] = b
	}
	for _, p := range r.Problems {
		t.Error(p)
	}
	if len(out) != len(cases.All) {
		t.Fatalf("%d entry points, want %d", len(out), len(cases.All))
	}
	return out
}

// reused are the cases whose objects die during the call: what is live at once is less
// than what is allocated. The value is what is live.
var reused = map[string]uint64{"Reuse": 1024, "Iterations": 24, "Forever": 24}

// loose are the cases whose bound is above what one run of them allocates.
var loose = map[string]string{
	"Branches": "the other branch needs more",
	"Two":      "appends of several elements: any sizes",
	"Boxed":    "the strings' lengths are bounds",
	"Concat":   "the strings' lengths are bounds",
	"Builder":  "the model says so",
	"Deferred": "the runtime keeps records of defers for later use",
	"Masked":   "55 & 31 is less than 31",
	"Variadic": "small objects without pointers share a block of 16 bytes",
	"Closure":  "small objects without pointers share a block of 16 bytes",
	"Generic":  "small objects without pointers share a block of 16 bytes",
	"Sum":      "a small number needs no box",
	"Started":  "the stack, and a goroutine's record, are reused",
}

// TestAgainstMeasurement runs each case: its bound is never below what it allocates,
// and for most equal to it.
func TestAgainstMeasurement(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var bound, measured uint64
	for name, b := range bounds(t) {
		peak, lasting := b.Cost.Peak, b.Cost.Lasting()
		all, left := measure(cases.All[name])
		if live, ok := reused[name]; ok {
			all = live
		}
		bound, measured = bound+peak.Total()-peak[stacks], measured+all
		switch {
		case peak.Total() < all:
			t.Errorf("%s: the bound is %d, measured %d", name, peak.Total(), all)
		case lasting.Total() < left:
			t.Errorf("%s: %d last, measured %d", name, lasting.Total(), left)
		case loose[name] == "" && peak.Total() != all:
			t.Errorf("%s: the bound is %d, measured %d: want the same", name, peak.Total(), all)
		case loose[name] != "":
			t.Logf("%s: bound %d, measured %d: %s", name, peak.Total(), all, loose[name])
		}
	}
	if bound > measured*5/4 {
		t.Errorf("all cases: the bounds are %d, measured %d: want at most 1.25 times that", bound, measured)
	}
	t.Logf("all cases: bound / measured = %.2f", float64(bound)/float64(measured))
}

// measure returns the bytes that a call allocates, and those that its result keeps. The
// runtime allocates too: the least of some rounds is the function's own.
func measure(f func() any) (all, left uint64) {
	const rounds, calls = 3, 100
	all, left = 1<<62, 1<<62
	for range rounds {
		var before, after, kept runtime.MemStats
		results := make([]any, calls)
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range results {
			results[i] = f()
		}
		runtime.ReadMemStats(&after)
		runtime.GC()
		runtime.ReadMemStats(&kept)
		runtime.KeepAlive(results)
		all = min(all, (after.TotalAlloc-before.TotalAlloc)/calls)
		if kept.HeapAlloc > before.HeapAlloc {
			left = min(left, (kept.HeapAlloc-before.HeapAlloc)/calls)
		} else {
			left = 0
		}
	}
	return all, left
}

// TestClasses: the classes of a vector add up to its total where there is one path.
func TestClasses(t *testing.T) {
	r, err := analysed()
	if err != nil {
		t.Fatal(err)
	}
	all := bounds(t)
	for name, want := range map[string]map[string]uint64{
		"List":    {"32": 320, "total": 320},
		"Large":   {"large": 40960, "total": 40960},
		"Header":  {"1152": 1152, "total": 1152},
		"Scratch": {},
	} {
		b := all[name]
		got := named(b.Cost.Lasting(), r.sizes)
		if len(got) != len(want) {
			t.Errorf("%s lasts %v, want %v", name, got, want)
		}
		for k, n := range want {
			if got[k] != n {
				t.Errorf("%s lasts %v, want %v", name, got, want)
			}
		}
	}
	w := all["Branches"].Cost.Peak
	if w[largeClass] != 0 || w.Total() != 1048 {
		t.Errorf("Branches: %v", w.named(r.sizes))
	}
}
