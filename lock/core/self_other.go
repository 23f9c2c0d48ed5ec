//go:build !amd64

package core

import (
	"bytes"
	"runtime"
	"strconv"
)

// Self tells goroutines apart: it is the same number in all calls by one goroutine,
// and no two have the same. It is the number in the goroutine's stack trace.
func Self() uintptr {
	var buf [64]byte
	s, _ := bytes.CutPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	s, _, _ = bytes.Cut(s, []byte(" "))
	n, _ := strconv.ParseUint(string(s), 10, 64)
	return uintptr(n)
}
