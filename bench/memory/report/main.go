// Command report has offenders exhaust the memory of machines and writes
// docs/bench/memory.md and memory.svg.
//
//	report [-each 60s] [-memory 48M,128M,512M] [-cpus 1,2] [-kinds all] [-pairs] [-same] [-icount]
//	       [-kernel FILE -tool FILE -name NAME] [-json FILE] [-dry] [-again]
//
// Each run boots a machine of its own. With -json the tables of that file stay that are
// not measured now, and the file gets all. -dry writes no page, -again only that. It needs QEMU and gcc.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"hardtack/bench/internal/report"
	membench "hardtack/bench/memory"
	osbench "hardtack/bench/os"
)

func main() { report.Main(run) }

func run() error {
	each := flag.Duration("each", time.Minute, "how long a run takes")
	memory := flag.String("memory", "48M,128M,512M", "sizes of machines")
	cpus := flag.String("cpus", "1,2", "numbers of CPUs")
	kinds := flag.String("kinds", "", "offenders, with + between those of one run; empty for all")
	pairs := flag.Bool("pairs", false, "two offenders of a kind in each run")
	icount := flag.Bool("icount", false, "the guest's clock counts instructions (one CPU)")
	same := flag.Bool("same", false, "the well-behaved program is the same user's")
	kernel := flag.String("kernel", "", "another kernel")
	tool := flag.String("tool", "", "the hardtack command of that kernel")
	name := flag.String("name", "", "what that kernel is called")
	dump := flag.String("json", "", "keep the figures in this file")
	dry := flag.Bool("dry", false, "write no page")
	again := flag.Bool("again", false, "measure nothing: write the page from the -json file")
	flag.Parse()

	repo, err := report.Root()
	if err != nil {
		return err
	}
	var r membench.Report
	if r.QEMU, err = osbench.QEMUVersion(); err != nil {
		return err
	}
	if err := load(*dump, &r); err != nil {
		return err
	}
	page := filepath.Join(repo, "docs", "bench", "memory.md")
	if *again {
		return write(&r, page)
	}
	root, err := os.MkdirTemp("", "memory")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	if err := membench.Build(repo, root); err != nil {
		return err
	}
	m := membench.Machine{Tool: *tool, Kernel: *kernel, Root: root}
	if *icount {
		m.Flags = append(m.Flags, "--icount")
	}
	if m.Tool == "" {
		m.Tool = filepath.Join(repo, "bin", "hardtack")
	}
	for _, size := range strings.Split(*memory, ",") {
		for _, c := range strings.Split(*cpus, ",") {
			m.Memory = size
			if m.CPUs, err = strconv.Atoi(c); err != nil {
				return err
			}
			t := membench.Table{Memory: size, CPUs: m.CPUs, Each: *each, Same: *same, ICount: *icount, Kernel: *name, Date: time.Now().Format("2 January 2006")}
			t.Runs = measure(m, offenders(*kinds, *pairs), *each, *same)
			r.Add(t)
			if err := save(*dump, &r); err != nil {
				return err
			}
		}
	}
	fmt.Println(r.Markdown())
	if *dry {
		return nil
	}
	return write(&r, page)
}

// write writes the page and its figure.
func write(r *membench.Report, page string) error {
	if err := r.SVG(filepath.Join(filepath.Dir(page), "memory.svg")); err != nil {
		return err
	}
	return os.WriteFile(page, []byte(r.Markdown()), 0o644)
}

// offenders are the runs of a machine.
func offenders(kinds string, pairs bool) (all []string) {
	if kinds != "" {
		return strings.Split(kinds, ",")
	}
	for _, k := range membench.Kinds {
		name := k.Name
		if pairs {
			name += "+" + k.Name
		}
		all = append(all, name)
	}
	return all
}

func measure(m membench.Machine, offenders []string, each time.Duration, same bool) (runs []membench.Run) {
	for _, o := range offenders {
		got, err := m.Beside([]string{o}, each, same)
		if err != nil {
			got = []membench.Run{{Offenders: o, Broken: err.Error()}}
		}
		report.Log("%s, %d CPUs: %+v", m.Memory, m.CPUs, got)
		runs = append(runs, got...)
	}
	return runs
}

func load(file string, r *membench.Report) error {
	if file == "" {
		return nil
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(data, r)
}

func save(file string, r *membench.Report) error {
	if file == "" {
		return nil
	}
	data, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}
