// Command report measures clusters and writes docs/bench/cluster.md and cluster.svg. It
// needs QEMU with plugins, and gcc.
package main

import (
	"flag"
	"fmt"
	"path/filepath"

	clusterbench "hardtack/bench/cluster"
	"hardtack/bench/internal/report"
	osbench "hardtack/bench/os"
)

func main() { report.Main(run) }

func run() error {
	file := flag.String("resume", "", "keep what was measured in this `FILE`, and do not measure again what is there")
	flag.Parse()
	d, err := osbench.FindDirs()
	if err != nil {
		return err
	}
	b, err := clusterbench.NewBench(d)
	if err != nil {
		return err
	}
	r, err := b.Measure(report.Log, *file)
	if err != nil {
		return err
	}
	page := r.Markdown()
	fmt.Println(page)
	return report.WritePage(filepath.Join(d.Repo, "docs", "bench"), "cluster.md", page, map[string]func(string) error{"cluster.svg": r.SVG, "cluster-scale.svg": r.ScaleSVG})
}
