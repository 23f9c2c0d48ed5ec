//go:build !amd64

package core

import "time"

var cyclesFrom = time.Now()

// Cycles is nanoseconds here.
func Cycles() uint64 { return uint64(time.Since(cyclesFrom)) }
