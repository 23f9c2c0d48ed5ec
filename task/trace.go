package task

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// The kinds of events. Those in pairs open and close a span of the worker's
// time; the argument is said in eventNames.
type eventKind uint8

const (
	evSpawn eventKind = iota
	evSteal
	evStolenEnd
	evRoot
	evRootEnd
	evJoinSleep
	evJoinWake
	evBlock
	evUnblock
	evPark
	evUnpark
	evOrphan
	evAdopted
	evShare
	evCores
)

// eventNames are the events' names and phases in the trace: B begins a span, E
// ends it, i is an instant, C a counter; arg names the argument.
var eventNames = [...]struct{ name, phase, arg string }{
	evSpawn:     {"spawn", "i", "depth"},
	evSteal:     {"stolen task", "B", "from worker"},
	evStolenEnd: {"stolen task", "E", ""},
	evRoot:      {"run", "B", ""},
	evRootEnd:   {"run", "E", ""},
	evJoinSleep: {"join", "B", ""},
	evJoinWake:  {"join", "E", ""},
	evBlock:     {"blocked", "B", ""},
	evUnblock:   {"blocked", "E", ""},
	evPark:      {"parked", "B", ""},
	evUnpark:    {"parked", "E", ""},
	evOrphan:    {"without seat", "B", "seat"},
	evAdopted:   {"without seat", "E", "seat"},
	evShare:     {"share", "i", "tasks"},
	evCores:     {"workers", "C", "n"},
}

type event struct {
	at   int64 // nanoseconds since the tracer began
	arg  int64
	kind eventKind
}

// A lane is one worker's part of a trace.
type lane struct {
	mu     sync.Mutex // held by the worker for each event, by Stop for all
	events []event
	lost   int
}

// A Tracer records what a runtime does, until Stop.
type Tracer struct {
	rt     *Runtime
	began  time.Time
	spawns bool
	limit  int
	mu     sync.Mutex // guards lanes
	lanes  map[int]*lane
	cores  lane
}

// TraceOptions are what StartTrace takes.
type TraceOptions struct {
	Spawns bool // record each spawn too, which makes it several times slower
	Limit  int  // events kept for each worker, the first ones; 0 for 1,000,000
}

// ErrTracing is what StartTrace gives while another trace is being made.
var ErrTracing = errors.New("task: the runtime is being traced already")

// StartTrace begins to record steals, sleeps, blocked tasks, core changes and,
// if asked, spawns. While no trace is made, tracing costs a spawn nothing: it
// uses the limit that each spawn compares with anyway.
func (rt *Runtime) StartTrace(o TraceOptions) (*Tracer, error) {
	rt.made()
	if o.Limit == 0 {
		o.Limit = 1_000_000
	}
	if o.Limit < 0 {
		return nil, fmt.Errorf("task: a trace of %d events", o.Limit)
	}
	t := &Tracer{rt: rt, began: time.Now(), spawns: o.Spawns, limit: o.Limit, lanes: map[int]*lane{}}
	if !rt.tracer.CompareAndSwap(nil, t) {
		return nil, ErrTracing
	}
	t.add(&t.cores, evCores, int64(rt.Workers()))
	if o.Spawns {
		for _, w := range *rt.workers.Load() {
			if w != nil {
				w.ring(flagTrace)
			}
		}
	}
	return t, nil
}

// event records something that w does.
func (w *Worker) event(kind eventKind, arg int64) {
	if t := w.rt.tracer.Load(); t != nil {
		t.mu.Lock()
		l := t.lanes[w.id]
		if l == nil {
			l = &lane{}
			t.lanes[w.id] = l
		}
		t.mu.Unlock()
		t.add(l, kind, arg)
	}
}

func (t *Tracer) add(l *lane, kind eventKind, arg int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.events) >= t.limit {
		l.lost++
		return
	}
	l.events = append(l.events, event{int64(time.Since(t.began)), arg, kind})
}

// coreChange records the new number of seats. rt.mu is held.
func (rt *Runtime) coreChange(n int) {
	rt.counts.changes++
	if t := rt.tracer.Load(); t != nil {
		t.add(&t.cores, evCores, int64(n))
	}
}

// Stop ends the recording and writes it to out in the JSON trace-event format
// that Perfetto and chrome://tracing read: one thread for each worker, times in
// microseconds. `hardtack task trace` makes a page of it.
func (t *Tracer) Stop(out io.Writer) error {
	if !t.rt.tracer.CompareAndSwap(t, nil) {
		return errors.New("task: the trace has been stopped already")
	}
	end := int64(time.Since(t.began))
	w := traceWriter{b: bufio.NewWriter(out), end: end}
	w.b.WriteString(`{"displayTimeUnit":"ns","traceEvents":[` + "\n")
	err := w.lane(0, &t.cores, "workers")
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range len(*t.rt.workers.Load()) + len(t.lanes) {
		if l := t.lanes[id]; l != nil && err == nil {
			err = w.lane(id+1, l, fmt.Sprintf("worker %d", id))
			delete(t.lanes, id)
		}
	}
	if err != nil {
		return err
	}
	w.b.WriteString("]}\n")
	return w.b.Flush()
}

// traceWriter writes events in the format of trace viewers.
type traceWriter struct {
	b     *bufio.Writer
	end   int64 // when the trace ended
	wrote bool  // an event, so that a comma follows
}

type traceArgs map[string]any

// traceLine is one event.
type traceLine struct {
	Name  string    `json:"name"`
	Phase string    `json:"ph"`
	Time  float64   `json:"ts"`
	Pid   int       `json:"pid"`
	Tid   int       `json:"tid"`
	Scope string    `json:"s,omitempty"`
	Args  traceArgs `json:"args,omitempty"`
}

func (w *traceWriter) put(x traceLine) error {
	if w.wrote {
		w.b.WriteString(",")
	}
	w.wrote = true
	x.Pid = 1
	return json.NewEncoder(w.b).Encode(x)
}

// lane writes the events of one lane. What is still open at the end gets an end there.
func (w *traceWriter) lane(tid int, l *lane, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := w.put(traceLine{Name: "thread_name", Phase: "M", Tid: tid, Args: traceArgs{"name": name}}); err != nil {
		return err
	}
	var open []event
	for _, e := range l.events {
		n := eventNames[e.kind]
		x := traceLine{Name: n.name, Phase: n.phase, Time: float64(e.at) / 1000, Tid: tid}
		switch n.phase {
		case "i":
			x.Scope = "t"
		case "B":
			open = append(open, e)
		case "E":
			if len(open) == 0 {
				continue // it had begun before the trace
			}
			open = open[:len(open)-1]
		}
		if n.arg != "" {
			x.Args = traceArgs{n.arg: e.arg}
		}
		if err := w.put(x); err != nil {
			return err
		}
	}
	end := float64(w.end) / 1000
	for i := len(open) - 1; i >= 0; i-- {
		if err := w.put(traceLine{Name: eventNames[open[i].kind].name, Phase: "E", Time: end, Tid: tid}); err != nil {
			return err
		}
	}
	if l.lost > 0 {
		return w.put(traceLine{Name: fmt.Sprintf("%d more events were not kept", l.lost), Phase: "i", Scope: "t", Time: end, Tid: tid})
	}
	return nil
}

// tracesSpawns tells whether each spawn is to be recorded.
func (rt *Runtime) tracesSpawns() bool {
	t := rt.tracer.Load()
	return t != nil && t.spawns
}
