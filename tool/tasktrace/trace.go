// Package tasktrace reads a trace of the task library, in the JSON trace-event
// format, and makes a page of it: a timeline with a lane for each worker, and
// what each did with its time. The page needs nothing from elsewhere.
package tasktrace

import (
	"encoding/json"
	"fmt"
	"io"
	"sort"

	"hardtack/tool/fault"
)

// A Span is a part of a worker's time. Spans nest; Depth says how deep.
type Span struct {
	Name     string
	From, To float64 // microseconds since the trace began
	Depth    int
}

// A Lane is one worker.
type Lane struct {
	Name    string
	Spans   []Span
	Marks   []float64      // of spawns and shares: instants
	Counts  map[string]int // of spans and instants, by name
	Totals  map[string]float64
	Unknown float64 // the time in no span: looking for work
}

// A Step is a change of the number of workers.
type Step struct {
	At      float64
	Workers int
}

// A Trace is what the page shows.
type Trace struct {
	Lanes []Lane
	Steps []Step
	End   float64
}

type event struct {
	Name  string          `json:"name"`
	Phase string          `json:"ph"`
	Time  float64         `json:"ts"`
	Tid   int             `json:"tid"`
	Args  json.RawMessage `json:"args"`
}

// Read reads a trace. What is not one is bad input.
func Read(r io.Reader) (*Trace, error) {
	var f struct {
		TraceEvents []event `json:"traceEvents"`
	}
	if err := json.NewDecoder(r).Decode(&f); err != nil {
		return nil, fault.Bad("not a trace in JSON: %v", err)
	}
	if len(f.TraceEvents) == 0 {
		return nil, fault.Bad("the trace has no events")
	}
	t := &Trace{}
	lanes := map[int]*building{}
	for i, e := range f.TraceEvents {
		l := lanes[e.Tid]
		if l == nil {
			l = &building{Lane: Lane{Name: fmt.Sprintf("lane %d", e.Tid), Counts: map[string]int{}, Totals: map[string]float64{}}}
			lanes[e.Tid] = l
		}
		if e.Time < 0 || e.Phase != "M" && e.Time < l.last {
			return nil, fault.Bad("event %d: time goes back", i)
		}
		// The time since the last event belongs to the innermost span.
		if e.Phase != "M" {
			if n := len(l.stack); n > 0 {
				l.Totals[l.stack[n-1].Name] += e.Time - l.last
			}
			l.last = e.Time
			t.End = max(t.End, e.Time)
		}
		switch e.Phase {
		case "M":
			var a struct{ Name string }
			if json.Unmarshal(e.Args, &a) == nil && a.Name != "" {
				l.Name = a.Name
			}
		case "B":
			l.stack = append(l.stack, Span{Name: e.Name, From: e.Time, Depth: len(l.stack)})
			l.Counts[e.Name]++
		case "E":
			n := len(l.stack)
			if n == 0 || l.stack[n-1].Name != e.Name {
				return nil, fault.Bad("event %d: the end of %q, which has not begun or has others within", i, e.Name)
			}
			s := l.stack[n-1]
			l.stack = l.stack[:n-1]
			s.To = e.Time
			l.Spans = append(l.Spans, s)
		case "i":
			l.Counts[e.Name]++
			l.Marks = append(l.Marks, e.Time)
		case "C":
			var a struct{ N int }
			if err := json.Unmarshal(e.Args, &a); err != nil {
				return nil, fault.Bad("event %d: a counter without n", i)
			}
			t.Steps = append(t.Steps, Step{e.Time, a.N})
		default:
			return nil, fault.Bad("event %d: phase %q is not one that the task library writes", i, e.Phase)
		}
	}
	if err := t.finish(lanes); err != nil {
		return nil, err
	}
	return t, nil
}

// building is a lane while it is read.
type building struct {
	Lane
	stack []Span
	last  float64
}

// finish adds the lanes in their order.
func (t *Trace) finish(lanes map[int]*building) error {
	tids := make([]int, 0, len(lanes))
	for tid := range lanes {
		tids = append(tids, tid)
	}
	sort.Ints(tids)
	for _, tid := range tids {
		l := lanes[tid]
		if len(l.stack) > 0 {
			return fault.Bad("%s: %q does not end", l.Name, l.stack[len(l.stack)-1].Name)
		}
		if len(l.Spans)+len(l.Marks) == 0 {
			continue // the counter's own lane
		}
		l.Unknown = t.End
		for _, d := range l.Totals {
			l.Unknown -= d
		}
		l.Unknown = max(0, l.Unknown)
		sort.SliceStable(l.Spans, func(i, j int) bool { return l.Spans[i].From < l.Spans[j].From })
		t.Lanes = append(t.Lanes, l.Lane)
	}
	return nil
}
