package main

import (
	"slices"
	"testing"

	"hardtack/kernel/pseudofs/sysfs"
)

// The registers are those of QEMU's AMD processor.
func TestOldCaches(t *testing.T) {
	got := oldCaches(0x40020140, 0x40020140, 0x02006140, 0x00808140, 0, 1)
	want := []sysfs.Cache{
		{Level: 1, Type: "Data", Size: 64 << 10, Line: 64, Partitions: 1, Ways: 2, Sets: 512},
		{Level: 1, Type: "Instruction", Size: 64 << 10, Line: 64, Partitions: 1, Ways: 2, Sets: 512},
		{Level: 2, Type: "Unified", Size: 512 << 10, Line: 64, Partitions: 1, Ways: 8, Sets: 1024},
		{Level: 3, Type: "Unified", Size: 16 << 20, Line: 64, Partitions: 1, Ways: 16, Sets: 16384, Bits: 1},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v\nwant\n%v", got, want)
	}
	if got := oldCaches(0, 0, 0, 0, 0, 0); got != nil {
		t.Errorf("without caches: %v", got)
	}
}
