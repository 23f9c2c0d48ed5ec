package taskbench

import (
	"bytes"
	"context"
	"encoding/json"
	"os"

	"hardtack/task"
)

// Shares are the parts of the workers' time in one traced run.
type Shares struct {
	Tasks, Join, Parked, Search float64 // fractions; they add up to 1
	Steals, Shared              uint64
	Micros                      float64
}

// TraceShares runs stress on two workers with the tracer on (without spawns,
// which it would slow down) and adds up where the time of both went. The trace
// is kept in file, for `hardtack task trace`.
func TraceShares(n int, file string) (*Shares, error) {
	rt, err := task.New(task.WithWorkers(2))
	if err != nil {
		return nil, err
	}
	defer rt.Close()
	run := func() error {
		_, err := task.RunOn(rt, context.Background(), func(c task.Ctx) int {
			return task.Fast(c, func(f *task.Frame) int { fastStress(f, n); return 0 })
		})
		return err
	}
	if err := run(); err != nil {
		return nil, err
	}
	before := rt.Stats()
	t, err := rt.StartTrace(task.TraceOptions{})
	if err != nil {
		return nil, err
	}
	if err := run(); err != nil {
		return nil, err
	}
	after := rt.Stats()
	var out bytes.Buffer
	if err := t.Stop(&out); err != nil {
		return nil, err
	}
	if file != "" {
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			return nil, err
		}
	}
	s := &Shares{Steals: after.Steals - before.Steals, Shared: after.Shares - before.Shares}
	return s, s.add(out.Bytes())
}

func (s *Shares) add(trace []byte) error {
	var f struct {
		TraceEvents []struct {
			Name string
			Ph   string
			Ts   float64
			Tid  int
		}
	}
	if err := json.Unmarshal(trace, &f); err != nil {
		return err
	}
	// The run's span is the time that counts, for both workers.
	var from, to float64
	for _, e := range f.TraceEvents {
		if e.Name == "run" && e.Ph == "B" {
			from = e.Ts
		}
		if e.Name == "run" && e.Ph == "E" {
			to = e.Ts
		}
	}
	s.Micros = to - from
	type state struct {
		stack []string
		since float64
	}
	lanes := map[int]*state{}
	var tasks, join, parked float64
	charge := func(l *state, now float64) {
		d := max(0, min(now, to)-max(l.since, from))
		l.since = now
		if len(l.stack) == 0 {
			return
		}
		switch l.stack[len(l.stack)-1] {
		case "run", "stolen task":
			tasks += d
		case "join":
			join += d
		case "parked":
			parked += d
		}
	}
	for _, e := range f.TraceEvents {
		if e.Ph != "B" && e.Ph != "E" {
			continue
		}
		l := lanes[e.Tid]
		if l == nil {
			l = &state{}
			lanes[e.Tid] = l
		}
		charge(l, e.Ts)
		if e.Ph == "B" {
			l.stack = append(l.stack, e.Name)
		} else if len(l.stack) > 0 {
			l.stack = l.stack[:len(l.stack)-1]
		}
	}
	all := 2 * s.Micros
	if all <= 0 {
		return nil
	}
	s.Tasks, s.Join, s.Parked = tasks/all, join/all, parked/all
	s.Search = max(0, 1-s.Tasks-s.Join-s.Parked)
	return nil
}
