package vdso

import (
	"sync/atomic"
	"unsafe"
)

// data is the layout of the data page; vdso.s has the same offsets.
type data struct {
	seq        atomic.Uint32 // odd while the rest is written
	useTSC     uint32        // 0: ask the kernel; 1; 2: CLOCK_REALTIME has a speed of its own
	tscBase    uint64
	mult       uint64
	shift      uint32
	_          uint32
	base       int64
	realOffset int64
	cpuFrom    uint32
	_          uint32
	slewAt     int64
	slewRate   int64
}

// update changes the data page; before Init it does nothing.
func update(change func(*data)) {
	mu.Lock()
	defer mu.Unlock()
	if frames[0] == 0 {
		return
	}
	d := (*data)(unsafe.Pointer(&frames[0].Bytes()[0]))
	d.seq.Add(1)
	change(d)
	d.seq.Add(1)
}
