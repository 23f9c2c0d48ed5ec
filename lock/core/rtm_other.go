//go:build !amd64 || race

package core

// The race detector does not see that one transaction comes before another.

func xbegin(word *uint32) uint32 { return 0 }
func xend()                      {}
func xtest() bool                { return false }
func transactions() bool         { return false }
