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
`+"`make bench-operate`"+`. The host's load was %s after the starts, %s after the
copies and %s after the files; times of a busy host are longer, and the least is closest to an idle one.
Where the load has a star, QEMU and the commands had real-time priority, and so next to no time was
taken from them.

| | Hardtack | Linux |
| --- | ---: | ---: |
| an empty image, to the first line of init | %s | %s |
| Redis from an archive, to the first PONG | %s | %s |
| Redis by `+"`hardtack fork`"+` of a snapshot, until the command returns | %s | |
| the same, to the first PONG | %s | |
| Redis from an ext4 disk (virtio-blk), to the first PONG | %s | %s |
| the first machine stands still while it is saved | %s | |
| private memory of a copy's QEMU that nobody has asked anything, MiB | %s | |
| the same after its first PONG | %s | |
| of that the copy's own pages of the machine's memory | %s | |
| of that code that QEMU translated (TCG) | %s | |
| `+"`hardtack exec`"+` of redis-server --version, dynamically linked | %s | |
| 50 copies one after the other, until each has answered a GET, a SET and a GET; once | %s | |
| memory of the host that the 50 take then, with their commands, MiB (what they share counts once) | %s | |
| processor time of the 50 when nobody asks, %% of one processor | %s | |

From an archive Redis is started by a process 1 that sets the machine up, and the archive of 20 MB is unpacked;
from a disk Redis is Hardtack's process 1, and Linux's chroot on the disk. The 50 copies' time when nobody
asks was not taken apart; Redis has timers of its own, ten a second in each.

The goals for an idle host were 20 ms of standing still, 100 ms to the first reply of a copy, 12 MiB
of private memory in an idle copy, 50 copies on two processors and 8 GiB, and no random bytes twice in
1,000 copies. The second and the third are missed. `+"`TestCopies`"+` with HARDTACK_COPIES=1000 was run once:
no two of the 1,000 copies had the same random bytes, host name, boot ID or machine ID.

Without priority, with nothing else on the host (load 2.6), nine copies gave their first reply after 142 ms
[126 … 171], the command returned after 86 [80 … 107], and 50 copies took 11.8 s.

The rest of this part was found once by hand. The first reply is late, and memory private, because of the
emulator. With real-time priority, medians of 12 copies: QEMU is started after 12 ms, has the state 29 ms
later, the copy's programs go on 28 ms after that, and the reply comes 49 ms after the command has
returned, 122 ms in all. In another series it was 128 ms, in turns with copies of the kernel before, which took
147: it renewed its files and the host's port one after the other with the rest, and the router and the copy
asked for each other's address when somebody connected. What is left is QEMU: 25 ms for its own start,
and of 180 ms of its processor time most for the translation of some 100,000 instructions of the guest
that run for the first time, 108 bytes each. No waiting was found between packets, nor in the command. Besides translated code,
QEMU's heap and the libraries that it relocates are 14 MiB. One arena for malloc, without caches of
threads, saves 0.4 MiB of them; a limit of 8 MiB for translated code saves some 3 MiB, and some is
translated twice. Fewer devices save 1 ms of QEMU's start. Debian's QEMU for microvm
alone is linked to fewer libraries, but has neither TCG nor a user network.
`, qemu, b.Linux.Release, b.load("starts"), b.load("copies"), b.load("folders"),
		b.cell("starts empty Hardtack"), b.cell("starts empty Linux"), b.cell("starts redis Hardtack"), b.cell("starts redis Linux"),
		b.cell("copies fork"), b.cell("copies reply"), b.cell("starts disk Hardtack"), b.cell("starts disk Linux"), b.cell("copies pause"),
		b.cell("copies idle"), b.cell("copies private"), b.cell("copies guest"), b.cell("copies code"), b.cell("copies exec"),
		b.figure("copies many start"), b.figure("copies many memory"), b.figure("copies many idle"))
	p.WriteString(lookingText)
	b.lookingTable(&p)
	p.WriteString(others)
	p.WriteString(foldersText)
	b.folderTable(&p)
	p.WriteString(foldersEnd)
	return p.Bytes()
}

// load is the host's load at the end of a part, with a star if the part had real-time priority.
func (b *bench) load(part string) string {
	v := b.rows[part+" load"]
	if len(v) == 0 {
		return "?"
	}
	star := ""
	if len(b.rows[part+" realtime"]) > 0 {
		star = "*"
	}
	return strconv.FormatFloat(v[0], 'f', 1, 64) + star
}

const lookingText = `
## What looking in costs

Instructions of the guest a call, on one CPU with -icount, while ` + "`hardtack trace`" + ` of another process
is open and while none is. While ` + "`--metrics`" + ` was read every second they did not
differ by more than one instruction (counted once by hand).
`

const others = `
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
kernel has no 9P. Both ask for 128 KiB a request. Instructions of the guest for an operation, counted
with QEMU's -icount beside a process that spins, whose share is subtracted:
`

const foldersEnd = `
With cache=none Hardtack copies a MiB once between the request's memory and the program's, where
Linux gives the device the program's pages. That, and asking for each 128 KiB, is its cost.
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
