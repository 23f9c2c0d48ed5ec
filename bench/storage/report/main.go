// Command report measures ext4 on Hardtack beside Debian's Linux and, when both were
// measured, writes docs/bench/storage.md and storage.svg.
//
//	report [-systems linux,hardtack] [-what counts,names,walks,times,cmail,leveldb] [-reps 3] [-n 100]
//	       [-names 100000] [-ms 1000] [-messages 100] [-entries 20000] [-variants mem-c-gc,…] [-json FILE] [-add FILE]
//
// It needs QEMU, gcc, and apt for Debian's kernel. With -add the figures of an
// earlier -json are kept where this run has none.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"hardtack/bench/internal/report"
	osbench "hardtack/bench/os"
	storagebench "hardtack/bench/storage"
)

func main() { report.Main(run) }

func run() error {
	c := storagebench.Config{}
	systems := flag.String("systems", "linux,hardtack", "which kernels")
	what := flag.String("what", "counts,names,walks,times,cmail,leveldb", "which parts")
	flag.IntVar(&c.Reps, "reps", 3, "boots a system of what is timed")
	flag.IntVar(&c.Operations, "n", 100, "operations counted at a time")
	flag.IntVar(&c.Names, "names", 100000, "names of the large directory")
	flag.IntVar(&c.Millis, "ms", 1000, "milliseconds of a timed row")
	flag.IntVar(&c.Messages, "messages", 100, "messages of a client where instructions are counted")
	flag.IntVar(&c.Entries, "entries", 20000, "pairs of a LevelDB suite")
	variants := flag.String("variants", "", "which LevelDB suites; empty for all")
	dump := flag.String("json", "", "write the figures to this file too")
	old := flag.String("add", "", "add the figures of this file")
	flag.Parse()

	qemu, err := osbench.QEMUVersion()
	if err != nil {
		return err
	}
	if c.Dirs, err = osbench.FindDirs(); err != nil {
		return err
	}
	if c.Linux, err = osbench.Linux(c.Dirs); err != nil {
		return err
	}
	c.Log = report.Log
	if c.Systems, err = osbench.ParseSystems(*systems); err != nil {
		return err
	}
	if *variants != "" {
		c.Variants = strings.Split(*variants, ",")
	}
	defer c.Close()
	figures, err := c.Measure(strings.Split(*what, ","))
	if err != nil {
		return err
	}
	if *old != "" {
		if err := add(figures, *old); err != nil {
			return err
		}
	}
	if *dump != "" {
		text, err := json.MarshalIndent(figures, "", "\t")
		if err != nil {
			return err
		}
		if err := os.WriteFile(*dump, text, 0o644); err != nil {
			return err
		}
	}
	r := storagebench.Report{Figures: figures, Config: c, Linux: c.Linux.Release, QEMU: qemu}
	fmt.Println(r.Markdown())
	if len(c.Systems) != 2 {
		return nil
	}
	docs := filepath.Join(c.Dirs.Repo, "docs", "bench")
	if err := os.MkdirAll(docs, 0o755); err != nil {
		return err
	}
	if err := r.SVG(filepath.Join(docs, "storage.svg")); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(docs, "storage.md"), []byte(r.Markdown()), 0o644)
}

// add adds the figures of a file, but those that were measured now.
func add(figures storagebench.Figures, name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before := storagebench.Figures{}
	if err := json.Unmarshal(text, &before); err != nil {
		return err
	}
	for name, t := range before {
		if figures[name] == nil {
			figures[name] = t
		}
	}
	return nil
}
