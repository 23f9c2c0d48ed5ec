package sysfs

import (
	"testing"

	"hardtack/kernel/process/proc"
)

// Processors whose local APIC IDs leave gaps share what the low bits say.
func TestTogether(t *testing.T) {
	cpus, place := proc.CPUs.Call, Place.Call
	defer func() { proc.CPUs.Call, Place.Call = cpus, place }()
	proc.CPUs.Call = func() (int, int) { return 5, 0 }
	Place.Call = func(cpu int) uint32 { return []uint32{0, 1, 2, 4, 7}[cpu] }
	for bits, want := range map[uint][5]uint64{
		0:  {1, 2, 4, 8, 16},
		1:  {3, 3, 4, 8, 16},
		2:  {7, 7, 7, 24, 24},
		31: {31, 31, 31, 31, 31},
	} {
		for cpu, set := range want {
			if got := Together(cpu, bits); got != set&proc.OnlineCPUs() {
				t.Errorf("processor %d, %d bits: %#x, want %#x", cpu, bits, got, set)
			}
		}
	}
}
