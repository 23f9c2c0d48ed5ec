// Command pingpong is the smallest program on typed channels: a server that
// answers pings, and a client that sends them one after the other and says how
// long a round trip took. c/pingpong.c is the same in C; any client goes with any
// server.
//
//	go run ./examples/pingpong serve &
//	go run ./examples/pingpong ping 100000
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
	"hardtack/msg/debug"
)

const name = "pingpong"

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if stop, err := debug.Start(); err == nil {
		defer stop() // hardtack msg top sees us
	}
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "serve":
		err = serve(ctx)
	case len(os.Args) == 3 && os.Args[1] == "ping":
		var n uint64
		if n, err = strconv.ParseUint(os.Args[2], 10, 32); err == nil {
			err = run(ctx, uint32(n))
		}
	default:
		err = errors.New("usage: pingpong serve | ping N")
	}
	if err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

// serve answers all comers.
func serve(ctx context.Context) error {
	s, err := ping.Export(ctx, name, nil)
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
		go answer(ctx, c)
	}
}

// answer is the channel form: messages come out of one Go channel and go into
// another.
func answer(ctx context.Context, c *ping.Conn) {
	ch := c.Channels()
	for m := range ch.Recv {
		switch m := m.(type) {
		case *ping.Ping:
			ch.Send <- &ping.Pong{ClientID: m.ClientID, MsgID: m.MsgID}
		case *ping.Pong:
			log.Print("a client sent a pong")
		}
	}
	close(ch.Send) // Errs is closed once nothing is left to send
	for err := range ch.Errs {
		log.Print(err)
	}
}

// run is the direct form: nothing is allocated for a message.
func run(ctx context.Context, n uint32) error {
	c, err := ping.Connect(ctx, name, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	id := uint32(os.Getpid())
	start := time.Now()
	for i := range n {
		if err := c.SendPing(ctx, &ping.Ping{ClientID: id, MsgID: i}); err != nil {
			return err
		}
		m, err := c.Recv(ctx)
		if err != nil {
			return err
		}
		if pong, ok := m.(*ping.Pong); !ok || pong.MsgID != i || pong.ClientID != id {
			return &msg.PeerError{Reason: fmt.Sprintf("%+v in answer to ping %d", m, i)}
		}
	}
	fmt.Printf("%d round trips, %v each\n", n, time.Since(start)/time.Duration(max(n, 1)))
	return nil
}
