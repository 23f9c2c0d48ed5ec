// Command report runs packages task and affinity in machines, on Hardtack and on Linux,
// and writes docs/bench/follow.md with its plots.
//
//	report [-what speed,overhead,stages,latency,removal,players,regex,rows,touches] [-systems linux,hardtack]
//
// What was measured is kept in build/bench/follow.json: the page has all that was measured
// last. It needs QEMU with plugins, gcc, and what bench/os/report needs.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	followbench "hardtack/bench/follow"
	"hardtack/bench/internal/report"
	osbench "hardtack/bench/os"
)

func main() { report.Main(run) }

func run() error {
	what := flag.String("what", strings.Join(followbench.Figures, ","), "figures to measure; empty writes the page anew")
	systems := flag.String("systems", "hardtack,linux", "on which systems")
	flag.Parse()
	b, qemu, err := osbench.Setup(*systems, report.Log)
	if err != nil {
		return err
	}
	kept := filepath.Join(b.Dirs.Cache, "follow.json")
	r := followbench.NewReport()
	if data, err := os.ReadFile(kept); err == nil {
		if err := json.Unmarshal(data, r); err != nil {
			return fmt.Errorf("%s: %w", kept, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r.QEMU, r.Linux = qemu, b.Linux.Release
	figures := strings.FieldsFunc(*what, func(r rune) bool { return r == ',' })
	if len(figures) == 0 {
		return write(r, b.Dirs.Repo)
	}
	f, err := followbench.NewBench(b)
	if err != nil {
		return err
	}
	for _, figure := range figures {
		if !slices.Contains(followbench.Figures, figure) {
			return fmt.Errorf("-what %q: want %s", figure, strings.Join(followbench.Figures, ", "))
		}
		for _, system := range b.Systems {
			if err := f.Measure(r, figure, system); err != nil {
				return fmt.Errorf("%s: %w", figure, err)
			}
			data, err := json.Marshal(r)
			if err != nil {
				return err
			}
			if err := os.WriteFile(kept, data, 0o644); err != nil {
				return err
			}
		}
	}
	return write(r, b.Dirs.Repo)
}

func write(r *followbench.Report, repo string) error {
	page := r.Markdown()
	fmt.Println(page)
	return report.WritePage(filepath.Join(repo, "docs", "bench"), "follow.md", page, r.Pictures())
}
