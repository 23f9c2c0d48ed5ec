// Package msgtop shows the connections of running programs: the table of `hardtack msg
// top`, and the lines of `hardtack msg trace`. The programs answer through package
// msg/debug.
package msgtop

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"hardtack/msg/debug"
)

// A Row is one end of a connection, with rates since the last look.
type Row struct {
	PID     int
	Command string
	debug.Connection
	Out, In float64 // messages a second; 0 at the first look
}

// Top looks at all processes of a directory again and again.
type Top struct {
	Dir  string
	last map[key]sample
}

type key struct {
	pid int
	id  uint64
}

type sample struct {
	at            time.Time
	sent, arrived uint64
}

// Look asks every process once. Those that do not answer are skipped: they have
// ended, or are stopped.
func (t *Top) Look(ctx context.Context) ([]Row, error) {
	pids, err := debug.Processes(t.Dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	shots := make([]*debug.Snapshot, len(pids))
	var all sync.WaitGroup
	for i, pid := range pids {
		all.Go(func() {
			if s, err := debug.LookAt(ctx, t.Dir, pid); err == nil {
				shots[i] = &s
			}
		})
	}
	all.Wait()
	now := map[key]sample{}
	var rows []Row
	for _, s := range shots {
		if s == nil {
			continue
		}
		for _, c := range s.Connections {
			k := key{s.PID, c.ID}
			r := Row{PID: s.PID, Command: s.Command, Connection: c}
			if before, ok := t.last[k]; ok {
				if d := s.Time.Sub(before.at).Seconds(); d > 0 {
					// A session that was bound again may count again.
					r.Out = max(0, float64(c.Sent)-float64(before.sent)) / d
					r.In = max(0, float64(c.Arrived)-float64(before.arrived)) / d
				}
			}
			now[k] = sample{s.Time, c.Sent, c.Arrived}
			rows = append(rows, r)
		}
	}
	t.last = now
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Out+b.In, a.Out+a.In), cmp.Compare(a.PID, b.PID), cmp.Compare(a.ID, b.ID))
	})
	return rows, nil
}

// Print writes the table.
func Print(w io.Writer, rows []Row) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "PID\tCONN\tOUT/s\tIN/s\tWAITING\tRECEIVER\tPEER'S\tOVER\tPEER\tINTERFACE\tCOMMAND\t")
	for _, r := range rows {
		fmt.Fprintf(t, "%d\t%d\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.PID, r.ID, rate(r.Out), rate(r.In),
			r.Waiting, state(r.Parked), state(r.PeerParked), r.Transport, clean(r.Peer), clean(r.Interface), clean(r.Command))
	}
	return t.Flush()
}

func state(parked bool) string {
	if parked {
		return "parked"
	}
	return "awake"
}

func rate(r float64) string {
	switch {
	case r >= 1e6:
		return strconv.FormatFloat(r/1e6, 'f', 2, 64) + "M"
	case r >= 1e4:
		return strconv.FormatFloat(r/1e3, 'f', 1, 64) + "k"
	}
	return strconv.FormatFloat(r, 'f', 0, 64)
}

// clean keeps what a program says of itself from steering a terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}

// Directory is where this user's programs can be asked.
func Directory() string { return debug.Directory() }

// Want says which connections to trace: those of an interface, of a process, or
// one, "PID/CONN".
type Want struct {
	Interface string
	PID       int
	Conn      uint64
}

// ParseWant reads a NAME.
func ParseWant(name string) (w Want, err error) {
	pid, conn, one := strings.Cut(name, "/")
	if w.PID, err = strconv.Atoi(pid); err != nil {
		if one {
			return w, fmt.Errorf("%q is neither an interface nor PID/CONN", name)
		}
		return Want{Interface: name}, nil
	}
	if one {
		if w.Conn, err = strconv.ParseUint(conn, 10, 64); err != nil || w.Conn == 0 {
			return w, fmt.Errorf("%q: a connection has a number of its own, as `hardtack msg top` shows", name)
		}
	}
	return w, nil
}

// Trace writes a line for each message that passes in the processes of dir, also
// in those that start later, until ctx is done.
func Trace(ctx context.Context, w io.Writer, dir string, want Want) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var failed error
	traced := map[int]bool{} // guarded by mu
	var all sync.WaitGroup
	follow := func(pid int) {
		for r, err := range debug.Trace(ctx, dir, pid, debug.Request{Interface: want.Interface, Conn: want.Conn}) {
			if err != nil {
				break // it has ended
			}
			mu.Lock()
			if _, err := io.WriteString(w, Line(pid, r)); err != nil && failed == nil {
				failed = err
				cancel()
			}
			mu.Unlock()
		}
		mu.Lock()
		delete(traced, pid)
		mu.Unlock()
	}
	for {
		pids, err := debug.Processes(dir)
		if err != nil {
			return err
		}
		for _, pid := range pids {
			mu.Lock()
			if !traced[pid] && (want.PID == 0 || want.PID == pid) {
				traced[pid] = true
				all.Go(func() { follow(pid) })
			}
			mu.Unlock()
		}
		if want.PID != 0 && !slices.Contains(pids, want.PID) {
			cancel()
			all.Wait()
			return fmt.Errorf("process %d cannot be looked into", want.PID)
		}
		select {
		case <-ctx.Done():
			all.Wait()
			return failed
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Line is how a traced message is written.
func Line(pid int, r debug.Traced) string {
	arrow := "<-"
	if r.Out {
		arrow = "->"
	}
	s := fmt.Sprintf("%s %d/%d %s %s %s\n", r.Time.Format("15:04:05.000000"), pid, r.Conn, clean(r.Interface), arrow, clean(r.Text))
	if r.Lost > 0 {
		s = fmt.Sprintf("… %d messages came too fast to be shown\n", r.Lost) + s
	}
	return s
}
