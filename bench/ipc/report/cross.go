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
	{"call-busy", "call to a server that works on the other CPU"},
	{"signal", "wake one who waits, and go on; the other CPU idles"},
	{"signal-busy", "the same, the other CPU computes"},
	{"pass", "wake one who waits, and wait, each in turn; the other CPU idles"},
	{"pass-busy", "the same, the other CPU computes"},
	{"pass-one", "the same in one call (SignalWait); the other CPU idles"},
	{"pass-one-busy", "the same, the other CPU computes"},
}

// crossing is the part of the page about two CPUs.
func (f figures) crossing() string {
	var b strings.Builder
	b.WriteString(`
## On two CPUs

Processes in C (bench/ipc/cross) in a machine with two virtual CPUs: guest instructions
of both CPUs until two processes have met, with all that the kernel does on either, less
the programs' own loops, which are counted. Each process is where the kernel found a CPU
free. Of a hundred meetings so many were of two CPUs ("apart"), as the processes read it
from the processor (CPUID). A call is a round trip, and so is a turn of those who pass.
Medians of five times 1,000; of the row where both CPUs compute, 10.

Linux does not come up with two CPUs in a machine that counts instructions: its column
is pipes of one byte and eventfds on one CPU, which is less than what it takes on two.

| | Hardtack | apart | Linux, one CPU |
| --- | ---: | ---: | ---: |
`)
	for _, r := range crossRows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.title,
			count(f[r.name][osbench.OnHardtack]), f.apart(r.name), count(f[r.name][osbench.OnLinux]))
	}
	b.WriteString(`
The server of the second row is called by two clients on different CPUs in turns: it comes
to the caller's CPU each time. In the third two clients call all the time, and the server
works for 1,200 instructions, which are not in the figure. Where both CPUs compute, who
is woken waits for the end of a time slice, which is not in the figure either.
`)
	return b.String()
}

// apart is how many of a hundred meetings of a row were of two CPUs, on Hardtack.
func (f figures) apart(row string) string {
	return fmt.Sprintf("%.0f", f[row+".apart"][osbench.OnHardtack].Median)
}
