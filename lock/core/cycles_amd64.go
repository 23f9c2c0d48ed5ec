package core

// Cycles is the time stamp counter (Intel SDM volume 2B, RDTSC). It is not ordered
// with other instructions.
func Cycles() uint64
