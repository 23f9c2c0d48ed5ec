// Command follow checks that package task follows processors that go and come, in guests
// only. It prints what the frame of test/guest/c prints of a test.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"hardtack/task"
)

func main() {
	const name = "a run of tasks follows the processors"
	fmt.Println("=== RUN  ", name)
	if err := run(); err != nil {
		fmt.Printf("--- FAIL: %s: %v\n", name, err)
		os.Exit(1)
	}
	fmt.Println("--- PASS:", name)
}

func run() error {
	if _, err := os.Stat("/guesttest"); err != nil {
		return err // not in a guest
	}
	n := runtime.NumCPU()
	rt, err := task.New()
	if err != nil {
		return err
	}
	defer rt.Close()
	stop := make(chan struct{})
	sum := make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				sum <- nil
				return
			default:
			}
			got, err := task.RunOn(rt, context.Background(), func(c task.Ctx) int { return fib(c, 20) })
			if err != nil || got != 6765 {
				sum <- fmt.Errorf("the result is %d: %v", got, err)
				return
			}
		}
	}()
	workers := func(want int) string {
		for range 500 {
			if rt.Workers() == want && runtime.GOMAXPROCS(0) == want {
				return "follows"
			}
			time.Sleep(10 * time.Millisecond)
		}
		return fmt.Sprintf("has %d workers and %d Ps", rt.Workers(), runtime.GOMAXPROCS(0))
	}
	fmt.Println("    all:", workers(n))
	for cpu := n - 1; cpu > 0; cpu-- {
		fmt.Printf("    %d off: %v, %s\n", cpu, turn(cpu, "0"), workers(cpu))
	}
	for cpu := 1; cpu < n; cpu++ {
		fmt.Printf("    %d on: %v, %s\n", cpu, turn(cpu, "1"), workers(cpu+1))
	}
	close(stop)
	return <-sum
}

func turn(cpu int, to string) error {
	return os.WriteFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/online", cpu), []byte(to), 0)
}

// fib is bad at Fibonacci numbers, and makes tasks.
func fib(c task.Ctx, n int) int {
	if n < 2 {
		return n
	}
	x, y := task.Join(c, fib, n-1, fib, n-2)
	return x + y
}
