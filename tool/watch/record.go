package watch

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"hardtack/tool/fault"
)

// event is one of Chrome's trace event format, which ui.perfetto.dev and chrome://tracing
// read. Times are in microseconds.
type event struct {
	Phase string         `json:"ph"`
	Name  string         `json:"name"`
	PID   int64          `json:"pid"`
	TID   int64          `json:"tid"`
	Time  float64        `json:"ts"`
	Dur   float64        `json:"dur,omitempty"`
	Scope string         `json:"s,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

// Tracks that are no process of the guest's have numbers that no process has.
const (
	trackCPUs = 1 << 30
	trackIRQs = trackCPUs + 1
	trackGC   = trackCPUs + 2
)

// Recording is what the flight recorder had.
type Recording struct {
	events []event
	names  map[[2]int64]string
}

// Events is how many events there are.
func (r *Recording) Events() int { return len(r.events) }

// Record takes the flight recorder's content. With calls every system call of the time d is
// in it, and else those that the kernel measures anyway.
func (s *Source) Record(ctx context.Context, calls bool, d time.Duration) (*Recording, error) {
	c, err := s.Live(ctx)
	if err != nil {
		return nil, err
	}
	line := ""
	if calls {
		line = "calls"
	}
	text, err := report(ctx, c, "flight", line, d)
	if err != nil {
		return nil, err
	}
	return parseRecording(string(text)), nil
}

// parseRecording reads lines of the kernel's (kernel/trace, recorder). What it does not know
// it leaves out.
func parseRecording(text string) *Recording {
	r := &Recording{names: map[[2]int64]string{}}
	processes := map[int64]int64{} // of threads
	threads := map[int64]string{}
	type call struct {
		name     string
		tid      int64
		from, to int64
	}
	var calls []call
	for line := range strings.Lines(text) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verb {
		case "thread":
			head, quoted, _ := strings.Cut(rest, ` "`)
			name, err := strconv.Unquote(`"` + quoted)
			if n, ok := integers(head, 2); ok && err == nil {
				name = printable(name, 64)
				processes[n[0]], threads[n[0]] = n[1], name
				r.names[[2]int64{n[1], n[0]}] = fmt.Sprintf("%s (%d)", name, n[0])
			}
		case "run":
			if n, ok := integers(rest, 5); ok && n[0] < 64 && n[2] >= n[1] {
				name := fmt.Sprintf("goroutine %d", n[4])
				if n[3] != 0 {
					name = cmp.Or(threads[n[3]], fmt.Sprintf("thread %d", n[3]))
				}
				r.add(event{Phase: "X", Name: name, PID: trackCPUs, TID: n[0], Time: micro(n[1]), Dur: micro(n[2] - n[1]),
					Args: map[string]any{"thread": n[3], "goroutine": n[4]}})
				r.names[[2]int64{trackCPUs, n[0]}] = fmt.Sprintf("cpu %d", n[0])
			}
		case "call":
			name, rest, _ := strings.Cut(rest, " ")
			n, ok := integers(rest, 3)
			if name, isPlain := plain(name); ok && isPlain && n[2] >= n[1] {
				calls = append(calls, call{name, n[0], n[1], n[2]})
			}
		case "irq":
			if n, ok := integers(rest, 2); ok {
				r.add(event{Phase: "i", Name: fmt.Sprintf("irq %d", n[0]), PID: trackIRQs, TID: n[0], Time: micro(n[1]), Scope: "t"})
				r.names[[2]int64{trackIRQs, n[0]}] = fmt.Sprintf("irq %d", n[0])
			}
		case "gc":
			if n, ok := integers(rest, 2); ok {
				r.add(event{Phase: "X", Name: "world stopped", PID: trackGC, TID: 0, Time: micro(n[0] - n[1]), Dur: micro(n[1])})
			}
		}
	}
	for _, c := range calls {
		pid, ok := processes[c.tid]
		if !ok {
			pid = c.tid // it has ended
		}
		r.add(event{Phase: "X", Name: c.name, PID: pid, TID: c.tid, Time: micro(c.from), Dur: micro(c.to - c.from)})
	}
	return r
}

func (r *Recording) add(e event) { r.events = append(r.events, e) }

func micro(ns int64) float64 { return float64(ns) / 1e3 }

// integers reads n numbers that are not negative.
func integers(s string, n int) ([]int64, bool) {
	w := strings.Fields(s)
	if len(w) != n {
		return nil, false
	}
	list := make([]int64, n)
	for i := range w {
		v, err := strconv.ParseInt(w[i], 10, 64)
		if err != nil || v < 0 {
			return nil, false
		}
		list[i] = v
	}
	return list, true
}

// ParsePanic reads what a kernel that panicked printed of its flight recorder
// (cmd/kernel, record): times there are ticks, and threads have no names.
func ParsePanic(text string) (*Recording, error) {
	r := &Recording{names: map[[2]int64]string{}}
	var hz, now uint64
	for line := range strings.Lines(text) {
		w := strings.Fields(line)
		if len(w) < 3 {
			continue
		}
		var n [4]uint64
		good := len(w) <= len(n)+1
		for i := 1; i < len(w) && good; i++ {
			v, err := strconv.ParseUint(w[i], 16, 64)
			n[i-1], good = v, err == nil
		}
		at := func(ticks uint64) float64 { return float64(ticks) / float64(hz) * 1e6 }
		switch {
		case !good:
		case w[0] == "now" && n[1] > 0:
			now, hz = n[0], n[1]
		case hz == 0 || n[1] == 0 || n[1] > now || len(w) != 5:
		case w[0] == "r" && n[2] >= n[1] && n[2] <= now && n[0] < 64:
			name := fmt.Sprintf("goroutine %d", uint32(n[3]))
			if tid := n[3] >> 32; tid != 0 {
				name = fmt.Sprintf("thread %d", tid)
			}
			r.add(event{Phase: "X", Name: name, PID: trackCPUs, TID: int64(n[0]), Time: at(n[1]), Dur: at(n[2] - n[1])})
			r.names[[2]int64{trackCPUs, int64(n[0])}] = fmt.Sprintf("cpu %d", n[0])
		case w[0] == "c" && n[2]>>56 == 1 && n[3] <= n[1]:
			tid := int64(uint32(n[2]))
			r.add(event{Phase: "X", Name: fmt.Sprintf("call %d", n[2]>>32&(1<<24-1)), PID: tid, TID: tid, Time: at(n[1] - n[3]), Dur: at(n[3])})
		case w[0] == "c" && n[2]>>56 == 2:
			irq := int64(n[2] >> 32 & (1<<24 - 1))
			r.add(event{Phase: "i", Name: fmt.Sprintf("irq %d", irq), PID: trackIRQs, TID: irq, Time: at(n[1]), Scope: "t"})
		}
	}
	if len(r.events) == 0 {
		return nil, fault.Bad("there is nothing of a flight recorder in it")
	}
	return r, nil
}

// Write writes the recording as JSON in Chrome's trace event format, the earliest event first.
func (r *Recording) Write(w io.Writer) error {
	slices.SortStableFunc(r.events, func(a, b event) int { return cmp.Compare(a.Time, b.Time) })
	out := bufio.NewWriter(w)
	out.WriteString("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")
	first := true
	put := func(v any) error {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if !first {
			out.WriteString(",\n")
		}
		first = false
		_, err = out.Write(b)
		return err
	}
	for _, n := range []struct {
		pid  int64
		name string
	}{{trackCPUs, "processors"}, {trackIRQs, "interrupts"}, {trackGC, "collector"}} {
		if err := put(event{Phase: "M", Name: "process_name", PID: n.pid, Args: map[string]any{"name": n.name}}); err != nil {
			return err
		}
	}
	tracks := make([][2]int64, 0, len(r.names))
	for k := range r.names {
		tracks = append(tracks, k)
	}
	slices.SortFunc(tracks, func(a, b [2]int64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	for _, k := range tracks {
		what := "thread_name"
		if k[0] == k[1] {
			if err := put(event{Phase: "M", Name: "process_name", PID: k[0], Args: map[string]any{"name": r.names[k]}}); err != nil {
				return err
			}
		}
		if err := put(event{Phase: "M", Name: what, PID: k[0], TID: k[1], Args: map[string]any{"name": r.names[k]}}); err != nil {
			return err
		}
	}
	for _, e := range r.events {
		if err := put(e); err != nil {
			return err
		}
	}
	out.WriteString("\n]}\n")
	return out.Flush()
}
