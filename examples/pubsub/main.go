// Command pubsub has publishers and subscribers meet at a broker, all over typed
// channels: the broker is one goroutine that owns the subscriptions, and two for
// each connection.
//
//	go run ./examples/pubsub broker &
//	go run ./examples/pubsub sub weather &
//	go run ./examples/pubsub pub weather "rain, later sun"
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"

	"hardtack/examples/pubsub/pubsub"
	"hardtack/msg"
)

const name = "pubsub"

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "broker":
		err = broker(ctx)
	case len(os.Args) == 3 && os.Args[1] == "sub":
		err = subscribe(ctx, os.Args[2])
	case len(os.Args) == 4 && os.Args[1] == "pub":
		err = publish(ctx, os.Args[2], os.Args[3])
	default:
		err = errors.New("usage: pubsub broker | sub TOPIC | pub TOPIC TEXT")
	}
	if err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

type channels = *msg.Channels[pubsub.Msg]

// said is a message and whose it is; nil is the end of a connection.
type said struct {
	by channels
	m  pubsub.Msg
}

func broker(ctx context.Context) error {
	s, err := pubsub.Export(ctx, name, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	all := make(chan said)
	go meet(all)
	fmt.Println("serving", name)
	for {
		c, err := s.Accept(ctx)
		if err != nil {
			return err
		}
		go func() {
			ch := c.Channels()
			for m := range ch.Recv {
				all <- said{ch, m}
			}
			all <- said{ch, nil}
		}()
	}
}

// meet owns the subscriptions.
func meet(all chan said) {
	topics := map[string]map[channels]bool{}
	for s := range all {
		switch m := s.m.(type) {
		case nil:
			for _, subscribers := range topics {
				delete(subscribers, s.by)
			}
			close(s.by.Send)
		case *pubsub.Subscribe:
			if topics[m.Topic] == nil {
				topics[m.Topic] = map[channels]bool{}
			}
			topics[m.Topic][s.by] = true
			s.by.Send <- &pubsub.Event{Topic: m.Topic, Text: "subscribed"}
		case *pubsub.Publish:
			e := &pubsub.Event{Topic: m.Topic, Text: m.Text}
			for subscriber := range topics[m.Topic] {
				select {
				case subscriber.Send <- e:
				default: // too slow: it misses this one, and holds up nobody
				}
			}
			s.by.Send <- e // to the publisher as a receipt
		case *pubsub.Event:
			log.Print("a client sent an event")
		}
	}
}

func subscribe(ctx context.Context, topic string) error {
	c, err := pubsub.Connect(ctx, name, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SendSubscribe(ctx, &pubsub.Subscribe{Topic: topic}); err != nil {
		return err
	}
	for {
		m, err := c.Recv(ctx)
		if err != nil {
			return err
		}
		if e, ok := m.(*pubsub.Event); ok {
			fmt.Printf("%s: %s\n", e.Topic, e.Text)
		}
	}
}

func publish(ctx context.Context, topic, text string) error {
	c, err := pubsub.Connect(ctx, name, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SendPublish(ctx, &pubsub.Publish{Topic: topic, Text: text}); err != nil {
		return err
	}
	_, err = c.Recv(ctx)
	return err
}
