// Command workers is a pool of workers behind one name. A request carries the
// channel for its answer, so whoever does the work answers the client directly,
// and the pool keeps no table of who asked what.
//
//	go run ./examples/workers pool 4 &
//	go run ./examples/workers ask 10 20 30
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"

	"hardtack/examples/workers/answers"
	"hardtack/examples/workers/workers"
	"hardtack/msg"
)

const name = "workers"

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	numbers := make([]uint64, 0, len(os.Args))
	var err error
	for _, a := range os.Args[min(2, len(os.Args)):] {
		n, perr := strconv.ParseUint(a, 10, 32)
		if perr != nil {
			err = perr
		}
		numbers = append(numbers, n)
	}
	switch {
	case err != nil:
	case len(numbers) == 1 && os.Args[1] == "pool":
		err = pool(ctx, uint32(numbers[0]))
	case len(numbers) > 0 && os.Args[1] == "ask":
		err = ask(ctx, numbers)
	default:
		err = errors.New("usage: workers pool N | ask NUMBER [NUMBER]")
	}
	if err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

// pool takes requests of all clients into one Go channel, which n workers read.
func pool(ctx context.Context, n uint32) error {
	s, err := workers.Export(ctx, name, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	requests := make(chan *workers.Sum)
	for i := range n {
		go work(ctx, i+1, requests)
	}
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
				case *workers.Sum:
					requests <- m
				}
			}
		}()
	}
}

// work answers each request on the channel that came with it.
func work(ctx context.Context, worker uint32, requests chan *workers.Sum) {
	for r := range requests {
		if r.Reply.End == nil {
			r.Reply.Close() // nothing, or a file: the answer can go nowhere
			continue
		}
		reply, err := answers.Adopt(r.Reply.End, nil)
		if err != nil {
			log.Print(err)
			continue
		}
		sum := uint64(0)
		for i := range r.Upto + 1 {
			sum += i
		}
		if err := reply.SendTotal(ctx, &answers.Total{Sum: sum, Worker: worker}); err != nil {
			log.Print(err)
		}
		reply.Close() // what was sent arrives before the end
	}
}

// ask sends all requests at once, and then waits for the answers.
func ask(ctx context.Context, numbers []uint64) error {
	c, err := workers.Connect(ctx, name, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	replies := make([]*answers.Conn, len(numbers))
	for i, n := range numbers {
		mine, theirs, err := answers.Pair(ctx, nil)
		if err != nil {
			return err
		}
		defer mine.Close()
		end, err := theirs.End()
		if err != nil {
			return err
		}
		if err := c.SendSum(ctx, &workers.Sum{Upto: n, Reply: msg.Cap{End: end}}); err != nil {
			return err
		}
		replies[i] = mine
	}
	for i, r := range replies {
		m, err := r.Recv(ctx)
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *answers.Total:
			fmt.Printf("0 + … + %d = %d, says worker %d\n", numbers[i], m.Sum, m.Worker)
		}
	}
	return nil
}
