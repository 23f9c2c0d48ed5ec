package taskbench

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"hardtack/bench/internal/report"
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

// Every row of the page has its median, its least and its processor time.
func TestRows(t *testing.T) {
	repo, err := report.Root()
	if err != nil {
		t.Fatal(err)
	}
	defer func(old map[string]int) { Sizes = old }(Sizes)
	Sizes = map[string]int{"fib": 12, "stress": 8, "sort": 20_000, "bigsort": 40_000}
	dir := t.TempDir()
	self := filepath.Join(dir, "report")
	if err := report.Build(repo, nil, "go", "build", "-o", self, "./bench/task/report"); err != nil {
		t.Fatal(err)
	}
	list, err := Build(repo, dir, self, t.Logf, "go", "calls", "fast", "loop", "ordinary", "join", "lace", "direct")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.Missing != "" {
			t.Errorf("%s: %s", c.Title, c.Missing)
		}
	}
	r, err := Run(list, []string{"fib", "stress", "sort"}, 1, 1, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	if r.Latencies, err = Messages(1, 50); err != nil {
		t.Fatal(err)
	}
	if r.Cancelled, err = CancelledRuns(3); err != nil {
		t.Fatal(err)
	}
	for k, v := range r.Figures {
		if report.Least(v) <= 0 || report.Least(r.Processor[k]) <= 0 {
			t.Errorf("%v: %v, processor time %v", k, v, r.Processor[k])
		}
	}
	for _, l := range r.Latencies {
		if l.Min <= 0 || l.Median <= 0 || l.Processor <= 0 {
			t.Errorf("%+v", l)
		}
	}
	for _, c := range r.Cancelled {
		if report.Least(c.Time) <= 0 || report.Least(c.Processors) < 0 {
			t.Errorf("%+v", c)
		}
	}
	page := r.Markdown("")
	for _, c := range list {
		if n := strings.Count(page, "\n| "+c.Title+" | "); n != 2 {
			t.Errorf("%d rows of %s, want fib's and stress's in\n%s", n, c.Title, page)
		}
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
