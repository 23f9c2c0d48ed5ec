// Command ran checks the clock of a goroutine: it runs while the goroutine does, and
// stands still while that sleeps, waits for a lock or for its turn.
package main

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"hardtack/kernel/base/wait"
)

func main() {
	if wait.MyClock() == wait.Still {
		panic("built without the topic")
	}
	runtime.GOMAXPROCS(1)
	var mu sync.Mutex
	held := make(chan bool)
	hold := func() {
		go func() {
			mu.Lock()
			held <- true
			time.Sleep(100 * time.Millisecond)
			mu.Unlock()
		}()
		<-held
	}
	expect("it spins", false, func() { spin(100 * time.Millisecond) })
	expect("it sleeps", true, func() { time.Sleep(100 * time.Millisecond) })
	hold()
	expect("it waits for a lock", true, func() {
		mu.Lock()
		mu.Unlock()
	})
	expect("others have their turn", true, func() {
		done := make(chan bool)
		go func() {
			spin(100 * time.Millisecond)
			done <- true
		}()
		<-done
	})
	fmt.Println("ok")
}

func spin(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
}

// expect runs f, of which the goroutine must have spent most off the processor, or
// hardly any of it.
func expect(what string, off bool, f func()) {
	began, before := cputicks(), wait.MyClock().Mine()
	f()
	all, away := cputicks()-began, wait.MyClock().Mine()-before
	if share := float64(away) / float64(all); share < 0 || share > 1 || off != (share > 0.5) {
		panic(fmt.Sprintf("%s: off for %.3f of the time", what, share))
	}
}
