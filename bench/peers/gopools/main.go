// Command gopools runs the same programs on well-known Go pools, and on a
// goroutine and sync.WaitGroup a task. It is a module of its own, so that the
// pools are not dependencies of the project.
//
//	gopools waitgroup|ants|pond|conc fib|stress N WORKERS REPS
//
// It prints nanoseconds, a line each.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/alitto/pond/v2"
	"github.com/panjf2000/ants/v2"
	"github.com/sourcegraph/conc"
)

// spawn runs f at the same time as what follows; wait ends when f has ended.
// The pools have no bound: a parent waits within a task, and would keep its
// child from running.
type spawn func(f func()) (wait func())

func waitgroup(f func()) func() {
	var wg sync.WaitGroup
	wg.Go(f)
	return wg.Wait
}

func onAnts(p *ants.Pool) spawn {
	return func(f func()) func() {
		var wg sync.WaitGroup
		wg.Add(1)
		if err := p.Submit(func() { defer wg.Done(); f() }); err != nil {
			panic(err)
		}
		return wg.Wait
	}
}

func onPond(p pond.Pool) spawn {
	return func(f func()) func() {
		t := p.Submit(f)
		return func() {
			if err := t.Wait(); err != nil {
				panic(err)
			}
		}
	}
}

func onConc(f func()) func() {
	var wg conc.WaitGroup
	wg.Go(f)
	return wg.Wait
}

func fib(s spawn, n int) int {
	if n < 2 {
		return n
	}
	var x int
	wait := s(func() { x = fib(s, n-1) })
	y := fib(s, n-2)
	wait()
	return x + y
}

func stress(s spawn, n int) {
	if n == 0 {
		return
	}
	wait := s(func() { stress(s, n-1) })
	stress(s, n-1)
	wait()
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gopools:", err)
		os.Exit(2)
	}
}

func run(args []string) error {
	if len(args) != 5 {
		return fmt.Errorf("usage: gopools waitgroup|ants|pond|conc fib|stress N WORKERS REPS")
	}
	var num [3]int
	for i := range num {
		n, err := strconv.Atoi(args[2+i])
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no positive number", args[2+i])
		}
		num[i] = n
	}
	n, workers, reps := num[0], num[1], num[2]
	runtime.GOMAXPROCS(workers)
	var s spawn
	switch args[0] {
	case "waitgroup":
		s = waitgroup
	case "conc":
		s = onConc
	case "ants":
		p, err := ants.NewPool(-1)
		if err != nil {
			return err
		}
		defer p.Release()
		s = onAnts(p)
	case "pond":
		p := pond.NewPool(0)
		defer p.StopAndWait()
		s = onPond(p)
	default:
		return fmt.Errorf("no pool %q", args[0])
	}
	for range reps {
		start := time.Now()
		switch args[1] {
		case "fib":
			fib(s, n)
		case "stress":
			stress(s, n)
		default:
			return fmt.Errorf("no program %q", args[1])
		}
		fmt.Println(time.Since(start).Nanoseconds())
	}
	return nil
}
