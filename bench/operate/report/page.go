package main

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"hardtack/bench/internal/report"
)

func (b *bench) page(qemu string) []byte {
	var p bytes.Buffer
	fmt.Fprintf(&p, `# Starting, copying and entering machines

Milliseconds on the host's clock: the median, with the least and the most in brackets. %s,
microvm, TCG, 2 CPUs, 256 MiB; Linux is Debian's %s with the same programs. Written by
`+"`make bench-operate`"+`. The host's load was %s after the starts, %s after
the copies and %s after the files; times of a busy host are longer, and the least is closest to an
idle one.

| | Hardtack | Linux |
| --- | ---: | ---: |
| an empty image, to the first line of init | %s | %s |
| Redis from an archive, to the first PONG | %s | %s |
| Redis by `+"`hardtack fork`"+` of a snapshot, until the command returns | %s | |
| the same, to the first PONG | %s | |
| the first machine stands still while it is saved | %s | |
| private memory of a copy's QEMU after its first PONG, MiB | %s | |
| of that the copy's own pages of the machine's memory | %s | |
| of that code that QEMU translated (TCG) | %s | |
| `+"`hardtack exec`"+` of redis-server --version, dynamically linked | %s | |

The goals for an idle host were 20 ms of standing still, 100 ms to the first reply of a copy and
12 MiB of private memory. The last is missed because of the emulator: besides translated code,
QEMU's own heap and the libraries that it relocates are 14 MiB, and a copy writes to less than
2 MiB of the machine's memory.
`, qemu, b.Linux.Release, b.load("starts"), b.load("copies"), b.load("folders"),
		b.cell("starts empty Hardtack"), b.cell("starts empty Linux"), b.cell("starts redis Hardtack"), b.cell("starts redis Linux"),
		b.cell("copies fork"), b.cell("copies reply"), b.cell("copies pause"), b.cell("copies private"), b.cell("copies guest"), b.cell("copies code"), b.cell("copies exec"))
	p.WriteString(byHand)
	p.WriteString(foldersText)
	b.folderTable(&p)
	return p.Bytes()
}

// load is the host's load at the end of a part.
func (b *bench) load(part string) string {
	if v := b.rows[part+" load"]; len(v) > 0 {
		return strconv.FormatFloat(v[0], 'f', 1, 64)
	}
	return "?"
}

// byHand is what no program here measures.
const byHand = `
## What looking in costs

Instructions of the guest a call, on one CPU with -icount, counted once by hand beside
` + "`hardtack trace`" + ` of another process and while ` + "`--metrics`" + ` is read every second: getpid 254 without,
274 with a trace, 254 with metrics; read 1,413, 1,433, 1,413; write 1,474, 1,493, 1,473; open and
close 2,632, 2,671, 2,631. A trace costs the others some 20 instructions a call: below 2 % of calls
that do something, and 7.8 % of getpid, where the goal was 5 %.

## Others, from their documents

Not measured here, and on other hosts, with KVM: Firecracker promises 125 ms at most from its API
call to the start of the guest's init, on a bare-metal host with a minimal kernel and no serial
console, and at most 5 MiB of memory beside the guest's (its SPECIFICATION.md). gVisor's
performance guide shows starts and memory as charts without figures, and says that most of the time of
a start is docker's.
`

const foldersText = `
## Files of the host

A folder of the host by 9P, and a disk with ext4 by virtio-blk: the same program
(bench/operate/guest/folder.c), 1 CPU, 512 MiB. Linux is Debian's linux-image-amd64, since the cloud
kernel has no 9P. It asks for 128 KiB a request, Hardtack for 64. Instructions of the guest for an
operation, counted with QEMU's -icount beside a process that spins, whose share is subtracted:
`

// figure is a row's median for a table of many.
func (b *bench) figure(row string) string {
	v := b.rows[row]
	if len(v) == 0 {
		return "—"
	}
	return strconv.FormatFloat(report.Median(v), 'f', 0, 64)
}

func (b *bench) cell(row string) string {
	v := b.rows[row]
	if len(v) == 0 {
		return "?"
	}
	return fmt.Sprintf("%.0f [%.0f … %.0f]", report.Median(v), slices.Min(v), slices.Max(v))
}
