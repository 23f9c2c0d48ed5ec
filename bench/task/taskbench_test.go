package taskbench

import (
	"math"
	"path/filepath"
	"testing"
)

func TestCalls(t *testing.T) {
	var count func(n int) float64
	count = func(n int) float64 {
		if n < 2 {
			return 1
		}
		return 1 + count(n-1) + count(n-2)
	}
	for n := range 15 {
		if got := Calls("fib", n); got != count(n) {
			t.Errorf("fib(%d): %v calls, want %v", n, got, count(n))
		}
	}
	if Calls("stress", 3) != 15 {
		t.Errorf("stress(3): %v calls", Calls("stress", 3))
	}
}

func TestOne(t *testing.T) {
	for _, c := range []string{"go", "fast", "loop", "ordinary", "join"} {
		for p, n := range map[string]int{"fib": 15, "stress": 10} {
			out, err := One(c, p, n, 2, 2)
			if err != nil || len(out) != 2 {
				t.Errorf("%s %s: %v %v", c, p, out, err)
			}
		}
	}
	if _, err := One("ordinary", "sort", 10_000, 2, 1); err != nil {
		t.Error(err)
	}
	if _, err := One("nobody", "fib", 10, 1, 1); err == nil {
		t.Error("an unknown contender was measured")
	}
}

func TestBreakdown(t *testing.T) {
	parts, err := Breakdown(12, 3)
	if err != nil || len(parts) != 4 || parts[0].Nanos <= 0 {
		t.Errorf("%v %v", parts, err)
	}
}

func TestAddedCore(t *testing.T) {
	added, err := AddedCore(2)
	if err != nil || len(added) == 0 || added[0].Min <= 0 {
		t.Errorf("%v %v", added, err)
	}
}

func TestShares(t *testing.T) {
	s, err := TraceShares(12, filepath.Join(t.TempDir(), "trace.json"))
	if err != nil {
		t.Fatal(err)
	}
	if sum := s.Tasks + s.Join + s.Parked + s.Search; math.Abs(sum-1) > 0.3 || s.Tasks <= 0 {
		t.Errorf("shares: %+v", s)
	}
}

func TestGoals(t *testing.T) {
	r := &Result{Figures: map[Key][]float64{
		{"rayon", "fib", 1}: {9, 8}, {"fast", "fib", 1}: {2, 3}, {"loop", "fib", 1}: {1.2}, {"lace", "fib", 1}: {1},
	},
		Latencies: []Latency{{Min: 100, Median: 110}, {}, {}, {Min: 90, Median: 400}},
		Added:     []Added{{"SetWorkers", 100, 20000}},
	}
	met := map[string]bool{}
	for _, g := range r.Goals() {
		met[g.Text] = g.Met()
	}
	for text, want := range map[string]bool{
		"fib: rayon / fast form, one worker":                           true,
		"fib: fast form / C as Lace, one worker":                       false,
		"fib: fast form with a loop / C as Lace, one worker":           true,
		"sort of 20 million: one worker / two workers":                 false,
		"message to a task of the same run-time / Go channel, least":   true,
		"message to a task of the same run-time / Go channel, medians": false,
		"an added core's first task, by SetWorkers, median, ms":        false,
	} {
		if got, ok := met[text]; !ok || got != want {
			t.Errorf("%s: %v, there: %v", text, got, ok)
		}
	}
}
