package taskbench

import (
	"cmp"
	"context"
	"encoding/binary"
	"os"
	"slices"
	"time"

	"hardtack/bench/internal/report"
	"hardtack/msg"
	_ "hardtack/msg/ump"
	"hardtack/task"
	"hardtack/task/conn"
)

var iface = &msg.Interface{
	Name:        "taskbench",
	Fingerprint: msg.Fingerprint{7, 5, 10},
	Messages:    []msg.Message{{Name: "n", Min: 8, Max: 8}},
}

// Latency is one way: half of a round trip of 8 bytes, in nanoseconds.
type Latency struct {
	Receiver    string
	Min, Median float64
	Processor   float64 // the least, of this process
}

// A Kind of receiver of a message, and what makes round trips with it.
type Kind struct {
	Name  string
	Trips func(n int) (time.Duration, error)
}

// Kinds are a Go channel between two goroutines, and the three receivers of a message
// that a task sends: a goroutine without a runtime, a task of another one, and a task of
// the same one.
var Kinds = []Kind{
	{"Go channel, two goroutines", channelTrips},
	{"goroutine without run-time", func(n int) (time.Duration, error) { return connTrips(n, "none") }},
	{"task of another run-time", func(n int) (time.Duration, error) { return connTrips(n, "other") }},
	{"task of the same run-time", func(n int) (time.Duration, error) { return connTrips(n, "same") }},
}

// Messages measures the three receivers of a message that a task sends: a task
// of another runtime, a task of the same one, and a goroutine without a runtime;
// and a Go channel between two goroutines beside them. They take turns.
func Messages(rounds, trips int) ([]Latency, error) {
	list := Kinds
	all, spent := make([][]float64, len(list)), make([][]float64, len(list))
	for range rounds {
		for i, l := range list {
			before := report.Spent()
			d, err := l.Trips(trips)
			if err != nil {
				return nil, err
			}
			spent[i] = append(spent[i], float64((report.Spent()-before).Nanoseconds())/float64(2*trips))
			all[i] = append(all[i], float64(d.Nanoseconds())/float64(2*trips))
		}
	}
	var out []Latency
	for i, l := range list {
		out = append(out, Latency{l.Name, report.Least(all[i]), report.Median(all[i]), report.Least(spent[i])})
	}
	return out, nil
}

func channelTrips(n int) (time.Duration, error) {
	there, back := make(chan uint64), make(chan uint64)
	go func() {
		for v := range there {
			back <- v
		}
	}()
	defer close(there)
	start := time.Now()
	for i := range n {
		there <- uint64(i)
		<-back
	}
	return time.Since(start), nil
}

// bound makes a connection with an address, within this process.
func bound(ctx context.Context) (client, server *msg.Conn, done func(), err error) {
	dir, err := os.MkdirTemp("", "taskbench-")
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	tidy := func() { stop(); os.RemoveAll(dir) }
	o := &msg.Options{Resolver: msg.Directory(dir)}
	s, err := msg.Export(ctx, "echo", iface, o)
	if err != nil {
		tidy()
		return nil, nil, nil, err
	}
	got := make(chan error, 1)
	go func() {
		var err error
		server, err = s.Accept(ctx)
		got <- err
	}()
	if client, err = msg.Connect(ctx, "echo", iface, o); err == nil {
		err = <-got
	}
	if err != nil {
		tidy()
		return nil, nil, nil, err
	}
	return client, server, func() { client.Close(); server.Close(); s.Close(); tidy() }, nil
}

// echo sends n messages back.
func echo(c task.Ctx, x *conn.Conn, n int) error {
	var buf []byte
	for range n {
		num, body, err := x.Receive(c, context.Background(), buf)
		if err != nil {
			return err
		}
		if err := x.Send(c, context.Background(), num, body); err != nil {
			return err
		}
		buf = body
	}
	return nil
}

func connTrips(n int, where string) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	near, far, done, err := bound(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	workers := 2
	if where != "same" {
		workers = 1
	}
	rt, err := task.New(task.WithWorkers(workers))
	if err != nil {
		return 0, err
	}
	defer rt.Close()
	other := make(chan error, 1)
	switch where {
	case "none":
		go func() { other <- plainEcho(ctx, far, n) }()
	case "other":
		rt2, err := task.New(task.WithWorkers(1))
		if err != nil {
			return 0, err
		}
		defer rt2.Close()
		go func() {
			e, err := task.RunOn(rt2, ctx, func(c task.Ctx) error { return echo(c, conn.New(c, far), n) })
			other <- first(e, err)
		}()
	default:
		go func() {
			e, err := task.RunOn(rt, ctx, func(c task.Ctx) error { return echo(c, conn.New(c, far), n) })
			other <- first(e, err)
		}()
	}
	e, err := task.RunOn(rt, ctx, func(c task.Ctx) error {
		x := conn.New(c, near)
		start := time.Now()
		_, err := trips(c, x, n, nil)
		took = time.Since(start)
		return err
	})
	if err = first(e, err); err != nil {
		return 0, err
	}
	return took, <-other
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// trips makes n round trips and tells the worst; each is told to note.
func trips(c task.Ctx, x *conn.Conn, n int, note func(i int, d time.Duration)) (worst time.Duration, err error) {
	var b [8]byte
	buf := make([]byte, 8)
	for i := range n {
		binary.LittleEndian.PutUint64(b[:], uint64(i))
		var start time.Time
		if note != nil {
			start = time.Now()
		}
		if err := x.Send(c, context.Background(), 1, b[:]); err != nil {
			return 0, err
		}
		if _, buf, err = x.Receive(c, context.Background(), buf); err != nil {
			return 0, err
		}
		if note != nil {
			d := time.Since(start)
			worst = max(worst, d)
			note(i, d)
		}
	}
	return worst, nil
}

func plainEcho(ctx context.Context, c *msg.Conn, n int) error {
	for range n {
		num, body, err := c.Next(ctx)
		if err != nil {
			return err
		}
		slot, err := c.Begin(ctx)
		if err != nil {
			return err
		}
		copy(slot[:], body)
		c.Commit(num, len(body))
	}
	return nil
}

// Removal is a series of round trips during which the worker's core was removed.
type Removal struct {
	Trips          []float64 // one-way times, microseconds
	At             int       // the trip before which the core was removed
	Before, During float64   // worst one-way time without and with the removal

	AllBefore, AllDuring []float64 // the same of all repetitions, least first
}

// RemoveCore measures figure 5.11: the peer is an ordinary goroutine, the client
// a task on two workers whose own seat is removed half way. With each repetition
// the same number of trips without a removal tells what the machine does alone.
// The result is the repetition with the median worst.
func RemoveCore(n, reps int) (*Removal, error) {
	return Remove(n, reps, func(rt *task.Runtime) { _ = rt.SetWorkers(1) }, func(*task.Runtime) error { return nil }, task.WithWorkers(2))
}

// Remove is RemoveCore with another way to remove the core, and to bring it back after
// each repetition, for a runtime with options.
func Remove(n, reps int, remove func(*task.Runtime), back func(*task.Runtime) error, options ...task.Option) (*Removal, error) {
	var all []*Removal
	for range reps {
		r, err := removeOnce(n, remove, back, options)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *Removal) int { return cmp.Compare(a.During, b.During) })
	typical := all[len(all)/2]
	for _, r := range all {
		typical.AllBefore = append(typical.AllBefore, r.Before)
		typical.AllDuring = append(typical.AllDuring, r.During)
	}
	slices.Sort(typical.AllBefore)
	return typical, nil
}

func removeOnce(n int, remove func(*task.Runtime), back func(*task.Runtime) error, options []task.Option) (*Removal, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	near, far, done, err := bound(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	other := make(chan error, 1)
	go func() { other <- plainEcho(ctx, far, 2*n) }()
	rt, err := task.New(options...)
	if err != nil {
		return nil, err
	}
	defer rt.Close()
	r := &Removal{At: n / 2}
	e, err := task.RunOn(rt, ctx, func(c task.Ctx) error {
		x := conn.New(c, near, conn.Rebind())
		before, err := trips(c, x, n, func(int, time.Duration) {})
		if err != nil {
			return err
		}
		r.Before = float64(before.Nanoseconds()) / 2000
		during, err := trips(c, x, n, func(i int, d time.Duration) {
			r.Trips = append(r.Trips, float64(d.Nanoseconds())/2000)
			if i == r.At-1 {
				go remove(rt)
			}
			plain(c) // a spawn: where a worker sees that its seat has gone
		})
		r.During = float64(during.Nanoseconds()) / 2000
		return err
	})
	if err = first(e, err); err != nil {
		return nil, err
	}
	return r, first(<-other, back(rt))
}

func plain(c task.Ctx) { task.Spawn(c, fib, 1).Sync(c) }
