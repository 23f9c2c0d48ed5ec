// Command cores talks over a contended channel and computes beside it, for a test that
// changes the cores it may use meanwhile. It reads words from standard input and
// answers each with a line: "go" when everybody has got on since, "stop" with the
// number of CPUs that each thread may use, when the talk is over and nothing is bound.
// It has no time limit of its own.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/affinity"
)

const (
	talkers = 8
	workers = 2
	share   = 5000 // messages of each talker that "go" waits for
)

var (
	sent, done [talkers + workers]atomic.Int64
	received   atomic.Int64
	stop       atomic.Bool
)

func main() {
	c := make(chan int, 128)
	var all sync.WaitGroup
	for i := range talkers {
		all.Go(func() {
			for !stop.Load() {
				c <- i
				sent[i].Add(1)
			}
		})
	}
	go func() {
		for range c {
			received.Add(1)
		}
	}()
	for i := range workers {
		go func() {
			x := uint64(1)
			for !stop.Load() {
				for range 100_000 {
					x = x*6364136223846793005 + 1442695040888963407
				}
				if x != 0 {
					done[i].Add(1)
				}
				time.Sleep(time.Millisecond)
			}
		}()
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch in.Text() {
		case "go":
			before, worked, got := counts(&sent), counts(&done), received.Load()
			for {
				now, work := counts(&sent), counts(&done)
				on := received.Load()-got >= talkers*share
				for i := range talkers {
					on = on && now[i]-before[i] >= share/10
				}
				for i := range workers {
					on = on && work[i] > worked[i]
				}
				if on {
					break
				}
				time.Sleep(time.Millisecond)
			}
			fmt.Println("on")
		case "stop":
			stop.Store(true)
			all.Wait()
			s := []affinity.Sample{{Name: "/affinity/pinned:processes"}}
			for affinity.Read(s); s[0].Value != 0; affinity.Read(s) {
				time.Sleep(time.Millisecond)
			}
			tasks, err := os.ReadDir("/proc/self/task")
			if err != nil {
				panic(err)
			}
			for _, t := range tasks {
				tid, _ := strconv.Atoi(t.Name())
				var set unix.CPUSet
				if unix.SchedGetaffinity(tid, &set) == nil { // it may have ended
					fmt.Print(set.Count(), " ")
				}
			}
			fmt.Println()
		}
	}
}

func counts(of *[talkers + workers]atomic.Int64) (n [talkers + workers]int64) {
	for i := range of {
		n[i] = of[i].Load()
	}
	return n
}
