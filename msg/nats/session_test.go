package nats

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"hardtack/idl/ping"
	"hardtack/msg"
	"hardtack/msg/names"
)

// service exports ping over the transports of opts, at its resolver's.
func service(t *testing.T, opts msg.Options) (client, serving *ping.Conn, addrs map[string]string) {
	t.Helper()
	ctx := testContext(t)
	server, err := ping.Export(ctx, "session", &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	if client, err = ping.Connect(ctx, "session", &opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if serving, err = server.Accept(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { serving.Close() })
	addrs = map[string]string{}
	for i, scheme := range opts.Schemes {
		addrs[scheme] = server.Addrs()[i]
	}
	return client, serving, addrs
}

// flow sends numbered messages until stop is closed, and the last number then;
// the receiver checks that each comes once and in order.
func flow(ctx context.Context, from, to *ping.Conn, stop chan struct{}, done chan error) {
	go func() {
		for i := uint32(1); ; i++ {
			m := ping.Ping{ClientID: 1, MsgID: i}
			select {
			case <-stop:
				m.ClientID = 2 // the last
			default:
			}
			if err := from.SendPing(ctx, &m); err != nil {
				done <- fmt.Errorf("sending %d: %w", i, err)
				return
			}
			if m.ClientID == 2 {
				return
			}
			if i%64 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
	}()
	go func() {
		for i := uint32(1); ; i++ {
			m, err := to.Recv(ctx)
			if err != nil {
				done <- fmt.Errorf("receiving %d: %w", i, err)
				return
			}
			p, ok := m.(*ping.Ping)
			if !ok || p.MsgID != i {
				done <- fmt.Errorf("received %+v in place of %d", m, i)
				return
			}
			if p.ClientID == 2 {
				done <- nil
				return
			}
		}
	}()
}

// A session goes from shared memory to NATS and back, and over a restart of the
// server, while messages flow both ways: each arrives once and in order.
func TestSessionMoves(t *testing.T) {
	s := newServer(t)
	n := open(t, s.url)
	msg.Register(n)
	ctx := testContext(t)
	opts := msg.Options{Resolver: msg.Directory(t.TempDir()), Schemes: []string{"unix", "nats"}}
	client, serving, addrs := service(t, opts)
	stop, done := make(chan struct{}), make(chan error, 4)
	flow(ctx, client, serving, stop, done)
	flow(ctx, serving, client, stop, done)
	at := func(scheme string) {
		t.Helper()
		if got := client.Peer().Scheme; got != scheme {
			t.Errorf("the connection is over %q, not %s", got, scheme)
		}
	}
	at("unix")
	for range 3 {
		time.Sleep(30 * time.Millisecond)
		if err := client.Rebind(ctx, addrs["nats"]); err != nil {
			t.Fatalf("to NATS: %v", err)
		}
		at("nats")
		time.Sleep(30 * time.Millisecond)
		s.stop()
		time.Sleep(30 * time.Millisecond)
		s.start()
		time.Sleep(100 * time.Millisecond)
		if err := client.Rebind(ctx, addrs["unix"]); err != nil {
			t.Fatalf("to shared memory: %v", err)
		}
		at("unix")
	}
	if err := client.Rebind(ctx, addrs["nats"]); err != nil {
		t.Fatalf("to NATS: %v", err)
	}
	close(stop)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// Two machines, as far as they know: each has name service and node of its own,
// and only the NATS server in common.
func TestTwoMachines(t *testing.T) {
	s := newServer(t)
	ctx := testContext(t)
	machine := func() (*Node, msg.Resolver) {
		n := open(t, s.url)
		local, err := names.Open(ctx, names.Options{Path: t.TempDir() + "/names"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { local.Close() })
		b, err := n.Bucket(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return n, names.Resolver(local, b)
	}
	one, here := machine()
	two, there := machine()
	msg.Register(one) // the driver is the process's; it exports here and dials from there
	_ = two
	server, err := ping.Export(ctx, "far", &msg.Options{Resolver: here, Schemes: []string{"unix", "nats"}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if _, err := ping.Export(ctx, "far", &msg.Options{Resolver: there, Schemes: []string{"nats"}}); !errors.Is(err, msg.ErrTaken) {
		t.Errorf("a name that another machine has: %v", err)
	}
	client, err := ping.Connect(ctx, "far", &msg.Options{Resolver: there})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if p := client.Peer(); p.Scheme != "nats" {
		t.Errorf("connected by %+v", p)
	}
	serving, err := server.Accept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer serving.Close()
	stop, done := make(chan struct{}), make(chan error, 2)
	flow(ctx, client, serving, stop, done)
	time.Sleep(100 * time.Millisecond)
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
