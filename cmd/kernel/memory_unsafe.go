package main

import (
	"unsafe"

	"hardtack/kernel/base/mem"
	"hardtack/nucleus"
)

// frameSource gives kernel/base/mem the nucleus's frames.
type frameSource struct{}

func numbers(f []mem.Frame) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.SliceData(f)), len(f))
}

func (frameSource) Refill(out []mem.Frame) int { return nucleus.AllocFrames(numbers(out)) }
func (frameSource) Return(in []mem.Frame)      { nucleus.FreeFrames(numbers(in)) }
func (frameSource) Free() int                  { return nucleus.MemoryInfo().Free }

// initMemory hands the machine's memory to kernel/base/mem.
func initMemory() {
	m := nucleus.MemoryInfo()
	mem.Init(nucleus.DirectMap(), nucleus.Counts(), frameSource{}, m.Total)
	mem.SetFloor(m.Reserve+m.Reserve/4, m.Least)
	mem.LetCollectorRead(nucleus.FramesLeft(), int64(m.Reserve+m.Reserve/4), int64(m.Reserve/4))
	mem.SetDirectLimit(nucleus.DirectLimit())
}
