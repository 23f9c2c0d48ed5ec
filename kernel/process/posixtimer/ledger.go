package posixtimer

import (
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/process/signals"
)

// callBytes is what the functions take that each timer has: two method values.
const callBytes = 2 * 16

// Holds adds a process's timers.
func Holds(p *proc.Process, s *ledger.Sum) {
	tab := tableOf(p)
	if tab == nil {
		return
	}
	tab.mu.Lock()
	defer tab.mu.Unlock()
	n := ledger.Of[table]() + ledger.Map[int32, *Timer](tab.peak.Max(0))
	for _, t := range tab.timers {
		n += ledger.Of[Timer]() + ledger.Of[signals.Timer]() + callBytes + t.Timer.Held()
	}
	s.Add(ledger.Timers, n)
}
