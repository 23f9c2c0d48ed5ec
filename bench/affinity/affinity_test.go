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
