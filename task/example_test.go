package task_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"hardtack/task"
)

func fib(c task.Ctx, n int) int {
	if n < 2 {
		return n
	}
	x := task.Spawn(c, fib, n-1) // may run elsewhere
	y := fib(c, n-2)
	return x.Sync(c) + y
}

func Example() {
	v, err := task.Run(context.Background(), func(c task.Ctx) int { return fib(c, 20) })
	fmt.Println(v, err)
	// Output: 6765 <nil>
}

var fastFibID task.ID

func init() {
	fastFibID = task.Register(func(f *task.Frame, n, _ uint64) uint64 { return uint64(fastFib(f, int(n))) })
}

func fastFib(f *task.Frame, n int) int {
	if n < 2 {
		return n
	}
	f.Fork(fastFibID, uint64(n-1))
	y := fastFib(f.Next(), n-2)
	if f.Mine() {
		return fastFib(f, n-1) + y
	}
	return int(f.Join()) + y // it was stolen
}

func ExampleFast() {
	v, _ := task.Run(context.Background(), func(c task.Ctx) int {
		return task.Fast(c, func(f *task.Frame) int { return fastFib(f, 20) })
	})
	fmt.Println(v)
	// Output: 6765
}

// The two halves in one.
func ExampleJoin() {
	var fib func(c task.Ctx, n int) int
	fib = func(c task.Ctx, n int) int {
		if n < 2 {
			return n
		}
		x, y := task.Join(c, fib, n-2, fib, n-1)
		return x + y
	}
	v, _ := task.Run(context.Background(), func(c task.Ctx) int { return fib(c, 20) })
	fmt.Println(v)
	// Output: 6765
}

// A parent that goes on when a child panics.
func ExampleChild_Try() {
	task.Run(context.Background(), func(c task.Ctx) int {
		x := task.Spawn(c, func(c task.Ctx, s []int) int { return s[3] }, []int{1, 2})
		if _, p := x.Try(c); p != nil {
			fmt.Println("no result:", p.Value)
		}
		return 0
	})
	// Output: no result: runtime error: index out of range [3] with length 2
}

var loopFibID task.ID

func init() {
	loopFibID = task.Register(func(f *task.Frame, n, _ uint64) uint64 { return uint64(loopFib(f, int(n))) })
}

func loopFib(f *task.Frame, n int) int {
	sum := 0
	for n >= 2 {
		n--
		f.Fork(loopFibID, uint64(n))
		sum += loopFib(f.Next(), n-1)
		if !f.Mine() {
			return sum + int(f.Join()) // it was stolen
		}
	} // and if not, the loop goes on with it
	return sum + n
}

// The fast form at its fastest: the last task that is taken back is not called,
// but gone on with.
func ExampleFrame_Fork() {
	v, _ := task.Run(context.Background(), func(c task.Ctx) int {
		return task.Fast(c, func(f *task.Frame) int { return loopFib(f, 20) })
	})
	fmt.Println(v)
	// Output: 6765
}

func ExampleFor() {
	squares := make([]int, 8)
	task.Run(context.Background(), func(c task.Ctx) int {
		task.For(c, len(squares), 2, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				squares[i] = i * i
			}
		})
		return 0
	})
	fmt.Println(squares)
	// Output: [0 1 4 9 16 25 36 49]
}

func ExampleReduce() {
	words := strings.Fields("a parallel sum of the lengths of these words")
	n, _ := task.Run(context.Background(), func(c task.Ctx) int {
		return task.Reduce(c, len(words), 1,
			func(lo, hi int) (n int) {
				for _, w := range words[lo:hi] {
					n += len(w)
				}
				return n
			},
			func(left, right int) int { return left + right })
	})
	fmt.Println(n)
	// Output: 36
}

func ExampleInvoke() {
	var left, right int
	task.Run(context.Background(), func(c task.Ctx) int {
		task.Invoke(c,
			func(c task.Ctx) { left = fib(c, 10) },
			func(c task.Ctx) { right = fib(c, 11) })
		return 0
	})
	fmt.Println(left, right)
	// Output: 55 89
}

// The greatest result of all children, found by an inlet without locks.
func ExampleGroup() {
	best := 0
	task.Run(context.Background(), func(c task.Ctx) int {
		g := task.NewGroup(c, func(v int) { best = max(best, v) })
		for n := range 15 {
			task.SpawnIn(c, g, fib, n)
		}
		g.Sync(c)
		return 0
	})
	fmt.Println(best)
	// Output: 377
}

// A search ends when one child has found what is sought.
func ExampleGroup_Abort() {
	found := -1
	task.Run(context.Background(), func(c task.Ctx) int {
		var g *task.Group[int]
		g = task.NewGroup(c, func(v int) {
			if v >= 0 {
				found = v
				g.Abort()
			}
		})
		for i := range 100 {
			task.SpawnIn(c, g, func(c task.Ctx, i int) int {
				if fib(c, i%10) == 34 && i == 59 {
					return i
				}
				return -1
			}, i)
		}
		g.Sync(c)
		return 0
	})
	fmt.Println(found)
	// Output: 59
}

func ExampleSort() {
	x := []string{"thread", "task", "core", "channel"}
	task.Run(context.Background(), func(c task.Ctx) int { task.Sort(c, x); return 0 })
	fmt.Println(x)
	// Output: [channel core task thread]
}

func ExampleBlock() {
	answers := make(chan int)
	go func() { answers <- 42 }()
	v, _ := task.Run(context.Background(), func(c task.Ctx) (v int) {
		task.Block(c, func() { v = <-answers }) // the core goes to others meanwhile
		return v
	})
	fmt.Println(v)
	// Output: 42
}

// A context ends a Run: what runs unwinds at its next Spawn or Check.
func ExampleRun_context() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err := task.Run(ctx, func(c task.Ctx) int {
		for {
			c.Check()
		}
	})
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output: true
}

// An error is a result like any other.
func ExampleRun_error() {
	type result struct {
		n   int
		err error
	}
	r, err := task.Run(context.Background(), func(c task.Ctx) result {
		return result{0, errors.New("no such file")}
	})
	fmt.Println(r.err, err)
	// Output: no such file <nil>
}

// A runtime of its own, with two workers.
func ExampleRunOn() {
	rt, err := task.New(task.WithWorkers(2))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close()
	v, err := task.RunOn(rt, context.Background(), func(c task.Ctx) int { return fib(c, 20) })
	fmt.Println(v, err, rt.Workers())
	// Output: 6765 <nil> 2
}

// A task that gets its input from a channel gives the core away while it waits.
func ExampleReceive() {
	numbers := make(chan int)
	go func() {
		defer close(numbers)
		for n := range 4 {
			numbers <- n
		}
	}()
	sum, _ := task.Run(context.Background(), func(c task.Ctx) (sum int) {
		for {
			n, ok := task.Receive(c, numbers)
			if !ok {
				return sum
			}
			sum += n
		}
	})
	fmt.Println(sum)
	// Output: 6
}
