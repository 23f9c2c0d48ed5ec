package osbench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A DiskBench measures disks behind both controllers that Linux and Hardtack
// drive, in the same QEMU with the same image.
type DiskBench struct {
	Bench
	Drivers    []string // virtio, nvme
	Operations int      // counted in a repetition
	Millis     int      // of a timed row
}

// DiskFigures are driver → row → system → one figure a boot.
type DiskFigures map[string]Times

// DiskRow is a line of a table.
type DiskRow struct{ Name, Title string }

// Rows of the program (guest/disk.c).
var (
	DiskCounts = []DiskRow{
		{"seqread", "read 4 KiB, in order"}, {"randread", "read 4 KiB, at random"},
		{"seqwrite", "write 4 KiB, in order"}, {"randwrite", "write 4 KiB, at random"},
		{"syncwrite", "write 4 KiB, at random, + fdatasync"},
	}
	DiskTimes = []DiskRow{
		{"seqread1", "read 4 KiB in order, one process"}, {"seqread4", "the same, four processes"},
		{"randread1", "read 4 KiB at random, one process"}, {"randread4", "the same, four processes"},
		{"seqwrite1", "write 4 KiB in order, one process"}, {"seqwrite4", "the same, four processes"},
		{"randwrite1", "write 4 KiB at random, one process"}, {"randwrite4", "the same, four processes"},
		{"syncwrite1", "write 4 KiB + fdatasync, one process"}, {"syncwrite4", "the same, four processes"},
		{"cachedwrite", "write through the cache + fsync, MiB/s"}, {"cachedread", "read through the cache, MiB/s"},
	}
)

const diskBytes = 128 << 20

// image makes the disk's file, with content: reading a hole is another thing.
func (b *DiskBench) image() (string, error) {
	file := filepath.Join(b.Dirs.Cache, "disk.img")
	f, err := os.Create(file)
	if err != nil {
		return "", err
	}
	chunk := make([]byte, 1<<20)
	for i := range chunk {
		chunk[i] = byte(i*7 + i>>8)
	}
	for range diskBytes / len(chunk) {
		if _, err = f.Write(chunk); err != nil {
			break
		}
	}
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return file, err
}

// Run boots each system in turn, Reps times, with a command, and collects what
// it prints.
func (b *DiskBench) Run(counting bool) (DiskFigures, error) {
	file, err := b.image()
	if err != nil {
		return nil, err
	}
	defer os.Remove(file)
	all := DiskFigures{}
	for rep := range b.Reps {
		for _, driver := range b.Drivers {
			device := map[string]string{"virtio": "/dev/vda", "nvme": "/dev/nvme0n1"}[driver]
			if device == "" {
				return nil, fmt.Errorf("driver %q: want virtio or nvme", driver)
			}
			command, cpus := fmt.Sprintf("/bench/disk time %s %d\n", device, b.Millis), 2
			if counting {
				command, cpus = fmt.Sprintf("/bench/disk count %s %d\n", device, b.Operations), 1
			}
			root, err := Programs(b.Dirs, command)
			if err != nil {
				return nil, err
			}
			for _, system := range b.Systems {
				b.Log("%v, %s: repetition %d, counting %v", system, driver, rep+1, counting)
				m, err := Boot{OS: system, Root: root, CPUs: cpus, Memory: "512M", ICount: counting, Machine: "q35",
					Disk: file, Driver: driver, Timeout: 5 * time.Minute}.Start(b.Dirs, b.Linux)
				if err != nil {
					return nil, err
				}
				results, err := m.Wait()
				if err != nil {
					b.Log("%v: %v", system, err)
				}
				if all[driver] == nil {
					all[driver] = Times{}
				}
				for _, r := range results {
					if r.Name != "boot" {
						all[driver].add(r.Name, system, r.Median)
					}
				}
			}
		}
	}
	return all, nil
}

// DiskReport is what was measured.
type DiskReport struct {
	Counts, Times DiskFigures
	Drivers       []string
	Linux, QEMU   string
	Cores         float64
	Reps          int
}

// table is rows × drivers: both systems' medians and the ratio.
func (r *DiskReport) table(rows []DiskRow, f DiskFigures, best func([]float64) float64) string {
	var b strings.Builder
	b.WriteString("| |")
	for _, d := range r.Drivers {
		fmt.Fprintf(&b, " %s: Hardtack | Linux | ratio |", d)
	}
	b.WriteString("\n| --- |" + strings.Repeat(" ---: | ---: | ---: |", len(r.Drivers)) + "\n")
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s |", row.Title)
		for _, d := range r.Drivers {
			ours, linux := f[d][row.Name][OnHardtack], f[d][row.Name][OnLinux]
			fmt.Fprintf(&b, " %s (%s) | %s (%s) | %s |", format(Median(ours)), format(best(ours)),
				format(Median(linux)), format(best(linux)), ratio(Median(ours), Median(linux)))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Markdown is docs/bench/disk.md.
func (r *DiskReport) Markdown() string {
	least := func(f []float64) float64 {
		if len(f) == 0 {
			return 0
		}
		return slices.Min(f)
	}
	most := func(f []float64) float64 {
		if len(f) == 0 {
			return 0
		}
		return slices.Max(f)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# Disks

A raw disk through its device file, with O_DIRECT unless stated
otherwise, on Hardtack and on Debian's Linux %s: the same static program
(bench/os/guest/disk.c), the same image, the same QEMU (%s, machine q35, TCG,
512 MiB), in turn. Written by `+"`make bench-disk`"+`; %d boots of each system and driver.
`, r.Linux, r.QEMU, r.Reps)
	if r.Counts != nil {
		b.WriteString(`
## Guest instructions per operation

One CPU that counts instructions (-icount shift=0,sleep=off). A second process
spins meanwhile, and its rounds are subtracted. So a figure includes the system call,
the driver, the interrupt, and the switches to and from the spinner. Medians, with the
lowest of the boots in brackets.

`)
		b.WriteString(r.table(DiskCounts, r.Counts, least))
	}
	if r.Times == nil {
		return b.String()
	}
	fmt.Fprintf(&b, `
## Operations per second

Two CPUs, by the guest's clock. Two threads on the host did %.2f times the work of
one during the measurement; 2 means that both cores were free. Medians, with the
highest of the boots in brackets.

`, r.Cores)
	b.WriteString(r.table(DiskTimes, r.Times, most))
	return b.String()
}
