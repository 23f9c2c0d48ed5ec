package reserve

import (
	"runtime"
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
	// Ending reports whether somebody gives up what processes that have ended left.
	Ending func() bool
	// Doubtful reports whether the heap may hold garbage that Squeeze takes for used: nobody
	// should die before Sweep.
	Doubtful func() bool
	// Sweep collects garbage even where there seems to be little.
	Sweep func()
	// Kill ends who holds most, or returns who is ending already; nil if there is nobody.
	Kill func() Victim
	// Collect collects the garbage that a victim left.
	Collect func()
	// Rested hears that nobody waits any more.
	Rested func()
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

	died bool // somebody has, for all that is waited for now; run's alone

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

	endingSteps = 250 // for what ended processes left
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
		r.died = false
		r.Rested()
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
	runtime.Gosched() // those who were served go on
	if r.GiveBack() && r.enough() {
		return
	}
	if r.Reclaim(reclaimed) > 0 && r.enough() {
		return
	}
	if r.Squeeze() && r.enough() {
		return
	}
	if r.spared() {
		return
	}
	v := r.Kill()
	if v == nil { // who waits for nobody's death waits for garbage, or for a program
		r.Collect()
		r.Sleep(10 * victimStep)
		return
	}
	r.died = true
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

// spared does what is left before somebody dies: it waits for what ended processes left, and
// collects the garbage once more if somebody died in vain or much of the heap is nobody's.
// It reports whether that was enough.
func (r *Relief) spared() bool {
	for range endingSteps {
		if !r.Ending() {
			break
		}
		r.Sleep(victimStep)
		if r.enough() {
			return true
		}
	}
	if !r.died && !r.Doubtful() {
		return false
	}
	r.died = false
	r.Sweep()
	return r.enough()
}
