// Command anywhere is a service and its client, which know nothing of where the other one is: in
// the same process, in another one, under another kernel of the machine (docs/clusters.md) or in
// another machine. Only the options differ, which options makes.
//
//	$ anywhere ask goroutine 100
//
//	$ anywhere serve process &
//	$ anywhere ask process 100
//
//	$ cluster run 1 -- anywhere serve cluster &
//	$ anywhere ask cluster 100
//
//	machine a$ HARDTACK_NATS_LISTEN=0.0.0.0:4222 anywhere serve machine
//	join with HARDTACK_NATS=nats://8f2…@a:4222
//	machine b$ HARDTACK_NATS=nats://8f2…@a:4222 anywhere ask machine 100
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"

	"hardtack/idl/ping"
	"hardtack/msg"
	"hardtack/msg/cluster"
	"hardtack/msg/names"
	"hardtack/msg/nats"
)

const name = "anywhere"

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	usage := errors.New("usage: anywhere serve WHERE | ask WHERE N, where WHERE is goroutine, process, cluster or machine")
	if len(args) < 2 {
		return usage
	}
	o, err := options(ctx, args[1])
	if err != nil {
		return err
	}
	switch {
	case args[0] == "serve" && len(args) == 2:
		s, err := ping.Export(ctx, name, o)
		if err != nil {
			return err
		}
		fmt.Println("serving", name)
		return serve(ctx, s)
	case args[0] == "ask" && len(args) == 3:
		n, err := strconv.ParseUint(args[2], 10, 32)
		if err != nil {
			return err
		}
		if args[1] == "goroutine" {
			s, err := ping.Export(ctx, name, o)
			if err != nil {
				return err
			}
			go serve(ctx, s)
		}
		return ask(ctx, o, uint32(n))
	}
	return usage
}

// options say how a service is found and reached. This is all that depends on where it is.
func options(ctx context.Context, where string) (*msg.Options, error) {
	switch where {
	case "goroutine":
		return &msg.Options{Resolver: here{}, Schemes: []string{"inproc"}}, nil
	case "process":
		return &msg.Options{Schemes: []string{"unix"}}, nil
	case "cluster":
		return &msg.Options{Resolver: cluster.Resolver(msg.DefaultResolver()), Schemes: []string{"unix", cluster.Scheme}}, nil
	case "machine":
		node, err := nats.Open(ctx, nats.Options{})
		if err != nil {
			return nil, err
		}
		far, err := node.Bucket(ctx)
		if err != nil {
			return nil, err
		}
		near, err := names.Open(ctx, names.Options{})
		if err != nil {
			return nil, err
		}
		msg.Register(node)
		if node.Serving() {
			fmt.Println("join with " + nats.URLVariable + "=" + node.URL())
		}
		return &msg.Options{Resolver: names.Resolver(near, far), Schemes: []string{"unix", "nats"}}, nil
	}
	return nil, fmt.Errorf("%q is no place", where)
}

// here finds services of this process.
type here struct{}

func (here) Place(context.Context, string, string) (string, error) { return "", nil }

func (here) Publish(context.Context, string, msg.Endpoint) (func() error, error) {
	return func() error { return nil }, nil
}

func (here) Resolve(_ context.Context, name string, _ bool) (msg.Endpoint, error) {
	return msg.Endpoint{Addrs: []string{"inproc:" + name}}, nil
}

// serve answers pings.
func serve(ctx context.Context, s ping.Server) error {
	defer s.Close()
	for {
		c, err := s.Accept(ctx)
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			for m, err := range c.All(ctx) {
				p, ok := m.(*ping.Ping)
				if err != nil || !ok || c.SendPong(ctx, &ping.Pong{ClientID: p.ClientID, MsgID: p.MsgID}) != nil {
					return
				}
			}
		}()
	}
}

// ask sends pings and waits for the answer to each.
func ask(ctx context.Context, o *msg.Options, n uint32) error {
	c, err := ping.Connect(ctx, name, o)
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range n {
		if err := c.SendPing(ctx, &ping.Ping{MsgID: i}); err != nil {
			return err
		}
		m, err := c.Recv(ctx)
		if err != nil {
			return err
		}
		if pong, ok := m.(*ping.Pong); !ok || pong.MsgID != i {
			return fmt.Errorf("%+v in answer to ping %d", m, i)
		}
	}
	fmt.Printf("%d round trips over %s\n", n, c.Peer().Scheme)
	return nil
}
