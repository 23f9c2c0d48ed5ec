package affinitybench

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestFigures(t *testing.T) {
	f, err := figures("hop 3.5 ns\nwork 2 s\n")
	if err != nil || f["hop"] != 3.5 || f["work"] != 2 {
		t.Errorf("%v, %v", f, err)
	}
	for _, bad := range []string{"", "hop 3", "hop x ns"} {
		if _, err := figures(bad); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
	f, err = goBenchmark("goos: linux\nBenchmarkX-2 \t 200 \t 12.5 ns/op\t 3 B/op\nPASS\n", "put")
	if err != nil || f["put"] != 12.5 {
		t.Errorf("%v, %v", f, err)
	}
}

func TestRatioAndPage(t *testing.T) {
	res := Result{"Go": {100, 300, 90}, "off": {100, 300, 90}, "process": {50, 100, 90}, "node": {100, 300, 90}, "group": {50, 200, 30}}
	if median, minima := res.Ratio("group"); median != 2 || minima != 3 {
		t.Errorf("group %v, %v", median, minima)
	}
	r := Report{Results: make([]Result, len(Rows)), Rounds: 3, Recovery: res, Prefix: []string{"nice"}}
	r.Results[0] = res
	res["Go"+processorTime], res["group"+processorTime] = []float64{4, 4, 5}, []float64{2, 2, 2}
	if table := r.ProcessorTime(); !strings.Contains(table, "| 2.00 | 2.00 | 3.00 |") {
		t.Errorf("processor time:\n%s", table)
	}
	page := r.Markdown()
	for _, want := range []string{"| 2.00 | 1.00 | **2.00** | 3.00 | ≥ 1.50 |", "`nice`", "100000, 300000"} {
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

// A row whose baseline is not what it should be says so, and no other.
func TestDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		base, off []float64
		want      []string // parts of what is said; none: nothing
	}{
		"quiet":       {[]float64{1, 1.05, 1.1}, []float64{1, 1.02, 1.1}, nil},
		"apart":       {[]float64{1, 2, 2.1}, []float64{2, 2, 2}, []string{"2.00 times its own best"}},
		"slow":        {[]float64{1.9, 1.93, 2}, []float64{0.7, 0.76, 0.8}, []string{"2.54 times as long as *off*"}},
		"off is slow": {[]float64{1, 1, 1}, []float64{1.5, 1.5, 1.5}, []string{"0.67 times as long"}},
		"both":        {[]float64{1, 3, 3}, []float64{1, 1, 1}, []string{"own best", ", and ", "3.00 times as long"}},
		"no off":      {[]float64{1, 1, 1}, nil, nil},
	} {
		res := Result{"Go": c.base, "off": c.off, "process": c.base, "node": c.base, "group": c.off, "bound": c.off}
		why := res.Doubt()
		if (why == "") != (c.want == nil) {
			t.Errorf("%s: %q", name, why)
		}
		r := Report{Results: make([]Result, len(Rows))}
		for i := range Rows {
			if Rows[i].Bound {
				r.Results[i] = res
			}
		}
		page := r.Table() + r.mixture()
		marks := strings.Count(page, Rows[slices.IndexFunc(Rows, func(r Row) bool { return r.Bound })].Title+doubtMark+" |")
		if want := 2 * min(len(c.want), 1); marks != want {
			t.Errorf("%s: the row is marked %d times, want %d\n%s", name, marks, want, page)
		}
		for _, part := range c.want {
			if !strings.Contains(page, part) {
				t.Errorf("%s: the page does not say %q\n%s", name, part, page)
			}
		}
	}
}

// A benchmark that has passed counts even if its program ends with an error; one that
// has not does not.
func TestProgramThatFails(t *testing.T) {
	for script, want := range map[string]float64{
		"echo 'BenchmarkX-2 200 12.5 ns/op'; echo PASS; exit 1": 12.5,
		"echo 'BenchmarkX-2 200 12.5 ns/op'; echo PASS":         12.5,
		"echo 'BenchmarkX-2 200 12.5 ns/op'; echo FAIL; exit 1": 0,
		"exit 1": 0,
	} {
		b := Bench{Stock: map[string]string{"x": "sh"}}
		f, err := b.Run(Row{Peer: "x", Args: []string{"-c", script}, Metric: "op"}, Builds[0])
		if f["op"] != want || (err == nil) != (want != 0) {
			t.Errorf("%s: %v, %v", script, f, err)
		}
	}
	// It is tried again, some times.
	count := t.TempDir() + "/count"
	for _, c := range []struct {
		tries int
		good  bool
	}{{2, true}, {9, false}} {
		script := fmt.Sprintf("echo >>%[1]s; test $(wc -l <%[1]s) -ge %[2]d && echo 'BenchmarkX-2 200 12.5 ns/op' && echo PASS", count, c.tries)
		b := Bench{Stock: map[string]string{"x": "sh"}, Log: t.Logf}
		os.Remove(count)
		if _, err := b.again(Row{Peer: "x", Args: []string{"-c", script}, Metric: "op"}, Builds[0]); (err == nil) != c.good {
			t.Errorf("after %d tries: %v", c.tries, err)
		}
	}
}
