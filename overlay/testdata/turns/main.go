// Command turns has goroutines wait for turns, block and compute, on one P and on several:
// all of them come to their end, none is lost while a P is idle, and the least key is first.
package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"hardtack/kernel/base/wait"
)

func main() {
	if !wait.HasTurns() {
		panic("built without the topic")
	}
	wait.SetTurns(wait.TurnHooks{Due: func(when int64) { told.Add(min(when, 1)) }})
	time.AfterFunc(time.Minute, func() { panic("not all came to their end") })
	order()
	for _, n := range []int{1, 2, 4, 8} {
		runtime.GOMAXPROCS(n)
		wait.SetProcessors(n)
		storm(300*time.Millisecond, 1+rand.IntN(40))
		alone(n)
	}
	if told.Load() == 0 {
		panic("nobody was told of timers")
	}
	fmt.Println("ok")
}

var told atomic.Int64 // how often a timer was due

// order has goroutines wait on one P: they return by their keys.
func order() {
	runtime.GOMAXPROCS(1)
	wait.SetProcessors(1)
	var wg sync.WaitGroup
	var got []int64 // one P, and nothing between that could be preempted
	for _, key := range rand.Perm(100) {
		wg.Go(func() {
			t := wait.Turn{Key: int64(key + 1)}
			t.Wait()
			got = append(got, t.Key)
		})
	}
	wg.Wait()
	for i, key := range got {
		if key != int64(i+1) {
			fmt.Println("keys came as", got)
			os.Exit(1)
		}
	}
}

// storm has goroutines do all kinds of things between their turns.
func storm(d time.Duration, goroutines int) {
	end := time.Now().Add(d)
	var wg sync.WaitGroup
	var mu sync.Mutex
	c := make(chan int, 3)
	for range goroutines {
		wg.Go(func() {
			var t wait.Turn
			for time.Now().Before(end) {
				t.Key += 1 + rand.Int64N(1000)
				t.Wait()
				switch rand.IntN(6) {
				case 0:
					time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
				case 1:
					mu.Lock()
					runtime.Gosched()
					mu.Unlock()
				case 2:
					select {
					case c <- 1:
					case <-c:
					}
				case 3:
					wait.ReadyFirst()
				case 4:
					runtime.GC()
				default:
					for i := 0; i < rand.IntN(20000); i++ {
						work.Add(0)
					}
				}
			}
		})
	}
	wg.Wait()
}

var work atomic.Int64

// alone has all Ps idle but for goroutines that wait: each turn comes by itself.
func alone(n int) {
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			var t wait.Turn
			for t.Key < 2000 {
				t.Key++
				t.Wait()
			}
		})
	}
	wg.Wait()
}
