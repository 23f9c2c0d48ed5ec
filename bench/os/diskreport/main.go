// Command diskreport measures raw disks on Hardtack beside Debian's Linux and,
// when instructions were counted on both, writes docs/bench/disk.md.
//
//	diskreport [-systems linux,hardtack] [-drivers virtio,nvme] [-what counts,times]
//	           [-reps 3] [-n 300] [-ms 1000]
//
// It needs what report needs: QEMU, gcc, apt for Debian's kernel.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"hardtack/bench/internal/report"
	osbench "hardtack/bench/os"
)

func main() { report.Main(run) }

func run() error {
	systems := flag.String("systems", "linux,hardtack", "which kernels")
	drivers := flag.String("drivers", "virtio,nvme", "which controllers")
	what := flag.String("what", "counts,times", "which tables")
	reps := flag.Int("reps", 3, "boots a system and driver")
	n := flag.Int("n", 300, "operations counted at a time")
	ms := flag.Int("ms", 1000, "milliseconds of a timed row")
	flag.Parse()

	base, qemu, err := osbench.Setup(*systems, report.Log)
	if err != nil {
		return err
	}
	base.Reps = *reps
	b := osbench.DiskBench{Drivers: strings.Split(*drivers, ","), Operations: *n, Millis: *ms, Bench: base}
	r := osbench.DiskReport{Drivers: b.Drivers, Linux: b.Linux.Release, Reps: *reps, Cores: osbench.HostCores(),
		QEMU: qemu}
	if strings.Contains(*what, "counts") {
		if r.Counts, err = b.Run(true); err != nil {
			return err
		}
	}
	if strings.Contains(*what, "times") {
		if r.Times, err = b.Run(false); err != nil {
			return err
		}
	}
	fmt.Println(r.Markdown())
	if len(b.Systems) != 2 || r.Counts == nil {
		return nil
	}
	docs := filepath.Join(b.Dirs.Repo, "docs", "bench")
	if err := os.MkdirAll(docs, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(docs, "disk.md"), []byte(r.Markdown()), 0o644)
}
