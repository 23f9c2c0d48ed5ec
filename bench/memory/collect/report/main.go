// Command report measures what the kernel's collector adds to system calls, and writes
// docs/bench/collector.md and collector.svg.
//
//	report [-old KERNEL] [-iterations N]
//
// -old measures another kernel image beside bin/kernel.elf. It needs QEMU and gcc.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"hardtack/bench/internal/report"
	collectbench "hardtack/bench/memory/collect"
	osbench "hardtack/bench/os"
)

func main() { report.Main(run) }

func run() error {
	old := flag.String("old", "", "another kernel image, measured beside ours")
	iterations := flag.Int("iterations", 30000, "of the loop in each run")
	flag.Parse()
	if err := report.AtLeastOne("iterations", *iterations); err != nil {
		return err
	}
	d, err := osbench.FindDirs()
	if err != nil {
		return err
	}
	r := collectbench.Report{Files: 5000}
	if r.QEMU, err = osbench.QEMUVersion(); err != nil {
		return err
	}
	b, err := collectbench.NewBench(d)
	if err != nil {
		return err
	}
	kernel := filepath.Join(d.Repo, "bin", "kernel.elf")
	measure := func(kernel string, c collectbench.Case) (*collectbench.Result, error) {
		report.Log("%s: %+v", filepath.Base(kernel), c)
		return b.Run(kernel, c)
	}
	for _, cpus := range []int{1, 2} {
		for _, files := range []int{0, r.Files} {
			without, err := measure(kernel, collectbench.Case{Memory: "512M", CPUs: cpus, Files: files, Percent: "off", Iterations: *iterations / 3})
			if err != nil {
				return err
			}
			memories := []string{"64M", "128M", "512M"}
			if cpus > 1 {
				memories = []string{"128M"}
			}
			for _, memory := range memories {
				row := collectbench.Row{Without: without}
				c := collectbench.Case{Memory: memory, CPUs: cpus, Files: files, Iterations: *iterations}
				if row.New, err = measure(kernel, c); err != nil {
					return err
				}
				if *old != "" {
					if row.Old, err = measure(*old, c); err != nil {
						return err
					}
				}
				r.Rows = append(r.Rows, row)
			}
		}
	}
	point := collectbench.Case{Memory: "512M", CPUs: 1, Files: r.Files, Percent: "off", Iterations: *iterations}
	if r.Full, err = measure(kernel, point); err != nil {
		return err
	}
	for _, percent := range []string{"20", "50", "100", "200", "300", "400"} {
		point.Percent = percent
		result, err := measure(kernel, point)
		if err != nil {
			return err
		}
		r.Points = append(r.Points, collectbench.Point{Percent: percent, Result: result})
	}
	docs := filepath.Join(d.Repo, "docs", "bench")
	if err := r.SVG(filepath.Join(docs, "collector.svg")); err != nil {
		return err
	}
	page := r.Markdown()
	fmt.Println(page)
	return os.WriteFile(filepath.Join(docs, "collector.md"), []byte(page), 0o644)
}
