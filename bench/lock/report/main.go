// Command report measures locks and the nucleus core and writes docs/bench/lock.md
// with its plots and lock.csv, or lock-rtm.md on a processor whose hardware
// transactions commit.
//
//	report [-rounds 5] [-fifo] [-out DIR]
//
// With -fifo (root) the measuring threads have real-time priority: on a machine that
// others use the figures mean little without.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"

	"hardtack/bench/internal/report"
	lockbench "hardtack/bench/lock"
)

func main() { report.Main(run) }

func run() error {
	rounds := report.Rounds(5)
	fifo := flag.Bool("fifo", false, "real-time priority")
	out := flag.String("out", "docs/bench", "directory of the page")
	flag.Parse()
	if err := report.AtLeastOne("rounds", *rounds); err != nil {
		return err
	}
	if runtime.NumCPU() < 2 {
		return errors.New("the page is about two processors; here is one")
	}
	dir, err := os.MkdirTemp("", "bench-lock-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := lockbench.Bench{Dir: dir, FIFO: *fifo, Rounds: *rounds,
		Log: report.Log}
	r, err := b.Run()
	if err != nil {
		return err
	}
	page, err := r.Markdown()
	if err != nil {
		return err
	}
	fmt.Println(page)
	return r.Write(*out)
}
