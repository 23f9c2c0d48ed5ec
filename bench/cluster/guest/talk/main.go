// Command talk measures a message and its answer between two processes, of one kernel or
// of two. Neither polls: an emulator that runs one processor at a time shows no gain of that.
//
//	serve-far   answers; process 1 of cluster 1
//	talk        asks it many times, then prints `talk LEAST MEDIAN`, in nanoseconds
//	talk both   the same with a server of its own kernel
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"hardtack/idl/shapes"
	"hardtack/msg"
	"hardtack/msg/cluster"
)

const rounds = 2000

func main() {
	what := filepath.Base(os.Args[0])
	if len(os.Args) > 1 {
		what = os.Args[1]
	}
	if err := run(what); err != nil {
		fmt.Println("failed talk:", err)
	}
}

func run(what string) error {
	ctx := context.Background()
	near := &msg.Options{Resolver: msg.Directory("/tmp/names"), Schemes: []string{"unix"}, Spin: -1}
	far := &msg.Options{Resolver: cluster.Resolver(msg.Directory("/tmp/names")), Schemes: []string{"unix", "cluster"}, Spin: -1}
	switch what {
	case "serve-far":
		return serve(ctx, far)
	case "serve-near":
		return serve(ctx, near)
	case "both":
		c := exec.Command("/proc/self/exe", "serve-near")
		if err := c.Start(); err != nil {
			return err
		}
		return ask(ctx, near)
	}
	return ask(ctx, far)
}

func serve(ctx context.Context, o *msg.Options) error {
	s, err := shapes.Export(ctx, "echo", o)
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

func ask(ctx context.Context, o *msg.Options) error {
	c, err := shapes.Connect(ctx, "echo", o)
	for tries := 0; err != nil && tries < 1000; tries++ {
		time.Sleep(10 * time.Millisecond)
		c, err = shapes.Connect(ctx, "echo", o)
	}
	if err != nil {
		return err
	}
	took := make([]time.Duration, rounds)
	for i := range took {
		begin := time.Now()
		if err := c.Send(ctx, &shapes.MsgMsg{S: "hello"}); err != nil {
			return err
		}
		if _, err := c.Recv(ctx); err != nil {
			return err
		}
		took[i] = time.Since(begin)
	}
	slices.Sort(took)
	fmt.Printf("talk %d %d\n", took[0], took[rounds/2])
	return c.Close()
}
