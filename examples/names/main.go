// Command names uses the name service directly, without connections: a program
// says that it is there, others find it, count it, wait for it, and see it go.
//
//	go run ./examples/names worker alice &      there is a worker
//	go run ./examples/names worker bob &        and another
//	go run ./examples/names workers             list, count, and watch them
//
// Nobody starts a server: the first of these programs is one, and when it ends
// another takes over.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"

	"hardtack/msg/names"
)

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := names.Open(ctx, names.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dir.Close()
	switch {
	case len(os.Args) == 3 && os.Args[1] == "worker":
		err = worker(ctx, dir, os.Args[2])
	case len(os.Args) == 2 && os.Args[1] == "workers":
		err = workers(ctx, dir)
	default:
		err = errors.New("usage: names worker NAME | workers")
	}
	if err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

// worker is there until it is interrupted, or killed. The service gives it a
// number of its own.
func worker(ctx context.Context, dir names.Directory, value string) error {
	e, err := dir.Set(ctx, "worker", []byte(value), names.Sequence)
	if err != nil {
		return err
	}
	fmt.Printf("%s is %s\n", value, e.Name)
	<-ctx.Done()
	return nil
}

// workers tells of workers as they come and go.
func workers(ctx context.Context, dir names.Directory) error {
	w, err := dir.Watch(ctx, "worker.")
	if err != nil {
		return err
	}
	defer w.Close()
	for {
		ev, err := w.Next(ctx)
		if err != nil {
			return err
		}
		switch ev.Kind {
		case names.Put:
			fmt.Printf("%s is %s, process %d\n", ev.Entry.Value, ev.Entry.Name, ev.Entry.PID)
		case names.Gone:
			fmt.Printf("%s is gone\n", ev.Entry.Value)
		case names.Synced:
		}
		n, err := dir.Count(ctx, "worker")
		if err != nil {
			return err
		}
		fmt.Println("workers:", n)
	}
}
