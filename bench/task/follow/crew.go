package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"hardtack/task"
)

// A crew is runs that go on until they are told to end: on two runtimes, each with all
// kinds at once. Each run's result is known, so that what is lost shows.
type crew struct {
	runtimes []*task.Runtime
	stop     atomic.Bool
	failed   atomic.Bool
	done     [2 * kinds]atomic.Int64 // runs that ended, by runtime and kind
	ends     chan error
}

const (
	kinds = 3
	depth = 60   // of the chain
	items = 5000 // to sort
)

func newCrew() (*crew, error) {
	c := &crew{ends: make(chan error)}
	for range 2 {
		rt, err := task.New()
		if err != nil {
			return nil, err
		}
		c.runtimes = append(c.runtimes, rt)
	}
	for i := range c.done {
		go func() { c.ends <- c.work(i) }()
	}
	return c, nil
}

// end lets all runs end, and gives the first error.
func (c *crew) end() (err error) {
	c.stop.Store(true)
	for range c.done {
		if e := <-c.ends; err == nil {
			err = e
		}
	}
	for _, rt := range c.runtimes {
		rt.Close()
	}
	return err
}

func (c *crew) work(i int) (err error) {
	for err == nil && !c.stop.Load() {
		err = once(c.runtimes[i/kinds], i%kinds)
		c.done[i].Add(1)
	}
	if err != nil {
		c.failed.Store(true)
	}
	return err
}

func once(rt *task.Runtime, kind int) error {
	ctx := context.Background()
	switch kind {
	case 0:
		got, err := task.RunOn(rt, ctx, func(c task.Ctx) int { return fib(c, 20) })
		if err != nil || got != 6765 {
			return fmt.Errorf("fib: %d, %v", got, err)
		}
	case 1:
		var ran atomic.Int64
		got, err := task.RunOn(rt, ctx, func(c task.Ctx) int { return chain(c, link{depth, &ran}) })
		if err != nil || got != depth || ran.Load() != depth {
			return fmt.Errorf("the chain: %d, %d ran, %v", got, ran.Load(), err)
		}
	default:
		x := make([]int32, items)
		for i := range x {
			x[i] = int32(i * 7919 % items)
		}
		_, err := task.RunOn(rt, ctx, func(c task.Ctx) int { task.Sort(c, x); return 0 })
		if err != nil || !slices.IsSorted(x) || x[0] != 0 || x[items-1] != items-1 {
			return fmt.Errorf("the sort: %v", err)
		}
	}
	return nil
}

// fib is bad at Fibonacci numbers, and makes tasks.
func fib(c task.Ctx, n int) int {
	if n < 2 {
		return n
	}
	x, y := task.Join(c, fib, n-1, fib, n-2)
	return x + y
}

type link struct {
	left int
	ran  *atomic.Int64
}

// chain spawns the rest of the chain and is busy meanwhile: each link that is stolen has
// the next one stolen from its thief, so that thefts lie in each other.
func chain(c task.Ctx, l link) int {
	if l.left == 0 {
		return 0
	}
	l.ran.Add(1)
	rest := task.Spawn(c, chain, link{l.left - 1, l.ran})
	fib(c, 8)
	return rest.Sync(c) + 1
}
