package affinitybench

import (
	"strings"
	"testing"
)

func TestFigures(t *testing.T) {
	f, err := figures([]byte("hop 3.5 ns\nwork 2 s\n"))
	if err != nil || f["hop"] != 3.5 || f["work"] != 2 {
		t.Errorf("%v, %v", f, err)
	}
	for _, bad := range []string{"", "hop 3", "hop x ns"} {
		if _, err := figures([]byte(bad)); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
	f, err = goBenchmark([]byte("goos: linux\nBenchmarkX-2 \t 200 \t 12.5 ns/op\t 3 B/op\nPASS\n"))
	if err != nil || f["put"] != 12.5 {
		t.Errorf("%v, %v", f, err)
	}
}

func TestRatioAndPage(t *testing.T) {
	res := Result{"Go": {100, 300, 90}, "off": {100, 300, 90}, "process": {50, 100, 90}, "node": {100, 300, 90}, "group": {50, 200, 30}}
	if median, minima := res.Ratio("group"); median != 2 || minima != 3 {
		t.Errorf("group %v, %v", median, minima)
	}
	r := Report{Results: make([]Result, len(Rows)), Rounds: 3, Recovery: res, Prefix: []string{"chrt"}}
	r.Results[0] = res
	page := r.Markdown()
	for _, want := range []string{"| 2.00 | 1.00 | **2.00** | 3.00 | ≥ 1.50 |", "`chrt`", "100000, 300000"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
}

func TestMixturePage(t *testing.T) {
	r := Report{Results: make([]Result, len(Rows)), Rounds: 1}
	n := 0
	for i, row := range Rows {
		if row.Bound {
			r.Results[i] = Result{"Go": {2}, "off": {2}, "process": {4}, "node": {2}, "group": {1.25},
				"talk": {0.75}, "cpu": {0.5}, "alone": {0.25}, "bound": {1}}
			n++
		}
	}
	if want := "| 0.75 | 0.50 | 0.25 | 1.00 | 2.00 | 0.50 | 1.60 |"; n == 0 || strings.Count(r.Markdown(), want) != n {
		t.Errorf("not %d times %q in\n%s", n, want, r.Markdown())
	}
}

func TestReadCounts(t *testing.T) {
	line := func(ns string) string { return "BenchmarkChanX \t 100\t " + ns + " ns/op\nPASS\r\n" }
	// Two runs; the second has the sides the other way round.
	c, err := readCounts("boot 1 2 3\n"+line("100")+line("102")+line("104")+line("98"), 2)
	if err != nil {
		t.Fatal(err)
	}
	if g, o := c["ChanX"]["go"], c["ChanX"]["off"]; len(g) != 2 || g[0] != 100 || g[1] != 98 || len(o) != 2 || o[0] != 102 || o[1] != 104 {
		t.Errorf("%v", c)
	}
	if medians, least := c.Overhead("ChanX"); medians < 0.0404 || medians > 0.0405 || least < 0.0408 || least > 0.0409 {
		t.Errorf("overhead %v, %v", medians, least)
	}
	if table := c.Table(); !strings.Contains(table, "| ChanX | 99.0 | 103.0 | +4.04 % | +4.08 % | 2.04 % |") {
		t.Errorf("%s", table)
	}
	for _, bad := range []string{"", line("1"), strings.Repeat("PASS\n", 4)} {
		if _, err := readCounts(bad, 2); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}
