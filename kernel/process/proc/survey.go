package proc

import (
	"sync/atomic"

	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/mem"
)

// While memory is short, users who hold little come before those who hold much, and get what
// these must leave. Who holds much is found when relief begins, from what the processes
// hold. That is added up anew only for processes that have run since.

// How long what is known of memory counts, in nanoseconds: of a process that did not run, of
// who holds much, and of a user who held much. A user whose processes were just killed does
// not hold little at once.
const (
	heldLately = 1_000_000_000
	knownFor   = 2_000_000_000
	muchFor    = 1_000_000_000
)

// heldRan is how long a process may have run, in nanoseconds, for its sum to count.
const heldRan = 10_000

// held is what a process held at some moment.
type held struct {
	had Holding
	at  int64 // monotonic nanoseconds
	ran int64 // nanoseconds that it had run
}

// lately is Holding, from the last survey if the process has not run since; else with about
// an estimate from so many files and mappings, if most is not 0. Called with killer.mu held.
func (p *Process) lately(now int64, most int) Holding {
	user, system := p.CPUTime()
	h := p.held.Load()
	if h != nil && now-h.at < heldLately && user+system-h.ran < heldRan && h.had.UID == p.uid.Load() {
		return h.had
	}
	if most > 0 {
		return Holding{p.uid.Load(), p.ledger(most)}
	}
	if h == nil {
		h = new(held)
		p.held.Store(h)
	}
	h.at, h.ran = now, user+system
	h.had = p.Holding()
	return h.had
}

// known is who holds much: an immutable map, from users to when they last did.
var known struct {
	much atomic.Pointer[map[uint32]int64]
	at   atomic.Int64 // monotonic nanoseconds
}

// holdsMuch reports whether a user holds much of all memory. Until that is known everybody does.
func holdsMuch(uid uint32) bool {
	m := known.much.Load()
	if m == nil || clocks.Monotonic()-known.at.Load() > knownFor {
		return true
	}
	_, much := (*m)[uid]
	return much
}

// muchPart is the part of all memory that is much for one user.
const muchPart = 8

// Survey finds out in short time who holds much, with what the user keeps in memory without
// a process. Root's files do not count: the boot archive is among them. It does not pause:
// those who hold little wait for its result, and others would use the pause to take more.
// Of processes with many files it makes an estimate; HeapHeld corrects that.
func Survey() { survey(true) }

// HeapHeld is Survey with exact sums. It returns what the processes hold of the kernel's heap.
func HeapHeld() (heap int64) { return survey(false) }

// looked is at how many files and mappings a survey looks in all for its estimate, and leastLooked at how
// many of each process.
const (
	looked      = 128
	leastLooked = 2
)

func survey(about bool) (heap int64) {
	killer.mu.Lock()
	defer killer.mu.Unlock()
	now := clocks.Monotonic()
	all := killer.all[:0]
	Each(func(p *Process) bool {
		if !p.Zombie() {
			all = append(all, p)
		}
		return true
	})
	sums := map[uint32]int64{}
	most := 0
	if about {
		most = max(looked/max(len(all), 1), leastLooked)
	}
	for _, p := range all {
		had := p.lately(now, most)
		sums[had.UID] += had.All()
		heap += had.Heap()
	}
	clear(all)
	killer.all = all
	noteMuch(sums, now)
	return heap
}

// noteMuch notes which users hold much.
func noteMuch(sums map[uint32]int64, now int64) {
	much := map[uint32]int64{}
	if m := known.much.Load(); m != nil {
		for uid, at := range *m {
			if now-at < muchFor {
				much[uid] = at
			}
		}
	}
	part := int64(mem.Total()) * mem.PageSize / muchPart
	for uid, sum := range sums {
		if sum >= part || uid != 0 && sum+KeptBy.Call(uid) >= part {
			much[uid] = now
		}
	}
	known.much.Store(&much)
	known.at.Store(clocks.Monotonic())
}
