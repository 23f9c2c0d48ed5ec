package storagebench

import (
	"fmt"
	"slices"
	"strings"

	"hardtack/bench/internal/chart"
	osbench "hardtack/bench/os"
)

// Report is what was measured, for docs/bench/storage.md.
type Report struct {
	Figures     Figures
	Config      Config
	Linux, QEMU string
}

// medians of a row.
func (r *Report) medians(name string) (ours, linux float64) {
	t := r.Figures[name]
	return osbench.Median(t["median"][osbench.OnHardtack]), osbench.Median(t["median"][osbench.OnLinux])
}

// best of a row: the least of counts, the most of rates.
func (r *Report) best(name string, least bool) (ours, linux float64) {
	pick := func(system osbench.OS) float64 {
		list := r.Figures[name]["minimum"][system]
		if len(list) == 0 {
			return 0
		}
		if least {
			return slices.Min(list)
		}
		return slices.Max(list)
	}
	return pick(osbench.OnHardtack), pick(osbench.OnLinux)
}

func number(x float64) string {
	switch {
	case x == 0:
		return "—"
	case x < 100:
		return fmt.Sprintf("%.2f", x)
	}
	s := fmt.Sprintf("%.0f", x)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func ratio(a, b float64) string {
	if a == 0 || b == 0 {
		return "—"
	}
	return fmt.Sprintf("%.2f", a/b)
}

// table has both systems' medians, in brackets the best, and the ratio.
func (r *Report) table(b *strings.Builder, prefix string, rows []Row, least bool) {
	b.WriteString("| | Hardtack | Linux | ratio |\n| --- | ---: | ---: | ---: |\n")
	for _, row := range rows {
		ours, linux := r.medians(prefix + row.Name)
		x, y := r.best(prefix+row.Name, least)
		fmt.Fprintf(b, "| %s | %s (%s) | %s (%s) | %s |\n", row.Title, number(ours), number(x), number(linux), number(y), ratio(ours, linux))
	}
}

// host tells what the host could do while a part was timed.
func (r *Report) host(part string) string {
	cores, _ := r.medians(hostRow + part)
	if cores == 0 {
		return ""
	}
	s := fmt.Sprintf("\nBefore and after, two threads on the host did %.2f times the work of one (the lower value;\n2 means that both cores were free).", cores)
	if cores < 1.8 {
		s += " **The host was busy: these figures\nare unreliable.**"
	}
	return s
}

func (r *Report) has(prefix string, rows []Row) bool {
	return slices.ContainsFunc(rows, func(x Row) bool { return r.Figures[prefix+x.Name] != nil })
}

// Markdown is docs/bench/storage.md.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Files on disk

ext4 on Hardtack and on Debian's Linux %s: the same static programs, the same QEMU
(%s, machine q35, TCG, 768 MiB), in turn, each boot with a new file system of 1 GiB
made by `+"`ext4`"+`, default mount options. Written by `+"`make bench-storage`"+`. Times
vary with host load; counted instructions do not.
`, r.Linux, r.QEMU)
	if r.has("", CountRows) {
		fmt.Fprintf(&b, `
## Guest instructions per operation

One CPU that counts instructions (-icount shift=0,sleep=off), virtio-blk. A second
process spins meanwhile. Its rounds are subtracted, so a figure includes all work of the
kernel, in any thread. Medians of five runs of %d operations or more, with the
minimum in brackets. A ratio below 1 is less than Linux.

`, r.Config.Operations)
		r.table(&b, "", CountRows, true)
	}
	if r.has("", NameRows) {
		fmt.Fprintf(&b, "\nA directory of %s names, instructions per name:\n\n", number(float64(r.Config.Names)))
		r.table(&b, "", NameRows, true)
	}
	r.walks(&b)
	for _, d := range []string{"virtio/", "nvme/"} {
		if r.has(d, TimeRows) {
			fmt.Fprintf(&b, "\n## Rates on %s\n\nTwo CPUs, by the guest's clock; a file of 32 MiB. Medians of %d boots, with the best in\nbrackets. A ratio above 1 is faster than Linux.%s\n\n", DriverTitle(d), r.Config.Reps, r.host("times"))
			r.table(&b, d, TimeRows, false)
		}
	}
	if r.has("ahci/", TimeRows) {
		b.WriteString("\n## Rates on AHCI\n\nDebian's cloud kernel has no AHCI driver, so these figures are compared with virtio-blk on\nHardtack.\n\n| | AHCI | virtio-blk | ratio |\n| --- | ---: | ---: | ---: |\n")
		for _, row := range TimeRows {
			ahci, _ := r.medians("ahci/" + row.Name)
			virtio, _ := r.medians("virtio/" + row.Name)
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", row.Title, number(ahci), number(virtio), ratio(ahci, virtio))
		}
	}
	r.share(&b)
	r.cmail(&b)
	r.levelDB(&b)
	return b.String()
}

// share is the table of fsyncs that share commits.
func (r *Report) share(b *strings.Builder) {
	if r.Figures["virtio/share1"] == nil {
		return
	}
	b.WriteString("\n## Shared commits\n\nFiles of 1 KiB created and synced per second, each process in its own directory." + r.host("times") + "\n\n| | one process | eight | eight / one |\n| --- | ---: | ---: | ---: |\n")
	for _, d := range []string{"virtio/", "nvme/"} {
		o1, l1 := r.medians(d + "share1")
		o8, l8 := r.medians(d + "share8")
		fmt.Fprintf(b, "| %s, Hardtack | %s | %s | %s |\n", DriverTitle(d), number(o1), number(o8), ratio(o8, o1))
		fmt.Fprintf(b, "| %s, Linux | %s | %s | %s |\n", DriverTitle(d), number(l1), number(l8), ratio(l8, l1))
	}
}

// walks is the table of look-ups with and without locks.
func (r *Report) walks(b *strings.Builder) {
	if r.Figures["walk/free1"] == nil {
		return
	}
	fmt.Fprintf(b, `
## Names without a lock

Cutler, Kaashoek and Morris (*The benefits and costs of writing a POSIX kernel in a
high-level language*) found their lock-free name cache 11 %% faster than one with read
locks. Here, a walk of a path with %d names in the kernel's tree of names is compared with
the same walk taking a sync.RWMutex shared in each directory. Nanoseconds of processor
time per walk on the host, in turn; medians of %d rounds, with the minimum in brackets.
The ratio is the cost of the locks; with two threads it shows only if both cores are free.

| | without a lock | read-locked | ratio |
| --- | ---: | ---: | ---: |
`, walkDepth, walkRounds)
	for threads, title := range []string{"one thread", "two threads, the same path"} {
		free, locked := fmt.Sprintf("walk/free%d", threads+1), fmt.Sprintf("walk/locked%d", threads+1)
		x, _ := r.medians(free)
		y, _ := r.medians(locked)
		bx, _ := r.best(free, true)
		by, _ := r.best(locked, true)
		fmt.Fprintf(b, "| %s | %s (%s) | %s (%s) | %s |\n", title, number(x), number(bx), number(y), number(by), ratio(y, x))
	}
}

func (r *Report) cmail(b *strings.Builder) {
	if r.Figures["memory/cmail"] == nil && r.Figures["count/cmail"] == nil {
		return
	}
	b.WriteString(`
## CMailbench

The mail server benchmark of the same paper: four servers, four clients, and for each
message two forks, execs and renames (bench/storage/guest/cmail.c). Every message is
synced; in memory (tmpfs) that costs nothing.` + r.host("cmail") + `

| | Hardtack | Linux | ratio |
| --- | ---: | ---: | ---: |
`)
	for _, row := range []Row{{"memory/cmail", "messages/s in memory, two CPUs"}, {"disk/cmail", "messages/s on disk, two CPUs"},
		{"count/cmail", "instructions per message in memory, one CPU"}} {
		ours, linux := r.medians(row.Name)
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", row.Title, number(ours), number(linux), ratio(ours, linux))
	}
}

func (r *Report) levelDB(b *strings.Builder) {
	found := false
	for _, l := range LevelDB {
		found = found || r.Figures[l.Name+"/fillseq"] != nil
	}
	if !found {
		return
	}
	b.WriteString(`
## goleveldb

The suites of figures 4.3 to 4.7 of the thesis *Porting Go to the Barrelfish OS*, with
goleveldb, one goroutine, GOMAXPROCS 1. The thesis has 1,000,000 pairs per suite, which
` + "`make bench-storage ENTRIES=1000000`" + ` measures in hours, in machines with 4 GiB of
memory.

The figures are microseconds per operation: the mean and the 99th percentile (batchwrite:
of a batch of 1,000). One CPU counts instructions, 1,000 per microsecond, so the figures do
not depend on the host. Time spent waiting for the disk does not count. Time that passes
while everything sleeps until a timer does count: a few such waits can raise the mean and
leave the percentile unchanged. One run of each. The ratio is Linux's mean divided by ours:
above 1 is faster than Linux.
`)
	for _, l := range LevelDB {
		if r.Figures[l.Name+"/fillseq"] == nil {
			continue
		}
		pairs, _ := r.medians(l.Name + "/pairs")
		fmt.Fprintf(b, "\n%s, %s pairs:\n\n| | Hardtack | p99 | Linux | p99 | ratio |\n| --- | ---: | ---: | ---: | ---: | ---: |\n", strings.ToUpper(l.Title[:1])+l.Title[1:], number(pairs))
		for _, s := range Suites {
			ours, linux := r.medians(l.Name + "/" + s)
			x, y := r.best(l.Name+"/"+s, true)
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", s, number(ours), number(x), number(linux), number(y), ratio(linux, ours))
		}
	}
}

// SVG draws the ratios of the counted rows: shorter than Linux's line is better.
func (r *Report) SVG(name string) error {
	c := chart.Ratios{Title: "Guest instructions on ext4, Hardtack / Linux", Unit: "ratio (1 is Linux)"}
	for _, row := range slices.Concat(CountRows, NameRows) {
		if ours, linux := r.medians(row.Name); ours != 0 && linux != 0 {
			c.Add(row.Title, ours/linux)
		}
	}
	return c.Save(name)
}
