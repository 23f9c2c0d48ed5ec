package procfs

import (
	"fmt"
	"math"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/process/proc"
)

// The files of /proc/pressure. Waiting for disks and for memory is measured where it
// happens. Of the CPUs it is known for how long threads waited for their turn, all
// together: that, but at most the time that passed, is what is told. "full" is the part
// of "some" in which a CPU could have been idle. Averages are worked out when somebody
// asks, as those of the load are.

// stall is a line of a file.
type stall struct {
	raw, total int64 // nanoseconds
	avg        [3]float64
}

// pressure is one of the files.
type pressure struct {
	waited func() int64 // nanoseconds since boot
	full   bool         // there is a figure for it

	mu         sync.Mutex
	last, idle int64 // when it was looked at, and idle then; guarded by mu
	some, all  stall // guarded by mu
}

// pressureGrain is the least time between two samples (Linux's is 2 s).
const pressureGrain = 1e9

var pressureDir = &entry{name: "pressure", mode: 0o555, kids: []*entry{
	pressureFile("io", &pressure{full: true, waited: func() int64 {
		n, _ := DiskWait.Call()
		return n
	}}),
	pressureFile("cpu", &pressure{waited: proc.Waited}),
	pressureFile("memory", &pressure{full: true, waited: func() int64 {
		n, _ := mem.Stalled.Total()
		return n
	}}),
}}

func pressureFile(name string, p *pressure) *entry {
	return &entry{name: name, mode: 0o666, read: p.read,
		write: func(*about, []byte) linux.Errno { return linux.EOPNOTSUPP }} // triggers
}

func (p *pressure) read(*about) ([]byte, linux.Errno) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.update(clocks.Monotonic(), p.waited(), idle())
	return p.all.line(p.some.line(nil, "some"), "full"), 0
}

// update takes a sample: the time, and since boot the waiting and the idleness.
func (p *pressure) update(now, waited, idle int64) {
	if p.last == 0 {
		p.last = bootTime
	}
	passed := now - p.last
	if passed < pressureGrain {
		return
	}
	some := min(max(waited-p.some.raw, 0), passed)
	p.some.raw = max(p.some.raw, waited)
	p.some.add(some, passed)
	if p.full {
		p.all.add(min(some, max(idle-p.idle, 0)), passed)
	}
	p.last, p.idle = now, idle
}

// add counts a stall of so many nanoseconds in the time that passed.
func (s *stall) add(nanos, passed int64) {
	s.total += nanos
	share := 100 * float64(nanos) / float64(passed)
	for i, seconds := range [3]float64{10, 60, 300} {
		k := math.Exp(-float64(passed) / (seconds * 1e9))
		s.avg[i] = s.avg[i]*k + share*(1-k)
	}
}

func (s *stall) line(b []byte, name string) []byte {
	return fmt.Appendf(b, "%s avg10=%.2f avg60=%.2f avg300=%.2f total=%d\n", name, s.avg[0], s.avg[1], s.avg[2], s.total/1000)
}
