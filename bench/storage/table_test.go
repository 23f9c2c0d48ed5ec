package storagebench

import (
	"strings"
	"testing"

	osbench "hardtack/bench/os"
)

// A page has what was measured, with the ratios the right way round, and no table
// of what was not.
func TestMarkdown(t *testing.T) {
	f := Figures{}
	put := func(name string, ours, linux float64) {
		f[name] = osbench.Times{}
		for _, what := range []string{"median", "minimum"} {
			add(f[name], what, osbench.OnHardtack, ours)
			add(f[name], what, osbench.OnLinux, linux)
		}
	}
	put("unlink", 13552, 92137)
	put("virtio/randread1", 6000, 4000)
	put("virtio/share1", 100, 100)
	put("virtio/share8", 450, 200)
	put("mem-gc/fillseq", 2, 3)
	put("mem-gc/pairs", 20000, 0)
	put("ahci/randread1", 5400, 0)
	put("host/times", 1.5, 0)
	put("host/cmail", 1.97, 0)
	put("memory/cmail", 402, 137)
	for row, ns := range map[string]float64{"walk/free1": 100, "walk/locked1": 250, "walk/free2": 110, "walk/locked2": 660} {
		put(row, ns, 0)
	}
	r := Report{Figures: f, Config: Config{Operations: 100, Entries: 20000, Bench: osbench.Bench{Reps: 3}}}
	page := r.Markdown()
	for _, want := range []string{
		"| unlink | 13,552 (13,552) | 92,137 (92,137) | 0.15 |",
		"| read 4 KiB at random, O_DIRECT, one process, 1/s | 6,000 (6,000) | 4,000 (4,000) | 1.50 |",
		"| read 4 KiB at random, O_DIRECT, one process, 1/s | 5,400 | 6,000 | 0.90 |",
		"| virtio-blk, Hardtack | 100 | 450 | 4.50 |",
		"| fillseq | 2.00 | 2.00 | 3.00 | 3.00 | 1.50 |",
		"In memory, no compression, collector, 20,000 pairs:",
		"with the best in\nbrackets. A ratio above 1 is faster than Linux.\nBefore and after, two threads on the host did 1.50 times the work of one (the lower value;\n2 means that both cores were free). **The host was busy",
		"costs nothing.\nBefore and after, two threads on the host did 1.97 times the work of one (the lower value;\n2 means that both cores were free).\n",
		"| rename to another directory | — (—) | — (—) | — |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no line %q in\n%s", want, page)
		}
	}
	for _, other := range []string{"Rates on NVMe", "On disk, compression"} {
		if strings.Contains(page, other) {
			t.Errorf("the page has a part %q that was not measured", other)
		}
	}
}
