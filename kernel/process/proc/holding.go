package proc

import "hardtack/kernel/base/ledger"

// Holding is what a process holds of memory.
type Holding struct {
	UID uint32 // whose process it is
	ledger.Sum
}

// Holding returns what would be free if the process ended. What it shares with others
// counts in part.
func (p *Process) Holding() Holding { return Holding{p.uid.Load(), p.Ledger()} }
