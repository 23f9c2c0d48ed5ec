package bank_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"hardtack/idl/bank"
	"hardtack/idl/bank/banktest"
	"hardtack/msg"
)

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// pairs are the transports of one machine.
var pairs = map[string]func(t *testing.T) (client, server *bank.Conn){
	"goroutines": func(t *testing.T) (client, server *bank.Conn) {
		return pair(t, &msg.Options{Schemes: []string{"inproc"}})
	},
	"pair": func(t *testing.T) (client, server *bank.Conn) { return pair(t, nil) },
	"name": func(t *testing.T) (client, server *bank.Conn) {
		ctx, o := testContext(t), &msg.Options{Resolver: msg.Directory(t.TempDir())}
		s, err := bank.Export(ctx, "bank", o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		if client, err = bank.Connect(ctx, "bank", o); err != nil {
			t.Fatal(err)
		}
		if server, err = s.Accept(ctx); err != nil {
			t.Fatal(err)
		}
		return client, server
	},
}

func pair(t *testing.T, o *msg.Options) (a, b *bank.Conn) {
	t.Helper()
	a, b, err := bank.Pair(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func TestScenarios(t *testing.T) {
	for name, make := range pairs {
		for what, f := range banktest.Scenarios {
			t.Run(name+"/"+what, func(t *testing.T) {
				a, b := make(t)
				f(t, a, b)
			})
		}
		for what, f := range banktest.Files {
			t.Run(name+"/"+what, func(t *testing.T) {
				a, b := make(t)
				f(t, a, b)
			})
		}
	}
}

// What a program does wrong panics with what to do instead.
func TestMistakes(t *testing.T) {
	ctx := context.Background()
	a, _ := pair(t, nil)
	var none context.Context
	for name, c := range map[string]struct {
		f    func()
		want string
	}{
		"zero Conn, Recv":        {func() { bank.New(new(msg.Conn)).Recv(ctx) }, "Connect, Accept"},
		"zero Conn, Send":        {func() { bank.New(new(msg.Conn)).Send(ctx, &bank.Cheer{}) }, "Connect, Accept"},
		"zero Conn, long Send":   {func() { bank.New(new(msg.Conn)).SendLedger(ctx, &bank.Ledger{Page: make([]byte, 100)}) }, "Connect, Accept"},
		"zero Conn, Close":       {func() { new(msg.Conn).Close() }, "Connect, Accept"},
		"zero Conn, Serve":       {func() { bank.New(new(msg.Conn)).Serve(ctx, nil) }, "nil Handler"},
		"nil Conn, Client":       {func() { bank.NewClient(nil, nil) }, "Connect"},
		"empty Conn, Client":     {func() { bank.NewClient(new(bank.Conn), nil) }, "Connect, Accept"},
		"empty Conn, Recv":       {func() { new(bank.Conn).Recv(ctx) }, "Connect, Accept"},
		"empty Conn, Send":       {func() { new(bank.Conn).Send(ctx, &bank.Cheer{}) }, "Connect, Accept"},
		"New of nil":             {func() { bank.New(nil) }, "Connect, Accept"},
		"zero Client, call":      {func() { new(bank.Client).Watch(ctx, bank.WatchCall{}) }, "NewClient"},
		"zero Client, Run":       {func() { new(bank.Client).Run(ctx) }, "NewClient"},
		"zero Client, All":       {func() { new(bank.Client).All(ctx) }, "NewClient"},
		"All with a function":    {func() { bank.NewClient(a, func(bank.Msg) {}).All(ctx) }, "NewClient(conn, nil)"},
		"zero Server, Accept":    {func() { bank.Server{}.Accept(ctx) }, "Export"},
		"zero Server, Serve":     {func() { bank.Server{}.Serve(ctx, func(*bank.Conn) bank.Handler { return nil }) }, "Export"},
		"nil function, Serve":    {func() { bank.Server{}.Serve(ctx, nil) }, "a nil function"},
		"zero Server, Close":     {func() { bank.Server{}.Close() }, "Export"},
		"zero End":               {func() { bank.Adopt(new(msg.End), nil) }, "a cap"},
		"nil Context, Recv":      {func() { a.Recv(none) }, "context.Background()"},
		"nil Context, Connect":   {func() { bank.Connect(none, "bank", nil) }, "context.Background()"},
		"nil Context, Export":    {func() { bank.Export(none, "bank", nil) }, "context.Background()"},
		"nil Context, Pair":      {func() { bank.Pair(none, nil) }, "context.Background()"},
		"nil Context, call":      {func() { bank.NewClient(a, nil).Watch(none, bank.WatchCall{}) }, "context.Background()"},
		"nil pointer, Resolver":  {func() { bank.Pair(ctx, &msg.Options{Resolver: (*resolver)(nil)}) }, "nil *bank_test.resolver"},
		"nil pointer, Driver":    {func() { msg.Register((*driver)(nil)) }, "nil *bank_test.driver"},
		"ReplyError without one": {func() { a.FailWatch(ctx, &bank.WatchCall{}, nil) }, "send the reply"},
	} {
		func() {
			defer func() {
				text, _ := recover().(string)
				if !strings.Contains(text, c.want) {
					t.Errorf("%s: panics with %q, which says nothing of %q", name, text, c.want)
				}
			}()
			c.f()
		}()
	}
}

type (
	resolver struct{ msg.Resolver }
	driver   struct{ msg.Driver }
)

// Every wait that a context ends returns an error that errors.Is knows it by.
func TestContextErrors(t *testing.T) {
	for name, make := range pairs {
		for what, f := range map[string]func(ctx context.Context, c *bank.Conn) error{
			"Recv": func(ctx context.Context, c *bank.Conn) error { _, err := c.Recv(ctx); return err },
			"Send": func(ctx context.Context, c *bank.Conn) error {
				for {
					if err := c.SendCheer(ctx, &bank.Cheer{}); err != nil {
						return err
					}
				}
			},
			"SendLedger": func(ctx context.Context, c *bank.Conn) error {
				for {
					if err := c.SendLedger(ctx, &bank.Ledger{Page: []byte(strings.Repeat("x", 4000))}); err != nil {
						return err
					}
				}
			},
			"call": func(ctx context.Context, c *bank.Conn) error {
				_, err := bank.NewClient(c, nil).Watch(ctx, bank.WatchCall{})
				return err
			},
			"Run":   func(ctx context.Context, c *bank.Conn) error { return bank.NewClient(c, nil).Run(ctx) },
			"Serve": func(ctx context.Context, c *bank.Conn) error { return c.Serve(ctx, struct{ bank.Handler }{}) },
			"Client.All": func(ctx context.Context, c *bank.Conn) (last error) {
				for _, err := range bank.NewClient(c, nil).All(ctx) {
					last = err
				}
				return last
			},
			"All": func(ctx context.Context, c *bank.Conn) (last error) {
				for _, err := range c.All(ctx) {
					last = err
				}
				return last
			},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				a, _ := make(t)
				ctx, cancel := context.WithTimeout(testContext(t), 10*time.Millisecond)
				defer cancel()
				if err := f(ctx, a); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("by a deadline: %v", err)
				}
				b, _ := make(t)
				ctx, cancel = context.WithCancel(testContext(t))
				time.AfterFunc(10*time.Millisecond, cancel)
				if err := f(ctx, b); !errors.Is(err, context.Canceled) {
					t.Errorf("cancelled: %v", err)
				}
			})
		}
	}
}

func TestServerServes(t *testing.T) {
	ctx, o := testContext(t), &msg.Options{Resolver: msg.Directory(t.TempDir())}
	s, err := bank.Export(ctx, "bank", o)
	if err != nil {
		t.Fatal(err)
	}
	run, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- s.Serve(run, func(*bank.Conn) bank.Handler { return vault{} }) }()
	for range 3 {
		c, err := bank.Connect(ctx, "bank", o)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if r, err := bank.NewClient(c, nil).Open(ctx, bank.OpenCall{}); err != nil || r.Account != 7 {
			t.Fatalf("%v, %v", r, err)
		}
	}
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Serve: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

type vault struct{ bank.Handler }

func (vault) Open(context.Context, bank.OpenCall) (bank.OpenReply, error) {
	return bank.OpenReply{Account: 7}, nil
}
