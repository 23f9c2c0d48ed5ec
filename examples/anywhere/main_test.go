package main

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"hardtack/examples/internal/runexample"
)

func TestMain(m *testing.M) { runexample.Main(m, main) }

// The same service and client are joined in a process, between two, and between two machines,
// which are sets of variables. Where the machine has one kernel, what is looked for in other
// clusters is found in this one. TestClusterRings joins two clusters.
func TestAnywhere(t *testing.T) {
	env := runexample.Env(t)
	one := runexample.Start(t, env, "ask", "goroutine", "50")
	one.Want("50 round trips over inproc")
	one.Wait()
	runexample.Start(t, env, "serve", "process").Want("serving")
	for _, where := range []string{"process", "cluster"} {
		c := runexample.Start(t, env, "ask", where, "50")
		c.Want("50 round trips over unix")
		c.Wait()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	a, b := runexample.Env(t), runexample.Env(t)
	server := runexample.Start(t, append(a, fmt.Sprintf("HARDTACK_NATS_LISTEN=127.0.0.1:%d", port)), "serve", "machine")
	url := strings.TrimPrefix(server.Want("join with HARDTACK_NATS="), "join with ")
	server.Want("serving")
	far := runexample.Start(t, append(b, url), "ask", "machine", "50")
	far.Want("50 round trips over nats")
	far.Wait()
}
