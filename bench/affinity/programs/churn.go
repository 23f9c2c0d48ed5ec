package main

import (
	"flag"
	"runtime"
	"sync"
	"time"
)

// semaphore is the shape of Go's issue 57070: bursts of goroutines, each of which takes a
// token from a channel that all of them share, computes a little and gives it back. With
// many Ps, all of them can end up waiting for that channel's lock.
func semaphore(f *flag.FlagSet) func() error {
	goroutines := f.Int("goroutines", 300, "of a burst")
	tokens := f.Int("tokens", 8, "that there are")
	jobs := f.Int("jobs", 600_000, "in all: one for each goroutine")
	turns := f.Int("spin", 200, "turns of a loop a job (about a nanosecond each)")
	return func() error {
		if err := positive("jobs", *jobs, "goroutines", *goroutines, "tokens", *tokens); err != nil {
			return err
		}
		start := time.Now()
		for left := *jobs; left > 0; left -= *goroutines {
			free := make(chan struct{}, *tokens)
			var burst sync.WaitGroup
			for i := range min(left, *goroutines) {
				burst.Go(func() {
					free <- struct{}{}
					if spin(uint64(i), *turns) == 0 {
						sink.Add(1)
					}
					<-free
				})
			}
			burst.Wait()
		}
		perOp("job", time.Since(start), *jobs)
		return nil
	}
}

// churn is the shape of Go's issue 32113: two goroutines that wait for each other, with a
// little work between. Whoever is readied may be stolen by a P that has just been woken,
// although the one that readied it is about to wait.
func churn(f *flag.FlagSet) func() error {
	rounds := f.Int("rounds", 1_000_000, "there and back")
	turns := f.Int("spin", 300, "turns of a loop behind each message (about a nanosecond each)")
	return func() error {
		if err := positive("rounds", *rounds); err != nil {
			return err
		}
		there, back := make(chan uint64), make(chan uint64)
		go func() {
			work := uint64(0)
			for v := range there {
				back <- v + 1
				work ^= spin(v, *turns)
			}
			runtime.KeepAlive(work)
			close(back)
		}()
		start := time.Now()
		sum := uint64(0)
		for i := range *rounds {
			there <- uint64(i)
			sum += spin(sum, *turns)
			sum += <-back
		}
		close(there)
		sink.Store(sum)
		perOp("round", time.Since(start), *rounds)
		return nil
	}
}
