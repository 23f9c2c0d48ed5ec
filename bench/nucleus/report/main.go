// Command report measures the nucleus under its concurrency controls and writes
// docs/bench/nucleus.md and nucleus.svg.
//
//	report [-rounds 3] [-add NAME=KERNEL] [-json FILE] [-times FILE]
//
// -add measures another kernel image beside ours. -times takes the requests a second
// from what -json wrote on a quiet machine, and counts instructions only. It needs
// QEMU, gcc, and apt for Debian's Redis.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"hardtack/bench/internal/report"
	nucleusbench "hardtack/bench/nucleus"
	osbench "hardtack/bench/os"
)

func main() { report.Main(run) }

func run() error {
	b := nucleusbench.Bench{Log: report.Log}
	flag.IntVar(&b.Rounds, "rounds", 3, "boots of each kernel with Redis")
	add := flag.String("add", "", "another kernel, NAME=IMAGE")
	dump := flag.String("json", "", "write the figures to this file too")
	times := flag.String("times", "", "do not time; requests a second are those in this file")
	flag.Parse()
	qemu, err := osbench.QEMUVersion()
	if err != nil {
		return err
	}
	if b.Dirs, err = osbench.FindDirs(); err != nil {
		return err
	}
	if b.Kernels, err = nucleusbench.Kernels(b.Dirs); err != nil {
		return err
	}
	if name, path, ok := strings.Cut(*add, "="); ok {
		b.Kernels = append(b.Kernels, nucleusbench.Kernel{Name: name, Path: path})
	} else if *add != "" {
		return fmt.Errorf("-add %q: want NAME=IMAGE", *add)
	}
	var earlier nucleusbench.Report
	if b.NoTimes = *times != ""; b.NoTimes {
		data, err := os.ReadFile(*times)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(data, &earlier); err != nil {
			return fmt.Errorf("%s: %w", *times, err)
		}
	}
	r, err := b.Measure()
	if err != nil {
		return err
	}
	if r.QEMU = qemu; b.NoTimes {
		r.Timed, r.Cores, r.Earlier = earlier.Timed, earlier.Cores, true
	} else {
		r.Cores = osbench.HostCores()
	}
	if *dump != "" {
		data, err := json.MarshalIndent(r, "", "\t")
		if err != nil {
			return err
		}
		if err := os.WriteFile(*dump, data, 0o644); err != nil {
			return err
		}
	}
	docs := filepath.Join(b.Dirs.Repo, "docs", "bench")
	if err := r.SVG(filepath.Join(docs, "nucleus.svg")); err != nil {
		return err
	}
	page := r.Markdown()
	fmt.Println(page)
	return os.WriteFile(filepath.Join(docs, "nucleus.md"), []byte(page), 0o644)
}
