package procfs

import (
	"fmt"
	"math/bits"
	"strings"
	"sync"

	"hardtack/kernel/base/clocks"
	"hardtack/kernel/process/proc"
)

// cpuTime is what a processor did since boot, in nanoseconds, and how many turns threads had.
// What it was busy and no thread in user mode is system time: the kernel's own work, too.
type cpuTime struct{ busy, idle, user, waited, turns int64 }

// cpuTimes is the account of all processors. For how long each was idle is exact. Threads do not
// say where they ran in user mode, waited or had their turn: the processors share what they did
// since somebody last asked by how busy they were.
type cpuTimes struct {
	mu   sync.Mutex
	told cpuTime // of all together; busy and idle are not kept
	each [64]cpuTime
}

var cpuAccount cpuTimes

// update brings the times up to date and returns them; one that is off keeps those it had.
func (c *cpuTimes) update(on uint64, now int64, idled func(cpu int) int64, all cpuTime) [64]cpuTime {
	c.mu.Lock()
	defer c.mu.Unlock()
	var busy [64]int64 // since the last time
	sum := int64(0)
	for left := on; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		t := &c.each[i]
		t.idle = max(t.idle, idled(i))
		busy[i] = max(now-t.idle-t.busy, 0)
		t.busy += busy[i]
		sum += busy[i]
	}
	if sum == 0 {
		return c.each
	}
	for left := on; left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		t, part := &c.each[i], float64(busy[i])/float64(sum)
		share := func(to *int64, now, told int64) { *to += int64(part * float64(max(now-told, 0))) }
		share(&t.user, all.user, c.told.user)
		share(&t.waited, all.waited, c.told.waited)
		share(&t.turns, all.turns, c.told.turns)
		t.user = min(t.user, t.busy)
	}
	c.told = cpuTime{user: max(all.user, c.told.user), waited: max(all.waited, c.told.waited), turns: max(all.turns, c.told.turns)}
	return c.each
}

// cpuTimesNow returns what each processor did.
func cpuTimesNow() [64]cpuTime {
	var all cpuTime
	all.user, _ = proc.Totals()
	all.waited, all.turns = proc.Waited(), proc.TotalSwitches()
	return cpuAccount.update(proc.OnlineCPUs(), clocks.Monotonic(), proc.CPUIdled.Call, all)
}

// idle returns for how many nanoseconds processors were idle, all together since boot.
func idle() (n int64) {
	for _, t := range cpuTimesNow() {
		n += t.idle
	}
	return n
}

// cpuLines are those of /proc/stat.
func cpuLines() string {
	each := cpuTimesNow()
	var all cpuTime
	for _, t := range each {
		all.busy, all.idle, all.user = all.busy+t.busy, all.idle+t.idle, all.user+t.user
	}
	var b strings.Builder
	line := func(name string, t cpuTime) {
		fmt.Fprintf(&b, "%s %d 0 %d %d 0 0 0 0 0 0\n", name, ticksOf(t.user), ticksOf(t.busy-t.user), ticksOf(t.idle))
	}
	line("cpu ", all)
	for on := proc.OnlineCPUs(); on != 0; on &= on - 1 {
		i := bits.TrailingZeros64(on)
		line(fmt.Sprintf("cpu%d", i), each[i])
	}
	return b.String()
}

// schedstat tells for how long threads ran and waited on each processor, and how often they had
// their turn.
func schedstat() string {
	each := cpuTimesNow()
	var b strings.Builder
	fmt.Fprintf(&b, "version 15\ntimestamp %d\n", 4294892296+clocks.Monotonic()/4e6)
	for on := proc.OnlineCPUs(); on != 0; on &= on - 1 {
		i := bits.TrailingZeros64(on)
		t := &each[i]
		fmt.Fprintf(&b, "cpu%d 0 0 %d 0 0 0 %d %d %d\n", i, t.turns, t.busy, t.waited, t.turns)
	}
	return b.String()
}
