package main

import (
	"flag"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// sink keeps results from being optimised away.
var sink atomic.Uint64

// spin is arithmetic that touches no memory.
//
//go:noinline
func spin(v uint64, turns int) uint64 {
	for range turns {
		v = v*6364136223846793005 + 1442695040888963407
	}
	return v
}

// unit is the work that is counted: about 200 µs.
func unit(n int) { sink.Store(spin(uint64(n), 200_000)) }

// parallel is the embarrassingly parallel part alone.
func parallel(f *flag.FlagSet) func() error {
	goroutines := f.Int("goroutines", 8, "that share the work")
	units := f.Int("units", 4000, "of work in all")
	return func() error {
		if err := positive("goroutines", *goroutines, "units", *units); err != nil {
			return err
		}
		start := time.Now()
		work(*goroutines, *units, 0)
		seconds("parallel", time.Since(start))
		return nil
	}
}

// work shares out units; each goroutine pauses after a unit of its own.
func work(goroutines, units int, pause time.Duration) {
	var next atomic.Int64
	var done sync.WaitGroup
	for range goroutines {
		done.Go(func() {
			for n := next.Add(1); n <= int64(units); n = next.Add(1) {
				unit(int(n))
				if pause > 0 {
					time.Sleep(pause)
				}
			}
		})
	}
	done.Wait()
}

// mixed does both at once: a fixed number of messages, a fixed amount of work;
// what counts is when all is done.
func mixed(f *flag.FlagSet) func() error {
	producers := f.Int("producers", 8, "goroutines that send")
	messages := f.Int("messages", 6_000_000, "sent in all")
	goroutines := f.Int("goroutines", 8, "that compute")
	units := f.Int("units", 1200, "of work in all")
	pause := f.Duration("pause", 0, "of a goroutine after each unit")
	return func() error {
		if err := positive("producers", *producers, "messages", *messages, "goroutines", *goroutines, "units", *units); err != nil {
			return err
		}
		var both sync.WaitGroup
		var talked, worked time.Duration
		start := time.Now()
		both.Go(func() { talkMany(*producers, 128, *messages); talked = time.Since(start) })
		both.Go(func() { work(*goroutines, *units, *pause); worked = time.Since(start) })
		both.Wait()
		seconds("all", time.Since(start))
		seconds("talk", talked)
		seconds("work", worked)
		return nil
	}
}

// bound measures what mixed is made of: the talk on one P, where it is fastest;
// the work's processor time; and the work alone, with its pauses. No schedule does
// both in less than the longest of the first, the third, and the sum of the first
// two divided by the cores.
func bound(f *flag.FlagSet) func() error {
	producers := f.Int("producers", 8, "goroutines that send")
	messages := f.Int("messages", 6_000_000, "sent in all")
	goroutines := f.Int("goroutines", 8, "that compute")
	units := f.Int("units", 1200, "of work in all")
	pause := f.Duration("pause", 0, "of a goroutine after each unit")
	return func() error {
		if err := positive("producers", *producers, "messages", *messages, "goroutines", *goroutines, "units", *units); err != nil {
			return err
		}
		cores := runtime.GOMAXPROCS(1)
		start := time.Now()
		talkMany(*producers, 128, *messages)
		talk := time.Since(start)
		start = time.Now()
		work(1, *units, 0)
		cpu := time.Since(start)
		runtime.GOMAXPROCS(cores)
		start = time.Now()
		work(*goroutines, *units, *pause)
		alone := time.Since(start)
		seconds("talk", talk)
		seconds("cpu", cpu)
		seconds("alone", alone)
		seconds("bound", max(talk, alone, (talk+cpu)/time.Duration(cores)))
		return nil
	}
}

// phases talks for a while, then works, and tells how long after the talk the
// work runs at full speed: until the first of three steps in a row that take no
// more than 1.1 times the median step of the second half. A step is work for all cores.
func phases(f *flag.FlagSet) func() error {
	talk := f.Duration("talk", 1500*time.Millisecond, "length of the talk")
	steps := f.Int("steps", 150, "of work afterwards")
	return func() error {
		if err := positive("steps", *steps); err != nil {
			return err
		}
		c := make(chan int, 128)
		stop := make(chan struct{})
		cores := runtime.GOMAXPROCS(0)
		var talkers, workers sync.WaitGroup
		begin := make(chan struct{})
		took := make([]time.Duration, *steps)
		var step atomic.Int64 // units handed out, cores of them a step
		ends := make([]atomic.Int64, *steps)
		var started time.Time
		for range 8 {
			talkers.Go(func() {
				for i := 0; ; i++ {
					select {
					case c <- i:
					case <-stop:
						return
					}
				}
			})
		}
		// The talkers themselves do the work: they must lose their company.
		for range 8 {
			workers.Go(func() {
				for talking := true; talking; {
					select {
					case _, talking = <-c:
					case <-begin:
						talking = false
					}
				}
				for n := step.Add(1) - 1; n < int64(*steps*cores*8); n = step.Add(1) - 1 {
					unit(int(n))
					s := n / int64(cores*8)
					now := int64(time.Since(started))
					for old := ends[s].Load(); old < now && !ends[s].CompareAndSwap(old, now); old = ends[s].Load() {
					}
				}
			})
		}
		time.Sleep(*talk)
		close(stop)
		talkers.Wait()
		started = time.Now()
		close(begin)
		workers.Wait()
		last := int64(0)
		for i := range took {
			took[i] = time.Duration(ends[i].Load() - last)
			last = ends[i].Load()
		}
		return settled(took, ends)
	}
}

// settled tells when the work ran at full speed, and what a step takes then.
func settled(took []time.Duration, ends []atomic.Int64) error {
	usual := median(took[len(took)/2:])
	run, at := 0, time.Duration(0)
	for i, d := range took {
		if run++; d > usual*11/10 {
			run = 0
		}
		if run == min(3, len(took)) {
			at = time.Duration(ends[max(i-3, 0)].Load())
			if i < 3 {
				at = 0
			}
			break
		}
	}
	seconds("recovery", at)
	seconds("step", usual)
	if run < min(3, len(took)) {
		return fmt.Errorf("the work never settled")
	}
	return nil
}

func median(d []time.Duration) time.Duration {
	s := append([]time.Duration(nil), d...)
	for i := range s {
		for j := i; j > 0 && s[j] < s[j-1]; j-- {
			s[j], s[j-1] = s[j-1], s[j]
		}
	}
	return s[len(s)/2]
}

// cores tells how many cores two busy goroutines get: 2 when both are there.
func cores(*flag.FlagSet) func() error {
	return func() error {
		best := 0.0
		for range 3 {
			start := time.Now()
			sink.Store(spin(1, 60_000_000))
			one := time.Since(start)
			start = time.Now()
			done := make(chan bool)
			go func() { sink.Store(spin(2, 60_000_000)); done <- true }()
			sink.Store(spin(3, 60_000_000))
			<-done
			best = max(best, 2*one.Seconds()/time.Since(start).Seconds())
		}
		fmt.Printf("cores %.2f x\n", best)
		return nil
	}
}
