//go:build !amd64

package core

import "sync/atomic"

var paused uint32

// Pause spends n turns of a wait loop.
func Pause(n uint32) {
	for range n {
		atomic.LoadUint32(&paused)
	}
}
