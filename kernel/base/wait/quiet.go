//go:build !race

package wait

// Quiet reports whether no P's run queue has a goroutine, at this moment.
func Quiet() bool {
	for _, p := range allp {
		if !runqempty(p) {
			return false
		}
	}
	return true
}
