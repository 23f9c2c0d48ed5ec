//go:build !race

package wait

// Quiet reports whether no P's run queue has a goroutine and no thread waits for its turn,
// at this moment.
func Quiet() bool {
	if turnQueue.look.Load()&(oneRealTime-1) != 0 {
		return false
	}
	for _, p := range allp {
		if !runqempty(p) {
			return false
		}
	}
	return true
}
