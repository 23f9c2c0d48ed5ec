// Command report counts what the way through the network card costs on Hardtack and on
// Debian's Linux, and writes docs/bench/net.md when both were measured.
//
//	report [-systems linux,hardtack] [-machine microvm] [-cpus 1] [-reps 7] [-only ROW,…] [-json FILE]
//	report -profile DIRECTORY [-only ROW,…] [-seconds 3]
//
// The second form writes a profile of Hardtack's kernel for each row, of so many seconds of
// the guest's. The first does so too for the page's table of layers.
//
// It needs QEMU, gcc, and apt for Debian's kernel and servers.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"hardtack/bench/internal/report"
	netbench "hardtack/bench/net"
	osbench "hardtack/bench/os"
)

func main() { report.Main(run) }

func run() error {
	systems := flag.String("systems", "linux,hardtack", "which kernels")
	machine := flag.String("machine", "microvm", "QEMU's machine: microvm or q35")
	cpus := flag.Int("cpus", 1, "virtual processors")
	reps := flag.Int("reps", 7, "measurements of a row")
	only := flag.String("only", "", "which rows; empty for all")
	kernel := flag.String("kernel", "", "another image of Hardtack")
	dump := flag.String("json", "", "write the figures to this file too")
	profile := flag.String("profile", "", "write profiles of Hardtack's kernel to this directory and measure nothing")
	seconds := flag.Int("seconds", 3, "length of a profile, on the guest's clock")
	flag.Parse()
	if err := report.AtLeastOne("reps", *reps); err != nil {
		return err
	}
	b, qemu, err := osbench.Setup(*systems, report.Log)
	if err != nil {
		return err
	}
	b.Machine, b.Kernel = *machine, *kernel
	c := netbench.Config{Bench: b, Repeats: *reps, CPUs: *cpus}
	if *only != "" {
		c.Only = strings.Split(*only, ",")
	}
	if *profile != "" {
		return c.Profile(*profile, *seconds)
	}
	figures, err := c.Measure()
	if err != nil {
		return err
	}
	if *dump != "" {
		data, err := json.MarshalIndent(figures, "", "\t")
		if err != nil {
			return err
		}
		if err := os.WriteFile(*dump, data, 0o644); err != nil {
			return err
		}
	}
	var shares map[string][]float64
	var two netbench.Figures
	if len(b.Systems) == 2 {
		if two, err = twoCPUs(c); err != nil {
			return err
		}
		if shares, err = layers(&c, *seconds); err != nil {
			return err
		}
	}
	r := netbench.Report{Layers: shares, Two: two, Figures: figures, Linux: b.Linux.Release, Machine: *machine, QEMU: qemu, Repeats: *reps}
	fmt.Println(r.Markdown())
	if len(b.Systems) != 2 || *only != "" {
		return nil
	}
	return os.WriteFile(filepath.Join(b.Dirs.Repo, "docs", "bench", "net.md"), []byte(r.Markdown()), 0o644)
}

// twoCPUs counts the rows that a server is for on two processors.
func twoCPUs(c netbench.Config) (netbench.Figures, error) {
	if len(c.Only) > 0 {
		return nil, nil
	}
	c.CPUs, c.Systems = 2, []osbench.OS{osbench.OnHardtack}
	c.Only = []string{"tcpecho", "redis", "redis16", "nginx", "nginxconn", "nginx32k"}
	return c.Measure()
}

// layers profiles the rows and sums the profiles up.
func layers(c *netbench.Config, seconds int) (map[string][]float64, error) {
	dir, err := os.MkdirTemp(c.Dirs.Cache, "net")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := c.Profile(dir, seconds); err != nil {
		return nil, err
	}
	return netbench.Layers(dir)
}
