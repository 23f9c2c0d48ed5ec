package task

// How long a worker looks for work, and a join waits, before it yields to other
// goroutines, and how often it yields before it sleeps: together about 50 µs,
// about twice what a sleep and a wake-up cost.
const (
	searchSpins  = 200
	searchYields = 100
	joinSpins    = 200
	joinYields   = 100
)

// maxSleepers is how many workers may exist beyond the seats.
const maxSleepers = 1 << 14

// pause spends some ten nanoseconds, more the longer a search has lasted.
func pause(idle int) {
	for range 16 + idle/4 {
	}
}
