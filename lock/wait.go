package lock

import (
	"runtime"
	"time"

	"hardtack/lock/core"
)

// Turns of a wait loop of locks for goroutines: spinTurns of PAUSE, ever more
// (together about 20 µs, less than the 33 µs that a wake across cores takes), then
// yieldTurns in which other goroutines run, then naps.
const (
	spinTurns  = 24
	yieldTurns = 64
	nap        = 50 * time.Microsecond
)

var spins = func() uint32 {
	if runtime.NumCPU() == 1 {
		return 0 // whom one waits for does not run
	}
	return spinTurns
}()

// relax is turn i of a wait loop; the next one is i+1.
func relax(i uint32) {
	switch {
	case i < spins:
		core.Pause(min(1+i/4, 8))
	case i < spins+yieldTurns:
		runtime.Gosched()
	default:
		time.Sleep(nap)
	}
}

// line separates what different cores write. Processors fetch lines in pairs
// (Intel optimization manual, 3.7.3), hence two lines of 64 bytes.
const line = 128
