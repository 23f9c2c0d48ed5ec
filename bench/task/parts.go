package taskbench

import (
	"context"
	"time"

	"hardtack/task"
)

// A Part is what a step adds to a call of stress, on one worker.
type Part struct {
	Name  string
	Nanos float64 // the least of all repetitions
}

// Breakdown measures stress(n) in the fast form bit by bit: as plain calls, then
// with the frame handed down, the fork, and the check whether the task was stolen,
// each in turn. The difference of two is what the step costs.
func Breakdown(n, reps int) ([]Part, error) {
	rt, err := task.New(task.WithWorkers(1))
	if err != nil {
		return nil, err
	}
	defer rt.Close()
	steps := []struct {
		name string
		run  func(f *task.Frame)
	}{
		{"the calls themselves", func(*task.Frame) { plainStress(n) }},
		{"handing the frame down", func(f *task.Frame) { framesOnly(f, n) }},
		{"the fork: writing the task, looking for thieves", func(f *task.Frame) { forksOnly(f, n) }},
		{"taking the task back", func(f *task.Frame) { fastStress(f, n) }},
	}
	least := make([]float64, len(steps))
	for range reps {
		for i, s := range steps {
			var took time.Duration
			if _, err := task.RunOn(rt, context.Background(), func(c task.Ctx) int {
				return task.Fast(c, func(f *task.Frame) int {
					start := time.Now()
					s.run(f)
					took = time.Since(start)
					return 0
				})
			}); err != nil {
				return nil, err
			}
			ns := float64(took.Nanoseconds()) / Calls("stress", n)
			if least[i] == 0 || ns < least[i] {
				least[i] = ns
			}
		}
	}
	var out []Part
	before := 0.0
	for i, s := range steps {
		out = append(out, Part{s.name, max(0, least[i]-before)})
		before = max(before, least[i])
	}
	return out, nil
}

//go:noinline
func framesOnly(f *task.Frame, n int) {
	if n > 0 {
		framesOnly(f.Next(), n-1)
		framesOnly(f, n-1)
	}
}

// forksOnly never asks whether a task was stolen: there is nobody to do it.
func forksOnly(f *task.Frame, n int) {
	if n > 0 {
		f.Fork(stressID, uint64(n-1))
		forksOnly(f.Next(), n-1)
		forksOnly(f, n-1)
	}
}
