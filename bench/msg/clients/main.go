// Command clients has a number of clients ping one server, each one ping after the
// other, and prints the nanoseconds from a ping to the next, of all clients
// together: the time that all took, by all pings.
//
//	clients -server PROGRAM -client go|PROGRAM -k CLIENTS -n PINGS
//
// The server is crowd with its flags, or the C server of crowd; the client this
// program again, or what c/client.c is compiled to. Each is a process of its own,
// and none is pinned. They wait as the library chooses.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"hardtack/bench/msg/child"
	"hardtack/idl/ping"
	"hardtack/msg"
	_ "hardtack/msg/ump"
)

func main() {
	server := flag.String("server", "", "the server's program; with a directory behind it, it serves there")
	with := flag.String("client", "go", "go, or the client's program")
	k := flag.Int("k", 1, "how many clients")
	n := flag.Int("n", 1000000, "how many pings of all of them")
	dir := flag.String("dir", "", "where the sockets are; for this program's own use")
	flag.Parse()
	var err error
	if *dir != "" {
		err = client(*dir, *n)
	} else {
		err = measure(strings.Fields(*server), *with, *k, *n)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

func client(dir string, n int) error {
	ctx := context.Background()
	c, err := ping.Connect(ctx, "crowd", &msg.Options{Resolver: msg.Directory(dir)})
	if err != nil {
		return err
	}
	defer c.Close()
	trips := func(n int) error {
		m := &ping.Ping{}
		for i := range uint32(n) {
			m.MsgID = i
			if err := c.SendPing(ctx, m); err != nil {
				return err
			}
			back, err := c.Recv(ctx)
			if err != nil {
				return err
			}
			if p, ok := back.(*ping.Pong); !ok || p.MsgID != i {
				return errors.New("another answer")
			}
		}
		return nil
	}
	if err := trips(100); err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return err
	}
	if err := trips(n); err != nil {
		return err
	}
	fmt.Println("done")
	return nil
}

func measure(server []string, with string, clients, n int) error {
	if len(server) == 0 || clients < 1 {
		return errors.New("which server, and how many clients?")
	}
	dir, err := os.MkdirTemp("", "clients-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := child.Start(server[0], append(server[1:], dir)...)
	if err != nil {
		return err
	}
	defer s.Stop()
	if err := s.Wait("ready"); err != nil {
		return err
	}
	var all []*child.Child
	for range clients {
		name, args := with, []string{dir, fmt.Sprint(n / clients)}
		if with == "go" {
			name, args = "/proc/self/exe", []string{"-dir", dir, "-n", fmt.Sprint(n / clients)}
		}
		k, err := child.Start(name, args...)
		if err != nil {
			return err
		}
		defer k.Stop()
		if err := k.Wait("ready"); err != nil {
			return err
		}
		all = append(all, k)
	}
	start := time.Now()
	for _, k := range all {
		k.Go()
	}
	for _, k := range all {
		if err := k.Wait("done"); err != nil {
			return err
		}
	}
	fmt.Printf("%.2f\n", float64(time.Since(start).Nanoseconds())/float64(n/clients*clients))
	return nil
}
