package main

import (
	"runtime/debug"
	"sync/atomic"
	"time"

	"hardtack/arch/amd64"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/vdso"
	"hardtack/kernel/mm/pagecache"
	"hardtack/kernel/process/proc"
	"hardtack/nucleus"
)

// initVDSO lets user programs read the clock that the kernel reads.
func initVDSO() {
	if e := vdso.Init(); e != 0 {
		warn("no vDSO: %v", e)
		return
	}
	vdso.SetClock(&vdso.Clock{TSCBase: amd64.ClockBase, Mult: amd64.ClockMult, Shift: amd64.ClockShift})
	if nucleus.HasTSCAux() {
		vdso.SetCPUSource(vdso.CPUFromRDTSCP)
	}
}

// relieving is set while a goroutine makes room for the kernel's heap.
var relieving atomic.Bool

func startRelief() {
	if relieving.CompareAndSwap(false, true) {
		go relieve()
	}
}

// relieve gives clean pages of files, names and the kernel's garbage back, and if that
// is not enough takes the memory of the biggest process, and of the next, until a
// sixteenth of all memory may come back.
func relieve() {
	defer relieving.Store(false)
	for nucleus.MemoryShort() {
		pagecache.Reclaim(2048)
		if !mem.Squeeze() {
			debug.FreeOSMemory()
		}
		if !nucleus.MemoryShort() {
			return
		}
		if victim := proc.Kill(int64(nucleus.MemoryInfo().Total) * mem.PageSize / 16); victim != nil {
			for range 100 { // until its memory has come back
				if victim.Zombie() {
					break
				}
				time.Sleep(time.Millisecond)
			}
		}
	}
}

// reportKilled says on the console who died for memory.
func reportKilled(p *proc.Process, had proc.Holding) {
	warn("out of memory: process %d (%s), uid %d, is killed; it has %d KiB of pages, and about %d KiB in the kernel",
		p.PID, p.Name(), had.UID, had.Sum[ledger.Pages]>>10, had.Kernel()>>10)
}
