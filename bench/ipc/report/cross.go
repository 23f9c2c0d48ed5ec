package main

import (
	"fmt"
	"strings"

	osbench "hardtack/bench/os"
)

// crossRows are what bench/ipc/cross prints. Where the names differ the first is
// Hardtack's row and the second Linux's.
var crossRows = []struct{ hardtack, linux, title string }{
	{"call", "call", "call, client and server where the kernel puts them (Linux: on one CPU)"},
	{"call-moved", "call-other", "call to a server that was on the other CPU"},
	{"call-busy", "call-busy", "call to a server that works on the other CPU"},
	{"signal", "signal", "wake one who waits, and go on; the other CPU idles"},
	{"signal-busy", "signal-busy", "the same, the other CPU computes"},
	{"pass", "pass", "wake one who waits, and wait; the other CPU idles"},
	{"pass-busy", "pass-busy", "the same, the other CPU computes"},
	{"pass-one", "", "the same in one call (SignalWait); the other CPU idles"},
	{"pass-one-busy", "", "the same, the other CPU computes"},
}

// crossing is the part of the page about two CPUs.
func (f figures) crossing() string {
	var b strings.Builder
	b.WriteString(`
## On two CPUs

Processes in C (bench/ipc/cross) in a machine with two virtual CPUs: guest instructions
of both CPUs until two processes have met, with all that the kernel does on either, less
the programs' own loops, which are counted. Linux's processes are pinned, client and
server to different CPUs but in the first row, and meet by pipes and eventfds of one
byte and eight; Hardtack's meet by its own calls, and are put where a CPU is free. Of a
hundred meetings so many were of two CPUs, as the processes read it from the processor
(CPUID): "apart". A call is a round trip. Medians of five times 1,000 (signal with both
CPUs busy: 10).

| | Hardtack | apart | Linux | apart |
| --- | ---: | ---: | ---: | ---: |
`)
	for _, r := range crossRows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.title,
			count(f[r.hardtack][osbench.OnHardtack]), f.apart(r.hardtack, osbench.OnHardtack),
			count(f[r.linux][osbench.OnLinux]), f.apart(r.linux, osbench.OnLinux))
	}
	b.WriteString(`
The server of the second row is called by two clients on different CPUs in turns: it comes
to the caller's CPU each time. In the third two clients call all the time, and the server
works for 1,200 instructions, which are not in the figure.
`)
	return b.String()
}

// apart is how many of a hundred meetings of a row were of two CPUs.
func (f figures) apart(row string, system osbench.OS) string {
	if _, measured := f[row][system]; !measured {
		return "—"
	}
	return fmt.Sprintf("%.0f", f[row+".apart"][system].Median)
}
