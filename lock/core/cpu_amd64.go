package core

// CPU is the number of the processor that the caller runs on, or ran on a moment
// ago: the low 12 bits of IA32_TSC_AUX, which Linux sets to that (Intel SDM
// volume 2B, RDTSCP). It costs about 30 cycles.
func CPU() uint32
