package procfs

import (
	"fmt"
	"runtime"
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/process/proc"
)

// slabinfo shows the kernel's heap, which Go's allocator keeps in size classes as
// Linux's does: what is in use of each. A slab is taken to be full but the last.
func slabinfo(*about) ([]byte, linux.Errno) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b := []byte("slabinfo - version: 2.1\n# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab>" +
		" : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n")
	for i := len(m.BySize) - 1; i > 0; i-- {
		c := &m.BySize[i]
		used := c.Mallocs - c.Frees
		if c.Size == 0 || used == 0 {
			continue
		}
		pages := uint64(2) // a page of Go's
		for pages*mem.PageSize < 4*uint64(c.Size) {
			pages *= 2
		}
		each := pages * mem.PageSize / uint64(c.Size)
		slabs := (used + each - 1) / each
		b = fmt.Appendf(b, "%-17s %6d %6d %6d %4d %4d : tunables %4d %4d %4d : slabdata %6d %6d %6d\n",
			fmt.Sprintf("kmalloc-%d", c.Size), used, slabs*each, c.Size, each, pages, 0, 0, 0, slabs, slabs, 0)
	}
	return b, 0
}

// softirqs is all zeros: what Linux does in software interrupts, goroutines do here.
func softirqs() string {
	n, _ := proc.CPUs.Call()
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", 20))
	for i := range n {
		fmt.Fprintf(&b, "CPU%-8d", i)
	}
	b.WriteByte('\n')
	for _, name := range []string{"HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"} {
		fmt.Fprintf(&b, "%12s:", name)
		b.WriteString(strings.Repeat(fmt.Sprintf(" %10d", 0), n))
		b.WriteByte('\n')
	}
	return b.String()
}
