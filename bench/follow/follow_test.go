package followbench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hardtack/bench/internal/counted"
	osbench "hardtack/bench/os"
)

func TestWorks(t *testing.T) {
	const counts = "mark 0 3 1 2 3\ncpus 16 10 20 0\ncpus 17 15 50 2\npc 1 2 0\ncpus 16 20 60 9\ncpus 17 120 61 9\n"
	got, err := works([]byte(counts), 2)
	if err != nil || got[0] != (Work{30, 37}) || got[1] != (Work{100, 101}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "cpus 17 1 2\n", "cpus 16 1 2\n", "cpus 16 1 2\ncpus 16 1 2\n", "cpus 16 1 2\ncpus 17 1\n", "cpus 16 x 2\ncpus 17 1 2\n"} {
		if _, err := works([]byte(bad), 1); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

// Addresses of this program's own functions are its, those of the kernel the kernel's.
func TestParts(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	table, err := counted.Functions(self)
	if err != nil {
		t.Fatal(err)
	}
	pc := table.LookupFunc("hardtack/bench/follow.TestParts")
	if pc == nil {
		t.Fatal("this test has no symbol")
	}
	p := Parts{}
	counts := "pc ffffffff80200000 7 0\npc 10 2 0\npc " + hex(pc.Entry) + " 5 1\n"
	err = p.add(self, []byte(counts), func(file, fn string) string { return filepath.Base(file) })
	if err != nil || p["the kernel"] != 7 || p["other code"] != 2 || p["follow_test.go"] != 5 {
		t.Errorf("%v, %v", p, err)
	}
	if err := (Parts{}).add(self, nil, nil); err == nil {
		t.Error("nothing was counted, and there is no error")
	}
}

func hex(n uint64) string {
	const digits = "0123456789abcdef"
	s := ""
	for ; n > 0; n /= 16 {
		s = string(digits[n%16]) + s
	}
	return s
}

// A page of invented figures has them, also after they were kept in a file.
func TestPage(t *testing.T) {
	r := NewReport()
	for _, on := range Systems {
		for _, s := range speeds {
			for i, cpus := range processors {
				r.Speeds[on] = append(r.Speeds[on], Speed{s.name, cpus, Work{1000 / float64(i+1), 1100}})
			}
		}
		r.Overheads[on] = map[string]Parts{"ordinary": {"the kernel": 3 * (2<<overheadDepth - 1)}, "fast": {"the kernel": 1}}
		r.Stages[on] = Parts{"a stage": 1234567}
		r.Latencies[on] = []Latency{{"a receiver", 2, 2000, 1000}}
		r.Removals[on] = &Removal{At: 7, First: 6, Trips: []float64{1, 2, 3}, Worst: 77, Quiet: 55}
		for n := 4; n <= 5; n++ {
			for _, policy := range Policies {
				r.Players[on] = append(r.Players[on], Point{policy, n, Work{5e6, 8e6}})
			}
		}
		r.Rows[on] = map[string]map[string][]Work{}
		for _, row := range rows {
			r.Rows[on][row.title] = map[string][]Work{"go": {{4, 8}, {5, 6}}, "off": {{2, 3}}, "process": {{4, 6}}, "group": {{8, 6}}}
		}
		r.Touches[on] = map[string]string{}
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	kept := NewReport()
	if err := json.Unmarshal(data, kept); err != nil {
		t.Fatal(err)
	}
	page := kept.Markdown()
	for _, want := range []string{"| 2 | 2.00 (1.00) |", "| the kernel | 3.0 | 100.0 % |", "| a stage | 1,234,567 | 100.0 % |", "| a receiver | 2 | 2,000 (1,000) |",
		"| Hardtack | 55 µs | 77 µs |", "| 4 | 5 (8) |", "| 2.00, 2.00 | 1.00, 1.00 | 1.00, 0.50 |"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	delete(kept.Touches, osbench.OnLinux)
	delete(kept.Touches, osbench.OnHardtack)
	for name, draw := range kept.Pictures() {
		file := filepath.Join(t.TempDir(), name)
		if err := draw(file); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if data, err := os.ReadFile(file); err != nil || !strings.Contains(string(data), "<svg") {
			t.Errorf("%s: %.40q, %v", name, data, err)
		}
	}
}
