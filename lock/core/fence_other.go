//go:build !amd64

package core

import "sync/atomic"

var fenced atomic.Uint32

// Fence orders all accesses to memory before it with all after it.
func Fence() { fenced.Add(1) }
