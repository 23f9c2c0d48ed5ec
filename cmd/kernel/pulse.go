package main

import (
	"hardtack/kernel/process/proc"
	"hardtack/nucleus"
)

// pulse watches over the processors of a cluster: one that takes no interrupt any more is in
// code that never enables them, and will not come back. An idle one is awake to them, and one in user
// mode has a timer, so only one that runs the kernel all the while is sent a message.
type pulse struct {
	seen  [64]uint64 // interrupts that a processor had served
	since [64]int64  // when that changed last
}

// probePeriod is how often a processor is looked at, in nanoseconds.
const probePeriod = 1e9

// look looks at all processors; it returns the number of one that has taken no interrupt for
// as long as a cluster may be silent, or -1.
func (p *pulse) look(now int64) int {
	idle := nucleus.IdleCPUs()
	for cpu := range nucleus.NumCPU() {
		n := nucleus.CPUInterrupts(cpu)
		switch {
		case n != p.seen[cpu] || p.since[cpu] == 0 || idle>>cpu&1 != 0 || !proc.Online(cpu):
			p.seen[cpu], p.since[cpu] = n, now
		case now-p.since[cpu] > int64(silence):
			return cpu
		default:
			nucleus.ProbeCPU(cpu)
		}
	}
	return -1
}
