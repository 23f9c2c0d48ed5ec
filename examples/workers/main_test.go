package main

import (
	"testing"

	"hardtack/examples/internal/runexample"
)

func TestMain(m *testing.M) { runexample.Main(m, main) }

func TestWorkers(t *testing.T) {
	env := runexample.Env(t)
	runexample.Start(t, env, "pool", "3").Want("serving")
	for range 2 {
		client := runexample.Start(t, env, "ask", "10", "0", "1000")
		client.Want("+ 10 = 55,")
		client.Want("+ 0 = 0,")
		client.Want("+ 1000 = 500500,")
		client.Wait()
	}
}
