package main

import (
	"flag"
	"fmt"
	"time"

	"hardtack/bench/internal/report"
	osbench "hardtack/bench/os"
)

func main() { report.Main(run) }

func run() error {
	load := flag.Duration("load", 4*time.Second, "length of one load from the host")
	reps := flag.Int("reps", 1, "repetitions")
	kernel := flag.String("kernel", "", "")
	flag.Parse()
	dirs, err := osbench.FindDirs()
	if err != nil {
		return err
	}
	linux, err := osbench.Linux(dirs)
	if err != nil {
		return err
	}
	b := osbench.Bench{Dirs: dirs, Linux: linux, Machine: "microvm", Reps: *reps, Load: *load, Kernel: *kernel, Log: report.Log}
	if b.Systems, err = osbench.ParseSystems("linux,hardtack"); err != nil {
		return err
	}
	times, err := b.TakeServed("& /bench/osbench spin 1 100000000\n")
	for name, t := range times {
		fmt.Println(name, osbench.Median(t[osbench.OnLinux]), osbench.Median(t[osbench.OnHardtack]))
	}
	return err
}
