package msg_test

import (
	"context"
	"testing"
	"time"

	"hardtack/msg"
	_ "hardtack/msg/ump"
)

// byName makes a connection through a service.
func byName(t *testing.T, o msg.Options) (client, server *msg.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	o.Resolver = msg.Directory(t.TempDir())
	s, err := msg.Export(ctx, "service", msg.TestIface, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	lastAddrs = s.Addrs()
	if client, err = msg.Connect(ctx, "service", msg.TestIface, &o); err != nil {
		t.Fatal(err)
	}
	if server, err = s.Accept(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// addrs are where the last service of byName can be reached.
func addrs(*testing.T) []string { return lastAddrs }

var lastAddrs []string

func TestUMP(t *testing.T) {
	for name, f := range msg.Suite {
		t.Run(name, func(t *testing.T) {
			a, b := byName(t, msg.Options{})
			f(t, a, b)
		})
		t.Run(name+"/pair", func(t *testing.T) {
			a, b, err := msg.Pair(context.Background(), msg.TestIface, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			defer b.Close()
			f(t, a, b)
		})
	}
}

// Rings that were timed and chosen are as new.
func TestTry(t *testing.T) {
	for name, f := range msg.Suite {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			a, b := byName(t, msg.Options{Try: 8, Pages: 2})
			t.Log("bound in", time.Since(start))
			f(t, a, b)
		})
	}
	if _, err := msg.Connect(context.Background(), "nobody", msg.TestIface, &msg.Options{Try: 65}); err == nil {
		t.Error("65 rings")
	}
}
