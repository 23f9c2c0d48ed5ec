package core

// Pause spends n turns of PAUSE, some 40 to 140 cycles each, as wait loops should
// (Intel SDM volume 2B, PAUSE). It never enters the Go runtime.
//
//go:noescape
func Pause(n uint32)
