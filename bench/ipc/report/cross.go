package main

import (
	"fmt"
	"strings"

	osbench "hardtack/bench/os"
)

// crossRows are what bench/ipc/cross prints, and what it means.
var crossRows = []struct{ name, title string }{
	{"call", "call, one client"},
	{"call-moved", "call to a server that was on the other CPU"},
	{"call-busy", "call to a server that is busy on the other CPU"},
	{"signal", "wake a waiting thread, and continue; the other CPU idles"},
	{"signal-busy", "the same, the other CPU computes"},
	{"pass", "wake a waiting thread, and wait, in turn; the other CPU idles"},
	{"pass-busy", "the same, the other CPU computes"},
	{"pass-one", "the same in one call (SignalWait); the other CPU idles"},
	{"pass-one-busy", "the same, the other CPU computes"},
	{"signal-bound", "wake a thread that is bound to the other CPU, and continue"},
	{"pass-bound", "the same, and wait, in turn"},
	{"pass-one-bound", "the same in one call (SignalWait)"},
	{"call-bound", "call to a server that is bound to the other CPU"},
}

// crossing is the part of the page about two CPUs.
func (f figures) crossing() string {
	var b strings.Builder
	b.WriteString(`
## On two CPUs

Processes in C (bench/ipc/cross) in a machine with two virtual CPUs. Figures are guest
instructions of both CPUs per exchange, including all work of the kernel, without the
programs' own loops. The kernel chooses the CPU of each process, except where they are
bound. "Apart" is how many of a
hundred exchanges were between two CPUs, as the processes read it with CPUID. A call is a
round trip, and so is a turn. Medians of five runs of 1,000; 10 where both CPUs compute.

Linux does not boot with two CPUs in a machine that counts instructions. Its column is
one-byte pipes and eventfds on one CPU, which take less than on two.

| | Hardtack | apart | Linux, one CPU |
| --- | ---: | ---: | ---: |
`)
	for _, r := range crossRows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.title,
			count(f[r.name][osbench.OnHardtack]), f.apart(r.name), count(f[r.name][osbench.OnLinux]))
	}
	b.WriteString(`
In the second row, two clients on different CPUs call the server in turn, and it moves to
the caller's CPU each time. In the third, two clients call all the time, and the server
works for 1,200 instructions, which are not counted. Where both CPUs compute, a woken thread
waits for the end of a time slice, which is not counted either. A CPU that stands by for the
next thread spins, and that is counted: while the server works, some 870 instructions.
`)
	return b.String()
}

// apart is how many of a hundred meetings of a row were of two CPUs, on Hardtack.
func (f figures) apart(row string) string {
	return fmt.Sprintf("%.0f", f[row+".apart"][osbench.OnHardtack].Median)
}

// oneOfTwo is the part of the page about stubs of processes that share one of two CPUs.
func (f figures) oneOfTwo() string {
	ump, lmp := f["ump"][osbench.OnHardtack], f["lmp"][osbench.OnHardtack]
	return fmt.Sprintf(`
Two Go processes that are bound to one CPU of two: a round trip of generated stubs takes %s
instructions over UMP, and %s over LMP.
`, thousands(ump.Median), thousands(lmp.Median))
}
