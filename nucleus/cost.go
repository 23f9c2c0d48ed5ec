package nucleus

import (
	"runtime"
	"slices"

	"hardtack/abi/linux"
	"hardtack/arch/amd64"
)

// A Cost is what one operation of the nucleus takes on the CPU that runs, entry and
// exit included. Where guest time counts instructions (QEMU's -icount) nanoseconds
// are that.
type Cost struct {
	Name string
	NS   float64 // median of costRuns
}

const (
	costRuns  = 9
	costTurns = 200 // operations a run
)

// Costs measures some operations that nobody else wants meanwhile. It takes
// milliseconds, in which the caller's CPU does nothing else.
func Costs() []Cost {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	word, frame := make([]uint32, 1), make([]uint32, 1)
	call := func(num, a, b, d uint64) func() {
		return func() { amd64.Syscall(num, a, b, d) }
	}
	return []Cost{
		{"enter and leave", cost(call(linux.SYS_getpid, 0, 0, 0))},
		{"enter and leave, alone", cost(call(linux.SYS_munmap, 0, 0, 0))},
		{"wake nobody", cost(call(linux.SYS_futex, sliceAddr(word), futexWake|futexPrivate, 1))},
		{"signal for itself", cost(call(linux.SYS_tgkill, 1, amd64.Syscall(linux.SYS_gettid, 0, 0, 0), sigURG))},
		{"frame taken and given", cost(func() { AllocFrames(frame); FreeFrames(frame) })},
		{"turn of two threads", turns()},
	}
}

// cost is the median time of an operation.
func cost(op func()) float64 {
	op()
	var runs [costRuns]float64
	for i := range runs {
		before := now()
		for range costTurns {
			op()
		}
		runs[i] = float64(now()-before) / costTurns
	}
	slices.Sort(runs[:])
	return runs[costRuns/2]
}

// turns is how long it takes two goroutines with threads of their own to hand a turn
// there and back: two futex waits and two wakes, and the Go scheduler's part.
func turns() float64 {
	there, back := make(chan bool), make(chan bool)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for range there {
			back <- true
		}
	}()
	defer close(there)
	return cost(func() { there <- true; <-back })
}
