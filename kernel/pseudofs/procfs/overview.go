package procfs

import (
	"fmt"

	"hardtack/kernel/process/proc"
)

// ProcessesText is all processes at once, for those who watch the machine: for each a line
// with its number, its parent's, its user, its state, the number of its threads, its user and
// system time in ticks of a hundredth of a second, its memory in KiB and its name, quoted.
func ProcessesText() (b []byte) {
	proc.Each(func(p *proc.Process) bool {
		x := &about{p: p}
		f := factsOf(x)
		b = fmt.Appendf(b, "%d %d %d %c %d %d %d %d %q\n", p.PID, p.PPID(), f.cred.UID, f.state, f.threads,
			ticksOf(f.user), ticksOf(f.sys), f.mem.RSS>>10, f.name)
		return true
	})
	return b
}
