package sysv

import "hardtack/abi/linux"

// EachSem calls f for every semaphore set (/proc/sysvipc/sem), with its number.
func EachSem(f func(id int32, d linux.SemidDS)) {
	sems.mu.Lock()
	defer sems.mu.Unlock()
	for _, s := range sems.all {
		if s != nil {
			f(s.id, s.stat())
		}
	}
}

// EachMsg calls f for every message queue (/proc/sysvipc/msg), with its number.
func EachMsg(f func(id int32, d linux.MsqidDS)) {
	queues.mu.Lock()
	defer queues.mu.Unlock()
	for _, q := range queues.all {
		if q != nil {
			f(q.id, q.stat())
		}
	}
}
