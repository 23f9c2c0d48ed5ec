// Command machines is pingpong between two machines. Both sides are written as
// for one machine, except for the first lines of main: the node, and a resolver
// that knows names of other machines.
//
//	machine a$ HARDTACK_NATS_LISTEN=0.0.0.0:4222 machines serve
//	join with HARDTACK_NATS=nats://8f2…@a:4222
//	machine b$ HARDTACK_NATS=nats://8f2…@a:4222 machines ping 100
//
// Here the server's process runs the NATS server too. Where there is a cluster,
// both sides name it in HARDTACK_NATS.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"time"

	"hardtack/idl/ping"
	"hardtack/msg"
	"hardtack/msg/names"
	"hardtack/msg/nats"
)

const name = "far"

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	node, err := nats.Open(ctx, nats.Options{})
	if err != nil {
		return err
	}
	defer node.Close()
	far, err := node.Bucket(ctx)
	if err != nil {
		return err
	}
	near, err := names.Open(ctx, names.Options{})
	if err != nil {
		return err
	}
	defer near.Close()
	msg.Register(node)
	msg.SetResolver(names.Resolver(near, far))

	switch {
	case len(os.Args) == 2 && os.Args[1] == "serve":
		if node.Serving() {
			fmt.Println("join with " + nats.URLVariable + "=" + node.URL())
		}
		return serve(ctx)
	case len(os.Args) == 3 && os.Args[1] == "ping":
		n, err := strconv.ParseUint(os.Args[2], 10, 32)
		if err != nil {
			return err
		}
		return client(ctx, uint32(n))
	}
	return errors.New("usage: machines serve | ping N")
}

// serve can be reached by shared memory and by NATS; who connects takes the
// first that he can.
func serve(ctx context.Context) error {
	s, err := ping.Export(ctx, name, &msg.Options{Schemes: []string{"unix", "nats"}})
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println("serving", name)
	for {
		c, err := s.Accept(ctx)
		if err != nil {
			return err
		}
		go func() {
			ch := c.Channels()
			defer close(ch.Send)
			for m := range ch.Recv {
				switch m := m.(type) {
				case *ping.Ping:
					ch.Send <- &ping.Pong{ClientID: m.ClientID, MsgID: m.MsgID}
				case *ping.Pong:
				}
			}
		}()
	}
}

func client(ctx context.Context, n uint32) error {
	c, err := ping.Connect(ctx, name, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	start := time.Now()
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
	fmt.Printf("%d round trips over %s, %v each\n", n, c.Peer().Scheme, time.Since(start)/time.Duration(max(n, 1)))
	return nil
}
