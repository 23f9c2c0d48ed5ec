// Package timeline reads the log that a program built by "hardtack go" writes
// (HARDTACK_AFFINITY_LOG) and draws it: touches of channels per second, touches from
// another core, and decisions, over time.
//
// A touch from another P than the one before moves at least the cache line with the
// channel's lock to another core. So their number stands in for the transfers that the
// paper (Channel-aware scheduling in the Go runtime) counts in hardware (HITM), where
// there are no such counters.
package timeline

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Sample is the state at one time. Counts are since the program's start.
type Sample struct {
	At                        time.Duration
	Touches, Cross, Contended uint64
	Yes, Voters               uint64 // of the last vote
	Pinned                    bool   // bound to fewer cores
	Together                  uint64 // groups that are kept on one P
}

// Event is a decision; see hardtack/affinity for what A and B are.
type Event struct {
	At    time.Duration
	Kind  string
	Group uint64
	A, B  uint64
}

// A Run is what one program wrote.
type Run struct {
	Name    string // for the drawing
	Samples []Sample
	Events  []Event
}

var kinds = []string{"", "gathered", "scattered", "pinned", "unpinned", "refused"}

// Read parses a log. A last line that was cut off is left out.
func Read(r io.Reader) (*Run, error) {
	run := &Run{}
	s := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := s.ReadString('\n')
		if err == io.EOF {
			return run, nil
		} else if err != nil {
			return nil, err
		}
		if err := run.add(strings.Fields(line)); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
}

func (r *Run) add(f []string) error {
	if len(f) == 0 {
		return fmt.Errorf("empty")
	}
	v := make([]uint64, len(f)-1)
	for i, s := range f[1:] {
		var err error
		if v[i], err = strconv.ParseUint(s, 10, 63); err != nil {
			return fmt.Errorf("%q is no number", s)
		}
	}
	switch {
	case f[0] == "s" && len(v) == 8:
		s := Sample{time.Duration(v[0]), v[1], v[2], v[3], v[4], v[5], v[6] != 0, v[7]}
		if n := len(r.Samples); n > 0 {
			if p := r.Samples[n-1]; s.At < p.At || s.Touches < p.Touches || s.Cross < p.Cross {
				return fmt.Errorf("counts go backwards")
			}
		}
		r.Samples = append(r.Samples, s)
	case f[0] == "e" && len(v) == 5:
		if v[1] < 1 || v[1] >= uint64(len(kinds)) {
			return fmt.Errorf("no decision %d", v[1])
		}
		r.Events = append(r.Events, Event{time.Duration(v[0]), kinds[v[1]], v[2], v[3], v[4]})
	default:
		return fmt.Errorf("neither a sample nor a decision")
	}
	return nil
}

// Rate is a mean over one step of time, a second.
type Rate struct {
	At             time.Duration // the step's end
	Touches, Cross float64
}

// Rates gives at most n of them, of equal lengths of time as far as samples allow.
func (r *Run) Rates(n int) []Rate {
	if len(r.Samples) < 2 || n < 1 {
		return nil
	}
	end := r.Samples[len(r.Samples)-1].At
	step := max((end-r.Samples[0].At)/time.Duration(n), 1)
	var out []Rate
	last := r.Samples[0]
	for i, s := range r.Samples[1:] {
		took := s.At - last.At
		if took < step && i+2 < len(r.Samples) || took == 0 {
			continue
		}
		out = append(out, Rate{s.At, float64(s.Touches-last.Touches) / took.Seconds(), float64(s.Cross-last.Cross) / took.Seconds()})
		last = s
	}
	return out
}

// Text draws the run with n columns of block characters and lists the decisions.
func (r *Run) Text(w io.Writer, n int) {
	rates := r.Rates(n)
	if len(rates) == 0 {
		fmt.Fprintln(w, "no samples: the program was too short, or never busy")
		return
	}
	var touches, cross []float64
	for _, v := range rates {
		touches, cross = append(touches, v.Touches), append(cross, v.Cross)
	}
	fmt.Fprintf(w, "touches/s    %s  most %s\n", bars(touches), short(most(touches)))
	fmt.Fprintf(w, "from others  %s  most %s\n", bars(cross), short(most(cross)))
	fmt.Fprintf(w, "             0%*s\n", len(rates)-1, r.Samples[len(r.Samples)-1].At.Round(10*time.Millisecond))
	last := r.Samples[len(r.Samples)-1]
	fmt.Fprintf(w, "%s touches, %s from another core (%.1f %%), %s of them contended\n", short(float64(last.Touches)), short(float64(last.Cross)),
		100*float64(last.Cross)/max(float64(last.Touches), 1), short(float64(last.Contended)))
	const most = 12
	for i, e := range r.Events {
		if i == most && len(r.Events) > most+1 {
			fmt.Fprintf(w, "and %d more decisions\n", len(r.Events)-most)
			break
		}
		fmt.Fprintf(w, "%9s  %s\n", e.At.Round(time.Millisecond), e)
	}
}

// String says what was decided and why.
func (e Event) String() string {
	switch e.Kind {
	case "gathered", "scattered":
		return fmt.Sprintf("group %d %s: %s touches/s scattered, %s together", e.Group&0xff, e.Kind, short(float64(e.A)), short(float64(e.B)))
	default:
		return fmt.Sprintf("%s: %d of %d channels voted for fewer cores", e.Kind, e.A, e.B)
	}
}

func most(v []float64) float64 {
	m := 0.0
	for _, x := range v {
		m = max(m, x)
	}
	return m
}

func bars(v []float64) string {
	const levels = " ▁▂▃▄▅▆▇█"
	m := most(v)
	var b strings.Builder
	for _, x := range v {
		i := 0
		if m > 0 {
			i = int(x/m*8 + 0.5)
		}
		b.WriteRune([]rune(levels)[i])
	}
	return b.String()
}

func short(x float64) string {
	switch {
	case x >= 1e9:
		return fmt.Sprintf("%.1f G", x/1e9)
	case x >= 1e6:
		return fmt.Sprintf("%.1f M", x/1e6)
	case x >= 1e3:
		return fmt.Sprintf("%.1f k", x/1e3)
	}
	return fmt.Sprintf("%.0f", x)
}
