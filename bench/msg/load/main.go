// Command load measures one thing about typed channels between two processes of
// its own, each pinned to a CPU, and prints nanoseconds per operation. bench/msg
// runs it beside the references in C.
//
//	load MODE COUNT SIZE CPU CPU
//
//	direct     round trip of 8 or 56 bytes, Send and Recv, polled
//	channel    the same through Go channels
//	handover   what that costs at least: direct, by a goroutine that has another
//	           do the rest and waits for it, over channels without room
//	rpc        round trip of a generated call
//	parked     direct, but both sides sleep between messages
//	adaptive   direct, spinning or sleeping as the library chooses
//	flow       one way of 56 bytes or more
//	chanflow   the same through Go channels
//	sides      what flow takes on either side by itself: two figures, of the send and the receipt
//	socket     round trip over a Unix socket; sockflow one way
//	pipe       round trip over two pipes
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/bench/msg/trip"
	"hardtack/msg"
	_ "hardtack/msg/ump"
)

type job struct {
	mode string
	n    int
	size int
}

func main() {
	if len(os.Args) != 6 {
		fail(fmt.Errorf("usage: load MODE COUNT SIZE CPU CPU"))
	}
	j := job{mode: os.Args[1]}
	var cpus [2]int
	for i, p := range []*int{&j.n, &j.size, &cpus[0], &cpus[1]} {
		v, err := strconv.Atoi(os.Args[i+2])
		fail(err)
		*p = v
	}
	if j.mode == "sides" {
		pinned(cpus[0])
		fail(sides(j.n))
		return
	}
	if dir := os.Getenv("LOAD_DIR"); dir != "" {
		pinned(cpus[1])
		if j.plain() {
			fail(j.echo(os.NewFile(3, "in"), os.NewFile(4, "out")))
			return
		}
		fail(j.serve(dir))
		return
	}
	pinned(cpus[0])
	dir, err := os.MkdirTemp("", "load-")
	fail(err)
	kid := exec.Command("/proc/self/exe", os.Args[1:]...)
	kid.Env = append(os.Environ(), "LOAD_DIR="+dir, "LOAD_PINNED=")
	kid.Stderr = os.Stderr
	kid.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var in, out *os.File
	if j.plain() {
		in, out, kid.ExtraFiles, err = j.files()
		fail(err)
	}
	err = kid.Start()
	var d time.Duration
	if err == nil {
		if j.plain() {
			d, err = j.trips(in, out)
			in.Close()
			out.Close()
		} else {
			d, err = j.run(dir)
		}
		if err != nil {
			kid.Process.Kill()
		}
		kid.Wait()
	}
	os.RemoveAll(dir)
	fail(err)
	fmt.Printf("%.2f\n", float64(d.Nanoseconds())/float64(j.n))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// pinned runs this program again with all its threads on one CPU.
func pinned(cpu int) {
	if os.Getenv("LOAD_PINNED") == "1" {
		return
	}
	var set unix.CPUSet
	set.Set(cpu)
	fail(unix.SchedSetaffinity(0, &set))
	os.Setenv("LOAD_PINNED", "1")
	fail(syscall.Exec("/proc/self/exe", os.Args, os.Environ()))
}

func (j job) options(dir string) *msg.Options {
	o := &msg.Options{Resolver: msg.Directory(dir)}
	switch j.mode {
	case "parked":
		o.Spin = -1
	case "adaptive":
	default:
		o.Spin = 100 * time.Millisecond
	}
	return o
}

// Sink is what the receiver computes of the messages, so that it reads them.
var Sink uint64

func (j job) serve(dir string) error {
	ctx := context.Background()
	s, err := trip.Export(ctx, "load", j.options(dir))
	if err != nil {
		return err
	}
	c, err := s.Accept(ctx)
	if err != nil {
		return err
	}
	switch j.mode {
	case "channel":
		ch := c.Channels()
		for m := range ch.Recv {
			ch.Send <- m
		}
		return nil
	case "handover":
		return echoByChannel(ctx, c)
	case "chanflow":
		ch := c.Channels()
		for m := range ch.Recv {
			if _, ok := m.(*trip.Done); ok {
				ch.Send <- m
			}
		}
		return nil
	}
	for {
		m, err := c.Recv(ctx)
		if err != nil {
			return nil // the peer has closed
		}
		switch m := m.(type) {
		case *trip.Small:
			err = c.SendSmall(ctx, m)
		case *trip.Full:
			if j.mode == "flow" {
				Sink += m.Seq
				continue
			}
			err = c.SendFull(ctx, m)
		case *trip.Large:
			for i := 0; i+8 <= len(m.Data); i += 64 {
				Sink += uint64(m.Data[i])
			}
		case *trip.Done:
			err = c.SendDone(ctx, m)
		case *trip.AskCall:
			err = c.ReplyAsk(ctx, m, &trip.AskReply{Twice: 2 * m.Seq})
		case *trip.AskReply:
			err = fmt.Errorf("a reply to nothing")
		}
		if err != nil {
			return err
		}
	}
}

// run does a tenth of the work to warm up, and measures the rest.
func (j job) run(dir string) (time.Duration, error) {
	ctx := context.Background()
	c, err := trip.Connect(ctx, "load", j.options(dir))
	if err != nil {
		return 0, err
	}
	defer c.Close()
	var do func(n int) error
	switch j.mode {
	case "direct", "parked", "adaptive":
		do = func(n int) error { return direct(ctx, c, n, j.size) }
	case "channel":
		do = byChannels(c)
	case "handover":
		do = byHandover(ctx, c)
	case "rpc":
		k := trip.NewClient(c, nil)
		do = func(n int) error {
			for i := range uint64(n) {
				r, err := k.Ask(ctx, trip.AskCall{Seq: i})
				if err != nil {
					return err
				}
				if r.Twice != 2*i {
					return fmt.Errorf("%d", r.Twice)
				}
			}
			return nil
		}
	case "flow":
		do = func(n int) error { return flow(ctx, c, n, j.size) }
	case "chanflow":
		ch := c.Channels()
		do = func(n int) error {
			for i := range n {
				ch.Send <- &trip.Full{Seq: uint64(i)}
			}
			ch.Send <- &trip.Done{}
			if _, ok := <-ch.Recv; !ok {
				return c.Err()
			}
			return nil
		}
	default:
		return 0, fmt.Errorf("no mode %s", j.mode)
	}
	if err := do(j.n / 10); err != nil {
		return 0, err
	}
	start := time.Now()
	err = do(j.n)
	return time.Since(start), err
}

func direct(ctx context.Context, c *trip.Conn, n, size int) error {
	if size == 8 {
		m := &trip.Small{}
		for i := range n {
			m.Seq = uint64(i)
			if err := c.SendSmall(ctx, m); err != nil {
				return err
			}
			back, err := c.Recv(ctx)
			if err != nil {
				return err
			}
			m = back.(*trip.Small)
		}
		return nil
	}
	m := &trip.Full{}
	for i := range n {
		m.Seq = uint64(i)
		if err := c.SendFull(ctx, m); err != nil {
			return err
		}
		back, err := c.Recv(ctx)
		if err != nil {
			return err
		}
		m = back.(*trip.Full)
	}
	return nil
}

func flow(ctx context.Context, c *trip.Conn, n, size int) error {
	full, large := &trip.Full{}, &trip.Large{Data: make([]byte, max(size-4, 0))}
	for i := range n {
		var err error
		if size == 56 {
			full.Seq = uint64(i)
			err = c.SendFull(ctx, full)
		} else {
			err = c.SendLarge(ctx, large)
		}
		if err != nil {
			return err
		}
	}
	if err := c.SendDone(ctx, &trip.Done{}); err != nil {
		return err
	}
	_, err := c.Recv(ctx)
	return err
}

// echoByChannel sends each message back by way of another goroutine.
func echoByChannel(ctx context.Context, c *trip.Conn) error {
	in, out := make(chan trip.Msg), make(chan trip.Msg)
	go func() {
		for m := range in {
			out <- m
		}
	}()
	for {
		m, err := c.Recv(ctx)
		if err != nil {
			return nil // the peer has closed
		}
		in <- m
		if err := c.Send(ctx, <-out); err != nil {
			return err
		}
	}
}

// byChannels makes round trips in the channel form.
func byChannels(c *trip.Conn) func(n int) error {
	ch := c.Channels()
	return func(n int) error {
		m := &trip.Small{}
		for i := range n {
			m.Seq = uint64(i)
			ch.Send <- m
			back, ok := <-ch.Recv
			if !ok {
				return c.Err()
			}
			m = back.(*trip.Small)
		}
		return nil
	}
}

// byHandover makes round trips through a goroutine that has the connection.
func byHandover(ctx context.Context, c *trip.Conn) func(n int) error {
	in, out := make(chan trip.Msg), make(chan trip.Msg)
	failed := make(chan error, 1)
	go func() {
		for m := range out {
			err := c.Send(ctx, m)
			if err == nil {
				m, err = c.Recv(ctx)
			}
			if err != nil {
				failed <- err
				close(in)
				return
			}
			in <- m
		}
	}()
	return func(n int) error {
		m := trip.Msg(&trip.Small{})
		for i := range n {
			m.(*trip.Small).Seq = uint64(i)
			out <- m
			var ok bool
			if m, ok = <-in; !ok {
				return <-failed
			}
		}
		return nil
	}
}
