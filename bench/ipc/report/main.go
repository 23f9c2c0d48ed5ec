// Command report measures processes that take turns on one CPU and writes
// docs/bench/ipc.md with its plot: the same program on Hardtack and on Linux, in
// guest instructions. It wants bin/hardtack and bin/kernel.elf (make build).
//
//	report [-out DIR]
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hardtack/bench/internal/chart"
	"hardtack/bench/internal/report"
	osbench "hardtack/bench/os"
)

func main() { report.Main(run) }

// rows are what bench/ipc/turns prints, and what it means.
var rows = []struct{ name, title string }{
	{"pipe", "pipe, 1 B"},
	{"unix", "Unix socket, 1 B"},
	{"call-c", "endpoint: call and reply from C"},
	{"call-raw", "endpoint: Call and ReplyRecv, raw"},
	{"call", "endpoint: Call and ReplyRecv"},
	{"note-raw", "notifications: Signal and Wait, raw"},
	{"note", "notifications: Signal and Wait"},
	{"ump", "generated stubs, UMP"},
	{"lmp", "generated stubs, LMP"},
}

type figures map[string]map[osbench.OS]osbench.Result

func run() error {
	out := flag.String("out", "", "directory of the page; docs/bench")
	flag.Parse()
	qemu, err := osbench.QEMUVersion()
	if err != nil {
		return err
	}
	dirs, err := osbench.FindDirs()
	if err != nil {
		return err
	}
	if *out == "" {
		*out = filepath.Join(dirs.Repo, "docs", "bench")
	}
	linux, err := osbench.Linux(dirs)
	if err != nil {
		return err
	}
	root, err := programs(dirs)
	if err != nil {
		return err
	}
	all, err := measure(dirs, linux, root, 1, "turns: done")
	if err != nil {
		return err
	}
	root.Add("bench/run", 0o644, []byte("/bench/cross\n"))
	apart, err := measure(dirs, linux, root, 2, "cross: done")
	if err != nil {
		return err
	}
	root.Add("bench/run", 0o644, []byte("/bench/turns -cpu 0 -only ump\n/bench/turns -cpu 0 -only lmp\n"))
	bound, err := measure(dirs, linux, root, 2, "turns: done")
	if err != nil {
		return err
	}
	page := all.markdown(qemu, linux.Release) + all.limits() + apart.crossing() + bound.oneOfTwo()
	fmt.Println(page)
	if err := os.MkdirAll(*out, 0o755); err != nil {
		return err
	}
	if err := all.svg(filepath.Join(*out, "ipc.svg")); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(*out, "ipc.md"), []byte(page), 0o644)
}

// measure runs the guests' commands, which end with a line, on both systems; Hardtack
// with so many CPUs, Linux with one: this kernel does not come up with two in a machine
// that counts instructions.
func measure(dirs osbench.Dirs, linux osbench.LinuxKernel, root osbench.Tree, cpus int, end string) (figures, error) {
	all := figures{}
	for system, cpus := range map[osbench.OS]int{osbench.OnLinux: 1, osbench.OnHardtack: cpus} {
		m, err := osbench.Boot{OS: system, Root: root, CPUs: cpus, Memory: "512M", ICount: true,
			Machine: "microvm", Timeout: 10 * time.Minute}.Start(dirs, linux)
		if err != nil {
			return nil, err
		}
		results, err := m.Wait()
		if err != nil || !strings.Contains(m.Output(), end) {
			return nil, fmt.Errorf("%v: %v\n%s", system, err, m.Output())
		}
		for _, r := range results {
			if all[r.Name] == nil {
				all[r.Name] = map[osbench.OS]osbench.Result{}
			}
			all[r.Name][system] = r
		}
	}
	return all, nil
}

// programs is the root of both guests.
func programs(d osbench.Dirs) (osbench.Tree, error) {
	root, err := osbench.Programs(d, "/bench/oneway\n/bench/turns\n")
	if err != nil {
		return nil, err
	}
	for name, build := range map[string][]string{
		"turns":  {"go", "build", "-o", "", "./bench/ipc/turns"},
		"oneway": {"gcc", "-O2", "-Wall", "-static", "-Imsg/c", "-o", "", "bench/ipc/oneway/oneway.c"},
		"cross":  {"gcc", "-O2", "-Wall", "-static", "-o", "", "bench/ipc/cross/cross.c"},
	} {
		program := filepath.Join(d.Cache, name)
		build[slices.Index(build, "")] = program
		cmd := exec.Command(build[0], build[1:]...)
		cmd.Dir, cmd.Env = d.Repo, append(os.Environ(), "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", build[0], err, text)
		}
		data, err := os.ReadFile(program)
		if err != nil {
			return nil, err
		}
		root.Add("bench/"+name, 0o755, data)
	}
	return root, nil
}

func (f figures) markdown(qemu, release string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Processes that take turns

Two Go processes on one CPU, a round trip of one message each way: guest instructions,
both processes and the kernel together. %s (TCG, -icount shift=0,sleep=off), the same
static program (bench/ipc/turns) on Hardtack and on Debian's Linux %s, medians (minima) of
seven runs of 2,000 round trips. Instruction counts do not depend on host load. Written by
make bench-ipc.

| | Hardtack | Linux |
| --- | ---: | ---: |
`, qemu, release)
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.title, count(f[r.name][osbench.OnHardtack]), count(f[r.name][osbench.OnLinux]))
	}
	ump, lmp := f["ump"][osbench.OnHardtack].Median, f["lmp"][osbench.OnHardtack].Median
	fmt.Fprintf(&b, `
One way of a call, entry and exit of the kernel and the C program included, is half of
its row: %.0f instructions.

LMP takes %.2f of UMP's instructions here. The stubs, the rings and the order of waits are
the same; a notification replaces the futex.

Go's scheduler is not told of the raw calls; the other calls let other goroutines run
meanwhile (package ipc). The rows of stubs are what programs get by default: ends that wait
on one CPU use LMP on Hardtack, and UMP elsewhere.

![round trips](ipc.svg)
`, f["call-c"][osbench.OnHardtack].Median/2, lmp/ump)
	return b.String()
}

func count(r osbench.Result) string {
	if r.Median == 0 {
		return "—"
	}
	return thousands(r.Median) + " (" + thousands(r.Minimum) + ")"
}

func thousands(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// svg draws each row of Hardtack's against its Unix socket.
func (f figures) svg(name string) error {
	c := chart.Ratios{Title: "Instructions of a round trip / those of a Unix socket, on Hardtack", Unit: "ratio (1 is a Unix socket)"}
	for _, r := range rows {
		if v := f[r.name][osbench.OnHardtack].Median; v != 0 {
			c.Add(r.title, v/f["unix"][osbench.OnHardtack].Median)
		}
	}
	return c.Save(name)
}
