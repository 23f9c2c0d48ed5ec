package main

import (
	"fmt"
	"time"

	"hardtack/arch/amd64"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/vdso"
	"hardtack/kernel/fs/devfs"
	"hardtack/kernel/mm/pagecache"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/net/unix"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/reserve"
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

// relief brings memory to those who wait for it.
var relief = reserve.Relief{
	Machine: reserve.Machine{
		Survey:   proc.Survey,
		Short:    nucleus.MemoryShort,
		GiveBack: mem.GiveBack,
		Reclaim:  pagecache.Reclaim,
		Squeeze:  func() bool { return mem.SqueezeForAll(proc.HeapHeld()) },
		Ending:   unix.Dropping,
		Doubtful: func() bool { return mem.Doubtful(proc.HeapHeld()) },
		Sweep:    func() { mem.SweepForAll(proc.HeapHeld()) },
		Kill:     killBiggest,
		Collect:  func() { mem.CollectForAll(proc.HeapHeld()) },
		Rested:   rested,
		Sleep:    time.Sleep,
	},
	Heap:  proc.HeapQueue,
	Pages: proc.PageQueue,
}

// settleAfter is how long after relief the garbage is collected for which nobody waited any
// more: what processes left that ended then. An idle kernel would keep it for minutes.
const settleAfter = time.Second

var settling *time.Timer // relief's alone

func rested() {
	if settling == nil {
		settling = time.AfterFunc(settleAfter, func() { mem.CollectForAll(proc.HeapHeld()) })
	} else {
		settling.Reset(settleAfter)
	}
}

func killBiggest() reserve.Victim {
	if v := proc.KillBiggest(); v != nil {
		return v
	}
	return nil
}

// reportKilled says on the console who died for memory, and in the kernel's log, there in
// Linux's words.
func reportKilled(p *proc.Process, had proc.Holding) {
	warn("out of memory: process %d (%s), uid %d, is killed; it has %d KiB of pages, and about %d KiB in the kernel (ledger: %s)",
		p.PID, p.Name(), had.UID, had.Sum[ledger.Pages]>>10, had.Kernel()>>10, had.Append(nil))
	var st vm.Stats
	if s := p.AcquireSpace(); s != nil {
		st = s.Stats()
		s.EndLook()
	}
	devfs.Messages.Add(3, fmt.Sprintf("Out of memory: Killed process %d (%s) total-vm:%dkB, anon-rss:%dkB, file-rss:%dkB, shmem-rss:%dkB, "+
		"UID:%d pgtables:%dkB oom_score_adj:%d\n", p.PID, p.Name(), st.Size>>10, st.RSSAnon>>10, st.RSSFile>>10, st.RSSShmem>>10,
		had.UID, st.Tables>>10, p.OOMScoreAdj()))
}
