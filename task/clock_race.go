//go:build race

package task

import (
	"sync/atomic"
	"time"
)

// Under the race detector the clock is an ordinary goroutine: what instruments its
// code may call the runtime. It is as late as the scheduler.

type workerList struct{ first atomic.Pointer[Worker] }

func (k *clock) add(w *Worker) {
	w.nextAll = k.list.first.Load()
	k.list.first.Store(w)
}

func (k *clock) tick() {
	for idle := 0; idle < lingering; {
		time.Sleep(clockTick)
		if k.wanted.Load() == 0 {
			idle++
			continue
		}
		idle = 0
		k.ticks.Add(1)
		for w := k.list.first.Load(); w != nil; w = w.nextAll {
			atomic.StoreUintptr(&w.limit, 0)
		}
	}
}
