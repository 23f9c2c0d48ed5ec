package sysv

import "hardtack/kernel/base/ledger"

// Ledger charges all objects to who made them. They belong to no process.
func Ledger(charge ledger.Charge) {
	ledgerShm(charge)
	sems.mu.Lock()
	for _, s := range sems.all {
		if s != nil {
			charge(0, s.user.UID, ledger.SysV, s.bytes())
		}
	}
	sems.mu.Unlock()
	queues.mu.Lock()
	for _, q := range queues.all {
		if q != nil {
			charge(0, q.user.UID, ledger.SysV, q.bytes())
			for i := range q.list {
				charge(0, q.list[i].user.UID, ledger.SysV, ledger.Size(int64(cap(q.list[i].text))+kindBytes))
			}
		}
	}
	queues.mu.Unlock()
}

func ledgerShm(charge ledger.Charge) {
	shmMu.Lock()
	list := make([]*ShmSegment, 0, len(shmTable))
	for _, g := range shmTable {
		if g != nil {
			list = append(list, g)
		}
	}
	shmMu.Unlock()
	for _, g := range list {
		var own ledger.Sum
		own.Add(ledger.SysV, ledger.Of[ShmSegment]())
		g.pages.Holds(&own, ledger.FilePages)
		charge.All(0, g.user.UID, &own)
	}
}

// bytes is what a set takes with what processes' ends will undo; called with sems.mu held.
func (s *semSet) bytes() int64 {
	n := ledger.Of[semSet]() + ledger.Array[semaphore](cap(s.sems)) + ledger.Array[*semWaiter](cap(s.sleep))
	if s.undo != nil {
		n += ledger.Map[int32, []int32](len(s.undo))
		for _, u := range s.undo {
			n += ledger.Array[int32](cap(u))
		}
	}
	return n
}

// bytes is what a queue takes without its messages' texts; called with queues.mu held.
func (q *queue) bytes() int64 { return ledger.Of[queue]() + ledger.Array[message](cap(q.list)) }

// kindBytes is the type before the text of a message, with which it was copied in.
const kindBytes = 8
