package netbench

import (
	"fmt"
	"math"
	"slices"
	"strings"

	osbench "hardtack/bench/os"
)

// Report is what was measured, for docs/bench/net.md.
type Report struct {
	Figures              Figures
	Linux, Machine, QEMU string
	Repeats              int
	Layers               map[string][]float64 // row → shares of the kernel's instructions
	Two                  Figures              // some rows on two processors, of Hardtack
}

// cell is a row's median with its least and most, and the median.
func (f Figures) cell(row string, system osbench.OS) (string, float64) {
	per := slices.Sorted(slices.Values(f[row][system.String()]))
	if len(per) == 0 {
		return "—", 0
	}
	m := per[len(per)/2]
	return fmt.Sprintf("%s (%s–%s)", number(m), number(per[0]), number(per[len(per)-1])), m
}

func number(f float64) string {
	s := fmt.Sprintf("%.0f", f)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Markdown is the page.
func (r *Report) Markdown() string {
	b := new(strings.Builder)
	fmt.Fprintf(b, `# Through the network card

What packets, connections and requests from outside cost, on Hardtack and on Debian's
Linux %s: the same programs, the same QEMU (%s, machine %s, TCG, 512 MiB), in turn.
Written by `+"`make bench-net`"+`.

Guest instructions per operation, on one CPU that counts them (-icount
shift=0,sleep=off), with a virtio network card. A second process spins meanwhile, and its
rounds are subtracted, so a figure includes all work of the kernel and of the server.
Medians of %d measurements in one boot, with the least and the most in brackets. A ratio
below 1 is less than Linux.

The client is not a kernel: the command that writes this page holds the other end of the
cable and exchanges Ethernet frames with QEMU (`+"`-netdev stream`"+`). It sends what Linux's TCP
would send: timestamps, acknowledgements with the next segment or for the second full
one. Clients that are several send their requests at once and wait for all answers. This
backend of QEMU offers no checksums and no segmentation, as its user network does not:
either kernel computes them itself.

| | Hardtack | Linux | ratio |
| --- | ---: | ---: | ---: |
`, r.Linux, r.QEMU, r.Machine, r.Repeats)
	logs, n := 0.0, 0
	for _, row := range Rows {
		ours, x := r.Figures.cell(row.Name, osbench.OnHardtack)
		linux, y := r.Figures.cell(row.Name, osbench.OnLinux)
		ratio := "—"
		if x > 0 && y > 0 {
			ratio = fmt.Sprintf("%.2f", x/y)
			logs += math.Log(x / y)
			n++
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", row.Title, ours, linux, ratio)
	}
	if n > 0 {
		fmt.Fprintf(b, "\nThe ratios' geometric mean is %.2f.\n", math.Exp(logs/float64(n)))
	}
	b.WriteString(r.twoTable())
	b.WriteString(layersTable(r.Layers))
	return b.String()
}

// twoTable is the part of the page that compares two processors with one.
func (r *Report) twoTable() string {
	if len(r.Two) == 0 {
		return ""
	}
	b := new(strings.Builder)
	b.WriteString(`
## Two processors

The same counted on two processors, all instructions of both: the spinner has one of them nearly
always. The card has one queue, as this backend gives no more.

| | one | two | ratio |
| --- | ---: | ---: | ---: |
`)
	for _, row := range Rows {
		if two, y := r.Two.cell(row.Name, osbench.OnHardtack); y > 0 {
			one, x := r.Figures.cell(row.Name, osbench.OnHardtack)
			fmt.Fprintf(b, "| %s | %s | %s | %.2f |\n", row.Title, one, two, y/x)
		}
	}
	return b.String()
}
