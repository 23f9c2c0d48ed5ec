// Command report measures the nucleus under its concurrency controls and writes
// docs/bench/nucleus.md and nucleus.svg.
//
//	report [-rounds 3] [-add NAME=KERNEL] [-json FILE]
//
// -add measures another kernel image beside ours. It needs QEMU, gcc, and apt for
// Debian's Redis.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	nucleusbench "hardtack/bench/nucleus"
	osbench "hardtack/bench/os"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run() error {
	b := nucleusbench.Bench{Log: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }}
	flag.IntVar(&b.Rounds, "rounds", 3, "boots of each kernel with Redis")
	add := flag.String("add", "", "another kernel, NAME=IMAGE")
	dump := flag.String("json", "", "write the figures to this file too")
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
	r, err := b.Measure()
	if err != nil {
		return err
	}
	r.QEMU, r.Cores = qemu, osbench.HostCores()
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
