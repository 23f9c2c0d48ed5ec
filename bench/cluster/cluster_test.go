package clusterbench

import (
	"slices"
	"testing"
)

func TestRequests(t *testing.T) {
	r, err := readRequests([]byte("mark 1 1 100 10 500\nmark 1 2 150 30 900\nmark 1 1 200 30 1000\nmark 1 2 260 30 1100\npc ff 3 0\n"))
	if want := (Requests{{500, 70}, {1000, 60}}); err != nil || !slices.Equal(r, want) {
		t.Errorf("got %v, %v, want %v", r, err, want)
	}
	if r.Percentile(10000) != 70 || r.Percentile(0) != 60 || r.Mean() != 65 {
		t.Errorf("longest %d, least %d, mean %d", r.Percentile(10000), r.Percentile(0), r.Mean())
	}
	for _, bad := range []string{"", "mark 0 2 1 0 1\n", "mark 0 1 1 0 1\nmark 1 2 5 0 9\n", "mark 0 x\n"} {
		if r, err := readRequests([]byte(bad)); err == nil {
			t.Errorf("%q: %v", bad, r)
		}
	}
}

func TestBells(t *testing.T) {
	b, err := readBells([]byte("mark 0 5 100 0 0 9\nmark 0 6 150 0 0 9\nmark 1 7 0 0 0 30\nmark 1 7 0 0 0 20\nmark 1 7 0 0 0 40\npc ff 3 0\n"))
	if err != nil || b != (Bell{50, 30}) {
		t.Errorf("%+v, %v", b, err)
	}
	if _, err := readBells([]byte("mark 0 5 100 0 0\n")); err == nil {
		t.Error("no rings, no error")
	}
}

func TestGaps(t *testing.T) {
	got, err := between("[1] panics 10\n[1] first 5\n[1] first 30\n[1] panics 40\nx\n", "panics", "first")
	if err != nil || !slices.Equal(got, []int64{20}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := between("panics 10\n", "panics", "first"); err == nil {
		t.Errorf("%v", got)
	}
}

func TestPart(t *testing.T) {
	for file, want := range map[string]string{
		"runtime/proc.go":          "Go's scheduler and the rest of its runtime",
		"runtime/malloc.go":        "memory of Go's runtime",
		"hardtack/nucleus/cpu.go":  "the nucleus: interrupts, threads, clock",
		"hardtack/monitor/link.go": "monitors and message rings",
		"fmt/print.go":             "other packages",
	} {
		if got := part(file); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}
