// Command bind checks, in a program that "hardtack go" built, that the policies "process"
// and "node" bind it to processors, and free it again. It prints what the frame of
// test/guest/c prints of a test. It waits for events and has no time limit of its own.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/affinity"
)

const samples = 20000 // of each thread that computes

// The main goroutine keeps the first thread, whose mask is looked at.
func init() { runtime.LockOSThread() }

func main() {
	status := 0
	for _, p := range []affinity.Policy{affinity.Process, affinity.Node} {
		name := "the policy " + p.String() + " binds and frees"
		fmt.Println("=== RUN  ", name)
		if err := run(p); err != nil {
			fmt.Printf("--- FAIL: %s: %v\n", name, err)
			status = 1
			continue
		}
		fmt.Println("--- PASS:", name)
	}
	os.Exit(status)
}

func run(p affinity.Policy) error {
	before, err := mask()
	if err != nil {
		return err
	}
	if err := affinity.Set(affinity.Settings{Policy: p, Period: 500 * time.Millisecond, Touches: 1}); err != nil {
		return err
	}
	end := talk()
	for pinned() != 1 {
		time.Sleep(time.Millisecond)
	}
	bound, err := mask()
	if err != nil {
		return err
	}
	fmt.Printf("    bound: %d of %d processors\n", bound.Count(), before.Count())
	// Of samples between two decisions to bind.
	var in, out int
	for n := -1; n != freed(); {
		n = freed()
		if in, out, err = sample(bound); err != nil {
			return err
		}
	}
	fmt.Printf("    samples elsewhere: %d; on all of them: %v\n", out, in == bound.Count())
	end()
	for pinned() != 0 {
		time.Sleep(time.Millisecond)
	}
	after, err := mask()
	if err != nil {
		return err
	}
	for seen := 0; seen < before.Count(); {
		if seen, _, err = sample(before); err != nil {
			return err
		}
	}
	fmt.Printf("    freed: %v, and seen on all processors\n", after == before)
	return affinity.SetPolicy(affinity.Off)
}

func mask() (set unix.CPUSet, err error) {
	err = unix.SchedGetaffinity(os.Getpid(), &set) // of the first thread
	return set, err
}

// talk keeps some channels busy until it is ended.
func talk() (end func()) {
	var stop atomic.Bool
	var all sync.WaitGroup
	for range 4 {
		c := make(chan int)
		all.Go(func() {
			for !stop.Load() {
				c <- 1
			}
			close(c)
		})
		all.Go(func() {
			for range c {
			}
		})
	}
	return func() { stop.Store(true); all.Wait() }
}

func pinned() uint64 {
	s := []affinity.Sample{{Name: "/affinity/pinned:processes"}}
	affinity.Read(s)
	return s[0].Value
}

// freed counts the decisions so far that ended a binding.
func freed() (n int) {
	all, _ := affinity.Decisions(0)
	for _, d := range all {
		if d.Kind == affinity.Unpinned {
			n++
		}
	}
	return n
}

// sample has goroutines that compute ask where they run: on how many processors of the
// set, and how often on another one.
func sample(set unix.CPUSet) (in, out int, err error) {
	var on [1024]atomic.Int64
	var all sync.WaitGroup
	var failed atomic.Bool
	for range runtime.NumCPU() {
		all.Go(func() {
			for i := range samples {
				if i%100 == 0 {
					runtime.Gosched() // the talk goes on, so that the process stays bound
				}
				cpu, _, e := getcpu()
				if e != 0 {
					failed.Store(true)
					return
				}
				on[cpu].Add(1)
			}
		})
	}
	all.Wait()
	if failed.Load() {
		return 0, 0, fmt.Errorf("getcpu failed")
	}
	for cpu := range on {
		switch n := int(on[cpu].Load()); {
		case n > 0 && set.IsSet(cpu):
			in++
		case n > 0:
			out += n
		}
	}
	return in, out, nil
}
