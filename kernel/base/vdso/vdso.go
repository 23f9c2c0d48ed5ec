// Package vdso is the page of code that user programs read the clock with
// instead of calling the kernel.
//
// Two frames are mapped into every process, one after the other: data, read
// only, which the kernel keeps up to date, and the image, an ELF shared object
// whose address the program gets as AT_SYSINFO_EHDR. Nothing here is ever freed.
//
// The data page is a sequence lock: its first word is odd while it is being
// written, and a reader that met an odd or a changed word starts over. On x86
// loads and stores keep their order, so that no fences are needed.
package vdso

import (
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/mem"
)

const (
	// ImageOffset is where the ELF header is behind the first of Pages.
	ImageOffset = mem.PageSize
	// codeOffset is where the code is in the image; vdso.s knows it too.
	codeOffset = 0x400
)

// Clock turns the time stamp counter into CLOCK_MONOTONIC:
// Base + (TSC − TSCBase) × Mult >> Shift nanoseconds, through a 128-bit product.
type Clock struct {
	TSCBase, Mult uint64
	Shift         uint32 // below 64
	Base          int64
}

// CPUSource is how a user program learns its CPU's number.
type CPUSource uint32

// Sources of the CPU number. Both registers hold node<<12 | cpu in IA32_TSC_AUX.
const (
	CPUFromKernel CPUSource = iota
	CPUFromRDTSCP
	CPUFromRDPID
)

var (
	mu     sync.Mutex   // guards writes of the data page
	frames [2]mem.Frame // data, image; immutable after Init
)

// Init makes the pages: until SetClock and SetCPUSource are called, all
// functions call the kernel. ENOMEM if there is no memory.
func Init() linux.Errno {
	for i := range frames {
		f, ok := mem.AllocZeroed()
		if !ok {
			return linux.ENOMEM
		}
		frames[i] = f
	}
	copy(frames[1].Bytes(), image())
	SetRealtimeOffset(clocks.RealtimeOffset())
	return 0
}

// SetClock lets user programs read the TSC; nil makes them call the kernel
// again (the counter proved unsound).
func SetClock(c *Clock) {
	update(func(d *data) {
		if c == nil {
			d.useTSC = 0
			return
		}
		d.useTSC, d.tscBase, d.mult, d.shift, d.base = 1, c.TSCBase, c.Mult, c.Shift, c.Base
		if d.slewRate != 0 {
			d.useTSC = 2
		}
	})
}

// SetRealtimeOffset says what CLOCK_REALTIME is ahead of CLOCK_MONOTONIC.
func SetRealtimeOffset(ns int64) { SetSlew(clocks.Slew{Offset: ns}) }

// SetSlew says how CLOCK_REALTIME runs.
func SetSlew(s clocks.Slew) {
	update(func(d *data) {
		d.realOffset, d.slewAt, d.slewRate = s.Offset, s.At, s.Rate
		switch {
		case d.useTSC == 0:
		case s.Rate == 0:
			d.useTSC = 1
		default:
			d.useTSC = 2
		}
	})
}

// SetCPUSource says where CPU numbers come from.
func SetCPUSource(s CPUSource) { update(func(d *data) { d.cpuFrom = uint32(s) }) }

// Pages returns the frames to map, in this order, at adjacent pages: the first
// readable, the second readable and executable.
func Pages() []mem.Frame { return frames[:] }

// Object is the pages as vm maps them.
func Object() mem.Object { return &object }

var object pageObject

type pageObject struct{ m mem.Mappings }

// Page returns the data page or the image. Writing is refused: private
// mappings get a copy of their own.
func (*pageObject) Page(i uint64, write bool) (mem.Frame, linux.Errno) {
	if i >= uint64(len(frames)) || frames[i] == 0 || write {
		return 0, linux.EFAULT
	}
	frames[i].Get()
	return frames[i], 0
}

// Mappings registers who maps the pages.
func (o *pageObject) Mappings() *mem.Mappings { return &o.m }
