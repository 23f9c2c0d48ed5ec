package nats

import (
	"testing"

	"hardtack/idl/bank"
	"hardtack/idl/bank/banktest"
	"hardtack/msg"
)

// Calls fail, are given up and are served over NATS as they are within a machine.
func TestCalls(t *testing.T) {
	msg.Register(open(t, newServer(t).url))
	msg.Register(open(t, newServer(t).url))
	opts := msg.Options{Schemes: []string{Scheme}, Resolver: msg.Directory(t.TempDir())}
	run := func(what string, f func(t *testing.T, client, server *bank.Conn)) {
		t.Run(what, func(t *testing.T) {
			ctx := testContext(t)
			s, err := bank.Export(ctx, "calls", &opts)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			c, err := msg.Dial(ctx, s.Addrs()[0], bank.Interface, &opts)
			if err != nil {
				t.Fatal(err)
			}
			client := bank.New(c)
			server, err := s.Accept(ctx)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { client.Close(); server.Close() })
			f(t, client, server)
		})
	}
	for what, f := range banktest.Scenarios {
		run(what, f)
	}
	for what, f := range banktest.NoFiles {
		run(what, f)
	}
}
