package main

import (
	"flag"
	"sync"
	"time"
)

// hotpotato is the paper's first program: goroutines in a ring, joined by
// unbuffered channels, hand a number round until it has grown enough; then they
// compute for themselves.
func hotpotato(f *flag.FlagSet) func() error {
	players := f.Int("players", 8, "goroutines in the ring")
	hops := f.Int("hops", 1_000_000, "times the number is handed on")
	work := f.Int("work", 0, "units of work of each player afterwards")
	return func() error {
		if err := positive("players", *players, "hops", *hops); err != nil {
			return err
		}
		ring := make([]chan int, *players)
		for i := range ring {
			ring[i] = make(chan int)
		}
		if *players == 1 {
			ring[0] = make(chan int, 1) // it hands the number to itself
		}
		var round, after sync.WaitGroup
		for i := range ring {
			in, out := ring[i], ring[(i+1)%len(ring)]
			round.Add(1)
			after.Add(1)
			go func() {
				defer after.Done()
				for n := range in {
					if n >= *hops {
						// Everybody learns of the end in the same way.
						if n < *hops+len(ring)-1 {
							out <- n + 1
						}
						break
					}
					out <- n + 1
				}
				round.Done()
				for u := range *work {
					unit(u)
				}
			}()
		}
		start := time.Now()
		ring[0] <- 0
		round.Wait()
		perOp("hop", time.Since(start), *hops)
		if *work > 0 {
			start = time.Now()
			after.Wait()
			seconds("work", time.Since(start))
		}
		return nil
	}
}

// talkMany sends messages from several goroutines to one over a buffered channel.
func talkMany(producers, capacity, messages int) {
	c := make(chan int, capacity)
	var done sync.WaitGroup
	for p := range producers {
		n := messages / producers
		if p < messages%producers {
			n++
		}
		done.Go(func() {
			for i := range n {
				c <- i
			}
		})
	}
	go func() { done.Wait(); close(c) }()
	sum := 0
	for v := range c {
		sum += v
	}
	sink.Store(uint64(sum))
}

func many(f *flag.FlagSet) func() error {
	producers := f.Int("producers", 8, "goroutines that send")
	capacity := f.Int("cap", 128, "of the channel")
	messages := f.Int("messages", 2_000_000, "sent in all")
	return func() error {
		if err := positive("producers", *producers, "messages", *messages); err != nil {
			return err
		}
		start := time.Now()
		talkMany(*producers, *capacity, *messages)
		perOp("message", time.Since(start), *messages)
		return nil
	}
}

// pipeline sends items through stages that each compute a little.
func pipeline(f *flag.FlagSet) func() error {
	stages := f.Int("stages", 4, "goroutines in a row")
	capacity := f.Int("cap", 64, "of each channel")
	items := f.Int("items", 500_000, "that go through")
	turns := f.Int("spin", 0, "turns of a loop at each stage (about a nanosecond each)")
	return func() error {
		if err := positive("stages", *stages, "items", *items); err != nil {
			return err
		}
		first := make(chan uint64, *capacity)
		in := first
		for range *stages {
			from, to := in, make(chan uint64, *capacity)
			go func() {
				for v := range from {
					to <- spin(v, *turns)
				}
				close(to)
			}()
			in = to
		}
		start := time.Now()
		go func() {
			for i := range *items {
				first <- uint64(i)
			}
			close(first)
		}()
		n, sum := 0, uint64(0)
		for v := range in {
			n++
			sum += v
		}
		sink.Store(sum)
		perOp("item", time.Since(start), n)
		return nil
	}
}

// pool is workers that take jobs from one channel and answer on another.
func pool(f *flag.FlagSet) func() error {
	workers := f.Int("workers", 8, "goroutines")
	jobs := f.Int("jobs", 300_000, "in all")
	turns := f.Int("spin", 200, "turns of a loop a job (about a nanosecond each)")
	return func() error {
		if err := positive("workers", *workers, "jobs", *jobs); err != nil {
			return err
		}
		todo, results := make(chan uint64, 64), make(chan uint64, 64)
		start := time.Now()
		for range *workers {
			go func() {
				for v := range todo {
					results <- spin(v, *turns)
				}
			}()
		}
		go func() {
			for i := range *jobs {
				todo <- uint64(i)
			}
			close(todo)
		}()
		sum := uint64(0)
		for range *jobs {
			sum += <-results
		}
		sink.Store(sum)
		perOp("job", time.Since(start), *jobs)
		return nil
	}
}
