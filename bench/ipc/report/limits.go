package main

import (
	"fmt"
	"strings"

	osbench "hardtack/bench/os"
)

// limitRows are those of bench/ipc/turns/limits.go.
var limitRows = []struct{ name, title string }{
	{"call-clock", "call and reply, 8 B, without a time limit, with the clock read on both sides"},
	{"call-limit", "the same, the caller waits at most a second"},
	{"call-limits", "the same, both wait at most a second"},
	{"call-512", "call and reply, 512 B each"},
	{"call-512-limits", "the same, both wait at most a second"},
	{"pipe-512", "pipe, 512 B each way"},
	{"unix-512", "Unix socket, 512 B each way"},
	{"call-fd", "call with a descriptor, which the server closes, and reply"},
	{"unix-fd", "Unix socket, SCM_RIGHTS, and reply"},
}

// limits is the page's part on what a call may have beside a short message.
func (f figures) limits() string {
	var b strings.Builder
	b.WriteString(`
## Time limits, long messages, descriptors

The same, raw calls.

| | Hardtack | Linux |
| --- | ---: | ---: |
`)
	for _, r := range limitRows {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.title, count(f[r.name][osbench.OnHardtack]), count(f[r.name][osbench.OnLinux]))
	}
	of := func(name string) float64 { return f[name][osbench.OnHardtack].Median }
	fmt.Fprintf(&b, `
Calls with a time limit on both sides take %.2f of the instructions of calls without.
Messages of more than 48 bytes or with descriptors leave user mode: goroutines pack and
unpack them. They take %.2f of a Unix socket's instructions for 512 bytes, and %.2f for a descriptor.
`, of("call-limits")/of("call-clock"), of("call-512")/of("unix-512"), of("call-fd")/of("unix-fd"))
	return b.String()
}
