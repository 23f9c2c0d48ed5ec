package reserve

import (
	"sync/atomic"
	"time"
)

// Machine is what relief asks of the rest of the kernel.
type Machine struct {
	// Survey finds out who holds much.
	Survey func()
	// Short reports that the kernel's heap has used up a part of its reserve.
	Short func() bool
	// GiveBack gives back the free pages of the kernel's heap. It reports whether there is
	// more memory than before.
	GiveBack func() bool
	// Reclaim frees clean pages of files, about so many at most, and says how many.
	Reclaim func(pages int) int
	// Squeeze empties caches and collects garbage. It reports whether there may be more
	// memory than before.
	Squeeze func() bool
	// Kill ends who holds most, or returns who is ending already; nil if there is nobody.
	Kill func() Victim
	// Collect collects the garbage that a victim left.
	Collect func()
	// Sleep waits.
	Sleep func(time.Duration)
}

// Victim is a process that was killed for its memory.
type Victim interface {
	// Gone reports whether all that it held is given back, but for garbage.
	Gone() bool
	// Hurry takes from a victim what can be taken without its help.
	Hurry()
}

// Relief makes memory free while threads wait for it or the heap is short.
type Relief struct {
	Machine
	Heap, Pages *Queue // who waits

	running atomic.Bool
	turns   atomic.Int64 // of the loop, for whoever asks whether it makes progress
}

// How long relief waits for a victim: in steps, and in how many of them it gives up and
// looks again, which may find another.
const (
	victimStep  = time.Millisecond
	victimSteps = 50
	hurryAfter  = 5
	reclaimed   = 2048 // pages
)

// Start makes a goroutine bring relief unless one does.
func (r *Relief) Start() {
	if !r.running.Load() && r.running.CompareAndSwap(false, true) {
		go r.run()
	}
}

func (r *Relief) run() {
	for {
		for !r.enough() {
			r.turns.Add(1)
			r.step()
		}
		r.running.Store(false)
		// Whoever came meanwhile found somebody running.
		if r.enough() || !r.running.CompareAndSwap(false, true) {
			return
		}
	}
}

// enough serves those who wait, and reports whether nobody does and the heap has its
// reserve.
func (r *Relief) enough() bool {
	r.Heap.Serve()
	r.Pages.Serve()
	if r.Heap.Waiting() != 0 || r.Pages.Waiting() != 0 || r.Short() {
		return false
	}
	r.Heap.Plenty()
	r.Pages.Plenty()
	return true
}

// step makes some memory free: what costs least first.
func (r *Relief) step() {
	r.Survey()
	r.Heap.Sort()
	r.Pages.Sort()
	if r.enough() {
		return
	}
	if r.GiveBack() && r.enough() {
		return
	}
	if r.Reclaim(reclaimed) > 0 && r.enough() {
		return
	}
	if r.Squeeze() && r.enough() {
		return
	}
	v := r.Kill()
	if v == nil { // who waits for nobody's death waits for garbage, or for a program
		r.Collect()
		r.Sleep(10 * victimStep)
		return
	}
	for i := range victimSteps {
		if v.Gone() {
			break
		}
		if i == hurryAfter {
			v.Hurry()
		}
		r.Sleep(victimStep)
		if r.enough() {
			return
		}
	}
	// What it held of the heap is garbage now. Clean-ups of that drop more.
	for range 2 {
		if r.enough() {
			return
		}
		r.Collect()
		r.Sleep(victimStep)
	}
}
