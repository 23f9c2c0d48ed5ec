package osbench

import (
	"fmt"
	"slices"
	"strings"
)

// A Report is all that was measured.
type Report struct {
	Instructions Instructions
	Times        Times
	Linux        string // its release
	Machine      string
	Cores        float64
	QEMU         string
}

// verdict compares a figure with its goals, and its excess with Linux.
func verdict(ours float64, row Row) string {
	switch {
	case ours == 0:
		return "not measured"
	case ours <= row.Then:
		return "reached both"
	case ours <= row.Must:
		return "reached"
	}
	return fmt.Sprintf("missed by %.0f %%", (ours/row.Must-1)*100)
}

// ratio is ours against Linux's.
func ratio(ours, linux float64) string {
	if ours == 0 || linux == 0 {
		return "—"
	}
	return fmt.Sprintf("%.2f", ours/linux)
}

// Table is the goals' table with what was measured.
func (r *Report) Table() string {
	var b strings.Builder
	b.WriteString("| operation | Hardtack | Linux | ratio | goal | second goal | |\n| --- | ---: | ---: | ---: | ---: | ---: | --- |\n")
	for _, row := range Rows {
		figures := r.Instructions[row.Name]
		ours, linux := figures[OnHardtack].Median, figures[OnLinux].Median
		fmt.Fprintf(&b, "| %s | %s | %s | %s | ≤ %s | ≤ %s | %s |\n", row.Title, format(ours), format(linux),
			ratio(ours, linux), format(row.Must), format(row.Then), verdict(ours, row))
	}
	return b.String()
}

// A timeRow is a line of the second table. higher says which way is better.
type timeRow struct {
	name, title, goal string
	higher            bool
	reached           func(ours, linux float64) bool
}

func (r *Report) timeRows() []timeRow {
	atLeastLinux := func(ours, linux float64) bool { return linux > 0 && ours >= linux }
	rows := []timeRow{}
	for _, l := range Loads {
		rows = append(rows, timeRow{l.Name, l.Title, "≥ 1.0 × Linux", true, atLeastLinux},
			timeRow{l.Name + " guest", "· processor time of the guest, µs per request", "", false, nil},
			timeRow{l.Name + " devices", "· processor time of QEMU's devices and network, µs per request", "", false, nil})
	}
	return append(rows,
		timeRow{"scaling", "two processes on two CPUs, relative to one after the other", "≤ 0.55", false,
			func(ours, _ float64) bool { return ours <= 0.55 }},
		timeRow{"counted delay", "worst delay of a 1 ms sleep beside a spinner, ms of counted time", "≤ 10", false,
			func(ours, _ float64) bool { return ours <= 10 }},
		timeRow{"delay", "the same by wall-clock time, host load included", "", false, nil},
		timeRow{"boottime", "QEMU's start to the first user instruction, ms", "", false, nil})
}

// scaling is the time of two processes on two CPUs against twice that of one:
// what the same work takes with two CPUs instead of one.
func scaling(times Times, system OS) float64 {
	one, two := Median(times["spin1"][system]), Median(times["spin2"][system])
	if one == 0 {
		return 0
	}
	return two / (2 * one)
}

// TimesTable is the table of what wall-clock time showed: medians, and in brackets
// the range of what they are the medians of.
func (r *Report) TimesTable() string {
	var b strings.Builder
	b.WriteString("| | Hardtack | Linux | ratio | goal | |\n| --- | ---: | ---: | ---: | --- | --- |\n")
	for _, row := range r.timeRows() {
		ours, linux := Median(r.Times[row.name][OnHardtack]), Median(r.Times[row.name][OnLinux])
		switch row.name {
		case "scaling":
			ours, linux = scaling(r.Times, OnHardtack), scaling(r.Times, OnLinux)
		case "counted delay": // the rows' third column is the worst
			d := r.Instructions["delay"]
			ours, linux = d[OnHardtack].Minimum, d[OnLinux].Minimum
		}
		result := ""
		switch {
		case ours == 0 || row.higher && linux == 0:
			result = "not measured"
		case row.reached != nil && row.reached(ours, linux):
			result = "reached"
		case row.reached != nil:
			result = "missed"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", row.title, format(ours)+r.spread(row.name, OnHardtack),
			format(linux)+r.spread(row.name, OnLinux), ratio(ours, linux), row.goal, result)
	}
	return b.String()
}

// spread is the least and the most of a row that was timed more than once.
func (r *Report) spread(name string, system OS) string {
	v := r.Times[name][system]
	if len(v) < 2 {
		return ""
	}
	return fmt.Sprintf(" (%s–%s)", format(slices.Min(v)), format(slices.Max(v)))
}

// Markdown is the page docs/bench/os.md.
func (r *Report) Markdown() string {
	return fmt.Sprintf(`# Hardtack against Linux

Written by `+"`make bench`"+` (bench/os). The two kernels run the same static programs, the same redis-server and nginx, in the same QEMU (%s, machine %s, TCG) with the same flags.

## Instructions

Guest instructions per operation on one CPU, counted with `+"`-icount shift=0,sleep=off`"+`: one nanosecond of guest time is one instruction. Medians of five runs, which agree within a few tenths of a percent. Linux is Debian's %s with its defaults; the CPU has no fast string instructions (`+"`-cpu "+cpuModel+"`"+`), files are on a tmpfs. Server rows count the whole machine: client, kernel and server.

%s
![ratios](os.svg)

fork, exec: osbench forks itself, a static program of about 700 KiB. The goals were set with a smaller program, for which Linux took 106,000 and 207,000.

## Times

Medians on one CPU (two for the scaling row), with the least and the most in brackets; the two kernels in turn, a second each. The clients are on the host and reach the guest through QEMU's user network, each through its own port. (QEMU listens with a backlog of one: clients that connect to the same port at the same time wait one or more seconds for a retransmitted SYN.) Rates vary with host load. Processor time varies less: that of the thread that runs the guest, and that of QEMU's main thread, which is the network card and the user network. Two spinning threads did %.2f times the work of one during the measurement: these figures are noisy.

%s`, r.QEMU, r.Machine, r.Linux, r.Table(), r.Cores, r.TimesTable())
}
