// Command talk measures messages between two processes, of one kernel or of two.
//
//	serve-far   answers; process 1 of cluster 1
//	talk        asks it many times, then prints `talk LEAST MEDIAN`, in nanoseconds
//	talk paused as talk, after a pause of 5 ms each time, so that both wait in Go's poller
//	talk near   the same with a server of its own kernel
//	talk frames as talk, with an interface that has long messages, so that they pass in frames
//	talk service asks the kernel that it runs under how many frames are free
//	talk polls  sends and receives in rows, with either server, and prints `near SEND RECEIVE` and
//	            `far SEND RECEIVE`, medians of the single calls
//
// Only in the last one both ends poll: an emulator that runs one processor at a time shows no gain
// of that in a round trip.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"hardtack/idl/metrics"
	"hardtack/idl/ping"
	"hardtack/idl/shapes"
	"hardtack/msg"
	"hardtack/msg/cluster"
	"hardtack/msg/kernel"
)

const (
	rounds = 2000
	row    = 32 // messages under way; a ring has room for 60
)

// pause is before each round.
var pause time.Duration

func main() {
	what := filepath.Base(os.Args[0])
	if len(os.Args) > 1 {
		what = os.Args[1]
	}
	if err := run(what); err != nil {
		fmt.Println("failed talk:", err)
	}
}

// options are for a service of this kernel or of another one.
func options(near bool, spin time.Duration) *msg.Options {
	o := &msg.Options{Resolver: msg.Directory("/tmp/names"), Schemes: []string{"unix"}, Spin: spin}
	if !near {
		o.Resolver, o.Schemes = cluster.Resolver(o.Resolver), []string{"unix", "cluster"}
	}
	return o
}

func run(what string) error {
	ctx := context.Background()
	switch what {
	case "serve-far", "serve-near":
		near := what == "serve-near"
		go serveFrames(ctx, options(near, -1))
		go serve(ctx, "polls", options(near, time.Hour))
		return serve(ctx, "echo", options(near, -1))
	case "near", "polls":
		if err := exec.Command("/proc/self/exe", "serve-near").Start(); err != nil {
			return err
		}
	}
	switch what {
	case "near":
		return ask(ctx, options(true, -1))
	case "paused":
		pause = 5 * time.Millisecond
	case "service":
		return askService(ctx)
	case "frames":
		return askFrames(ctx, options(false, -1))
	case "polls":
		if err := rows(ctx, "near", options(true, time.Hour)); err != nil {
			return err
		}
		return rows(ctx, "far", options(false, time.Hour))
	}
	return ask(ctx, options(false, -1))
}

func serve(ctx context.Context, name string, o *msg.Options) error {
	s, err := ping.Export(ctx, name, o)
	if err != nil {
		return err
	}
	c, err := s.Accept(ctx)
	if err != nil {
		return err
	}
	for m, err := range c.All(ctx) {
		p, ok := m.(*ping.Ping)
		if err != nil || !ok || c.Send(ctx, &ping.Pong{ClientID: p.ClientID, MsgID: p.MsgID}) != nil {
			break
		}
	}
	return nil
}

func serveFrames(ctx context.Context, o *msg.Options) error {
	s, err := shapes.Export(ctx, "frames", o)
	if err != nil {
		return err
	}
	c, err := s.Accept(ctx)
	if err != nil {
		return err
	}
	for m, err := range c.All(ctx) {
		if err != nil || c.Send(ctx, m) != nil {
			break
		}
	}
	return nil
}

// connect tries until the service is there.
func connect[C any](f func() (C, error)) (c C, err error) {
	for range 1000 {
		if c, err = f(); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return c, err
}

func ask(ctx context.Context, o *msg.Options) error {
	c, err := connect(func() (*ping.Conn, error) { return ping.Connect(ctx, "echo", o) })
	if err != nil {
		return err
	}
	defer c.Close()
	return measure(func() error {
		if err := c.Send(ctx, &ping.Ping{ClientID: 1, MsgID: 2}); err != nil {
			return err
		}
		_, err := c.Recv(ctx)
		return err
	})
}

func askFrames(ctx context.Context, o *msg.Options) error {
	c, err := connect(func() (*shapes.Conn, error) { return shapes.Connect(ctx, "frames", o) })
	if err != nil {
		return err
	}
	defer c.Close()
	return measure(func() error {
		if err := c.Send(ctx, &shapes.MsgMsg{S: "hello"}); err != nil {
			return err
		}
		_, err := c.Recv(ctx)
		return err
	})
}

func askService(ctx context.Context) error {
	c, err := connect(func() (*metrics.Conn, error) { return metrics.Connect(ctx, "metrics", kernel.Options()) })
	if err != nil {
		return err
	}
	defer c.Close()
	client := metrics.NewClient(c, nil)
	return measure(func() error {
		_, err := client.Frames(ctx, metrics.FramesCall{})
		return err
	})
}

func measure(round func() error) error {
	took := make([]time.Duration, rounds)
	for i := range took {
		time.Sleep(pause)
		begin := time.Now()
		if err := round(); err != nil {
			return err
		}
		took[i] = time.Since(begin)
	}
	slices.Sort(took)
	fmt.Printf("talk %d %d\n", took[0], took[rounds/2])
	return nil
}

// rows sends some messages and then receives the answers, so that most calls need not wait.
func rows(ctx context.Context, name string, o *msg.Options) error {
	c, err := connect(func() (*ping.Conn, error) {
		if name == "near" {
			return ping.Connect(ctx, "polls", o)
		}
		m, err := msg.Dial(ctx, "cluster:1/polls", ping.Interface, o) // the near one has the same name
		if err != nil {
			return nil, err
		}
		return ping.New(m), nil
	})
	if err != nil {
		return err
	}
	defer c.Close()
	var sent, received []time.Duration
	m := &ping.Ping{ClientID: 1, MsgID: 2}
	for range rounds {
		for range row {
			begin := time.Now()
			if err := c.SendPing(ctx, m); err != nil {
				return err
			}
			sent = append(sent, time.Since(begin))
		}
		for range row {
			begin := time.Now()
			if _, err := c.Recv(ctx); err != nil {
				return err
			}
			received = append(received, time.Since(begin))
		}
	}
	slices.Sort(sent)
	slices.Sort(received)
	fmt.Printf("%s %d %d\n", name, sent[len(sent)/2], received[len(received)/2])
	return nil
}
