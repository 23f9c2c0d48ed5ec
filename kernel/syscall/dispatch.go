package syscall

import (
	"math/bits"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/checks"
	"hardtack/kernel/base/flight"
	"hardtack/kernel/process/endpoint"
	"hardtack/kernel/process/proc"
)

// handlers is the table as Do uses it: a function for every number.
var handlers [TableSize]Handler

// counters of one call number. Threads use the shard of their number, so that
// two CPUs rarely write the same line.
type counter struct{ calls, ticks atomic.Uint64 }

const shards = 8

var counters [shards][TableSize]counter

// sampledBytes is what the measured calls of each number allocated on the heap.
// Most allocate nothing and do not write here, so one line for all CPUs will do.
var sampledBytes [TableSize]atomic.Uint64

// latencies counts the measured calls of each number by how long they took: bucket i has
// those of less than 1<<i ticks.
var latencies [TableSize][latencyBuckets]atomic.Uint32

const latencyBuckets = 40

// Init fills the tables that Do reads.
func Init() {
	fillTable()
	for i := range handlers {
		handlers[i] = sysMissing
		if c := table[i]; c != nil {
			handlers[i] = c.Handle
		}
	}
	fillIntercepted()
}

// sysMissing stands for every call that is not there.
func sysMissing(*proc.Thread, *Args) (uint64, linux.Errno) { return 0, linux.ENOSYS }

// Do carries out the call in the thread's registers. It is the path of every
// call: no allocation, no lock, no defer.
func Do(t *proc.Thread) {
	u := &t.User.Regs
	nr := uint64(uint32(u.RAX)) // as Linux, which looks at EAX
	t.SetCallNumber(nr)
	a := (*Args)(&t.Args)
	a[0], a[1], a[2], a[3], a[4], a[5] = u.RDI, u.RSI, u.RDX, u.R10, u.R8, u.R9
	if nr >= TableSize {
		endpoint.Syscall(t, nr)
		return
	}
	c := &counters[uint32(t.TID)%shards][nr]
	if n := c.calls.Add(1); n%proc.SampleEvery == 0 {
		doSampled(t, a, nr, c, &handlers)
		return
	}
	v, e := handlers[nr](t, a)
	if e != 0 {
		finishError(t, e, &handlers)
		return
	}
	u.RAX = v
}

// doSampled is the rest of Do for a call that is measured. What a call spends
// blocked is not its time.
func doSampled(t *proc.Thread, a *Args, nr uint64, c *counter, handlers *[TableSize]Handler) {
	start := proc.Ticks()
	off := t.Off()
	heap := checks.AllocatedCount()
	before := *heap
	checks.BeginSites()
	v, e := handlers[nr](t, a)
	if e != 0 {
		finishError(t, e, handlers)
	} else {
		t.User.RAX = v
	}
	end := proc.Ticks()
	if d := end - start - (t.Off() - off); d > 0 {
		c.ticks.Add(uint64(d))
		latencies[nr][min(bits.Len64(uint64(d)), latencyBuckets-1)].Add(1)
		flight.Note(flight.Call, uint32(nr), t.TID, end, uint64(end-start))
		t.Sampled(d)
	}
	n := *heap - before
	if checks.Bounds {
		noteBytes(nr, n)
	}
	if n != 0 {
		sampledBytes[nr].Add(n)
		t.SampledBytes(n)
	}
}

func errnoResult(e linux.Errno) uint64 { return ^uint64(e) + 1 }

func finishError(t *proc.Thread, e linux.Errno, handlers *[TableSize]Handler) {
	for e == linux.ENOMEM && t.MemoryCame() {
		var v uint64
		if v, e = handlers[t.CallNumber()](t, (*Args)(&t.Args)); e == 0 {
			t.User.RAX = v
			return
		}
	}
	if e >= linux.ERESTARTSYS {
		t.FinishRestart(e)
		return
	}
	t.User.RAX = errnoResult(e)
}

// Count is what is known of one call number's use.
type Count struct {
	Num   int
	Name  string
	Calls uint64
	Nsec  uint64 // estimate of the time spent, from one call in SampleEvery
	Bytes uint64 // likewise of the heap allocated; 0 if checks.CountsAllocated is false
}

// A Latency is how long the measured calls of one number took, what they were blocked for
// left out.
type Latency struct {
	Name  string
	Nsec  uint64   // all of them
	Below []uint64 // nanoseconds
	Calls []uint64 // that took less, but not less than the one before
}

// Latencies returns those of every number that was measured, without buckets that are empty.
func Latencies() (all []Latency) {
	for nr := range TableSize {
		var l Latency
		for i := range latencyBuckets {
			if n := latencies[nr][i].Load(); n != 0 {
				l.Below = append(l.Below, uint64(proc.TicksToNsec(1<<i)))
				l.Calls = append(l.Calls, uint64(n))
			}
		}
		if c := table[nr]; c != nil && l.Calls != nil {
			var ticks uint64
			for s := range shards {
				ticks += counters[s][nr].ticks.Load()
			}
			l.Name, l.Nsec = c.Name, uint64(proc.TicksToNsec(int64(ticks)))
			all = append(all, l)
		}
	}
	return all
}

// Counts returns the use of every call that happened, by number.
func Counts() []Count {
	var out []Count
	for nr := range TableSize {
		var calls, ticks uint64
		for s := range shards {
			calls += counters[s][nr].calls.Load()
			ticks += counters[s][nr].ticks.Load()
		}
		if calls == 0 {
			continue
		}
		name := "unknown"
		if c := table[nr]; c != nil {
			name = c.Name
		}
		out = append(out, Count{nr, name, calls, uint64(proc.TicksToNsec(int64(ticks))) * proc.SampleEvery,
			sampledBytes[nr].Load() * proc.SampleEvery})
	}
	return out
}
