// Command report measures Hardtack beside Debian's Linux and prints the table
// of the goals; with both measured it writes docs/bench/os.md and os.svg.
//
//	report [-systems linux,hardtack] [-machine microvm] [-what instructions,times]
//	       [-reps 3] [-load 4s] [-json FILE]
//	report -profile cmd/kernel/default.pgo [-load 20s]
//
// The second form writes the profile by which the compiler builds the kernel.
//
// It needs qemu-system-x86_64, gcc, and apt for Debian's kernel and servers,
// which it keeps in build/bench.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hardtack/bench/internal/report"
	osbench "hardtack/bench/os"
)

func main() { report.Main(run) }

func run() error {
	systems := flag.String("systems", "linux,hardtack", "which kernels")
	machine := flag.String("machine", "microvm", "QEMU's machine: microvm or q35")
	what := flag.String("what", "instructions,times", "which tables")
	reps := flag.Int("reps", 3, "repetitions of the times")
	load := flag.Duration("load", 4*time.Second, "length of one load from the host")
	profile := flag.String("profile", "", "profile the kernel into this file and measure nothing")
	dump := flag.String("json", "", "write the figures to this file too")
	flag.Parse()

	b, qemu, err := osbench.Setup(*systems, report.Log)
	if err != nil {
		return err
	}
	b.Machine, b.Reps, b.Load = *machine, *reps, *load
	if *profile != "" {
		return b.Profile(*profile)
	}
	r := osbench.Report{Linux: b.Linux.Release, Machine: *machine, Cores: osbench.HostCores(), QEMU: qemu}
	if strings.Contains(*what, "instructions") {
		if r.Instructions, err = b.CountInstructions(); err != nil {
			return err
		}
		fmt.Println(r.Table())
	}
	if strings.Contains(*what, "times") {
		// Times mean something only when both cores are really there.
		for i := 0; r.Cores < 1.8 && i < 10; i++ {
			fmt.Fprintf(os.Stderr, "two threads do %.2f times the work of one: the machine is busy; waiting\n", r.Cores)
			time.Sleep(6 * time.Second)
			r.Cores = osbench.HostCores()
		}
		if r.Times, err = b.TakeTimes(); err != nil {
			return err
		}
		fmt.Println(r.TimesTable())
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
	if len(b.Systems) != 2 || r.Instructions == nil || r.Times == nil {
		return nil
	}
	docs := filepath.Join(b.Dirs.Repo, "docs", "bench")
	if err := os.MkdirAll(docs, 0o755); err != nil {
		return err
	}
	if err := r.SVG(filepath.Join(docs, "os.svg")); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(docs, "os.md"), []byte(r.Markdown()), 0o644)
}
