package main

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"hardtack/examples/internal/runexample"
)

func TestMain(m *testing.M) { runexample.Main(m, main) }

// Two machines are two sets of variables: they share no directory, and so no
// name service and no sockets.
func TestMachines(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	a, b := runexample.Env(t), runexample.Env(t)
	server := runexample.Start(t, append(a, fmt.Sprintf("HARDTACK_NATS_LISTEN=127.0.0.1:%d", port)), "serve")
	line := server.Want("join with HARDTACK_NATS=")
	url := strings.TrimPrefix(line, "join with ")
	server.Want("serving")

	far := runexample.Start(t, append(b, url), "ping", "50")
	far.Want("50 round trips over nats")
	far.Wait()
	near := runexample.Start(t, append(a, url), "ping", "50")
	near.Want("50 round trips over unix")
	near.Wait()
}
