//go:build !race

package task

import "sync/atomic"

// tick ticks until no Run wants it. From entersyscallblock on, as in any system call,
// the thread has no P: it may neither allocate nor grow its stack nor store pointers
// to the heap. What it reads is kept alive by k, and by the runtime around it.
//
//go:nosplit
func (k *clock) tick() {
	entersyscallblock()
	for idle := 0; idle < lingering; {
		nap()
		if k.wanted.Load() == 0 {
			idle++
			continue
		}
		idle = 0
		k.ticks.Add(1)
		for w := k.list.head(); w != nil; w = w.nextAll {
			atomic.StoreUintptr(&w.limit, 0)
		}
	}
	exitsyscall()
}
