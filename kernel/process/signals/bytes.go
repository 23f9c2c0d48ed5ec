package signals

import "hardtack/kernel/base/ledger"

// What signals take, in bytes of their size classes.
var (
	// FrameBytes is what a Frame takes.
	FrameBytes = ledger.Of[Frame]()
	entryBytes = ledger.Of[entry]()
)

// Bytes returns what the entries of the queue take, but for timers' signals.
func (q *Queue) Bytes() (n int64) {
	for e := q.first; e != nil; e = e.next {
		if e.timer == nil {
			n += entryBytes
		}
	}
	return n
}

// Bytes returns the process's part of the table of actions.
func (a *Actions) Bytes() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.table == nil {
		return 0
	}
	return ledger.Of[actionTable]() / max(int64(a.table.refs.Load())*int64(a.users.Load()), 1)
}
