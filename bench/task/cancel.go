package taskbench

import (
	"context"
	"errors"
	"time"

	"hardtack/bench/internal/report"
	"hardtack/task"
)

// Cancelled tells what happens after the end of a Run's context, in microseconds, a
// figure for each repetition: how long until the Run returns, and what all threads
// compute until then. Other programs on the machine make the first longer, and hardly
// the second: a worker that waits for a processor computes nothing.
type Cancelled struct {
	Workers          int
	Time, Processors []float64
}

// CancelledRuns measures Runs that never end by themselves.
func CancelledRuns(reps int) ([]Cancelled, error) {
	var all []Cancelled
	for _, workers := range []int{1, 2} {
		rt, err := task.New(task.WithWorkers(workers))
		if err != nil {
			return nil, err
		}
		c := Cancelled{Workers: workers}
		for range reps {
			if err := c.once(rt); err != nil {
				rt.Close()
				return nil, err
			}
		}
		rt.Close()
		all = append(all, c)
	}
	return all, nil
}

func (k *Cancelled) once(rt *task.Runtime) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var at time.Time
	var spent time.Duration
	time.AfterFunc(3*time.Millisecond, func() {
		at, spent = time.Now(), report.Spent()
		cancel()
	})
	_, err := task.RunOn(rt, ctx, func(c task.Ctx) int { return fib(c, 60) })
	took, computed := time.Since(at), report.Spent()-spent
	if !errors.Is(err, context.Canceled) {
		return errors.Join(errors.New("a Run was not cancelled"), err)
	}
	k.Time = append(k.Time, float64(took.Nanoseconds())/1000)
	k.Processors = append(k.Processors, float64(computed.Nanoseconds())/1000)
	return nil
}
