// Command pin talks until the policy "process" has bound it to one CPU, then
// stops talking until it is free again. It has no time limit of its own.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/affinity"
)

// The main goroutine keeps the first thread, whose mask count reads.
func init() { runtime.LockOSThread() }

func main() {
	var before unix.CPUSet
	must(unix.SchedGetaffinity(os.Getpid(), &before))
	if before.Count() < 2 {
		fmt.Println("ok") // nothing to give up
		return
	}
	own := make(chan unix.CPUSet)
	go func() { // a thread with a mask of its own
		runtime.LockOSThread()
		var mine unix.CPUSet
		for cpu := range 1024 {
			if before.IsSet(cpu) {
				mine.Set(cpu)
				break
			}
		}
		must(unix.SchedSetaffinity(0, &mine))
		for {
			own <- mine
			var now unix.CPUSet
			must(unix.SchedGetaffinity(0, &now))
			if now != mine {
				panic("a thread that bound itself was bound anew")
			}
		}
	}()
	<-own // from now on it is bound, perhaps to the very CPU that the vote will choose
	var stop atomic.Bool
	for range 4 {
		c := make(chan int)
		go func() {
			for !stop.Load() {
				c <- 1
			}
			close(c)
		}()
		go func() {
			for range c {
			}
		}()
	}
	wait(func() bool { return count() == 1 && value("/affinity/pinned:processes") == 1 })
	<-own
	<-own // it has looked between the two
	stop.Store(true)
	wait(func() bool { return count() == before.Count() && value("/affinity/pinned:processes") == 0 })
	<-own
	<-own
	kinds := map[affinity.Kind]int{}
	all, _ := affinity.Decisions(0)
	for _, d := range all {
		kinds[d.Kind]++
	}
	if kinds[affinity.Pinned] == 0 || kinds[affinity.Unpinned] == 0 {
		panic(fmt.Sprint(kinds))
	}
	fmt.Println("ok")
}

func count() int {
	var s unix.CPUSet
	must(unix.SchedGetaffinity(os.Getpid(), &s)) // of the first thread
	return s.Count()
}

func value(name string) uint64 {
	s := []affinity.Sample{{Name: name}}
	affinity.Read(s)
	return s[0].Value
}

func wait(until func() bool) {
	for !until() {
		time.Sleep(time.Millisecond)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
