package main

import (
	"testing"

	"hardtack/examples/internal/runexample"
)

func TestMain(m *testing.M) { runexample.Main(m, main) }

func TestNames(t *testing.T) {
	env := runexample.Env(t)
	alice := runexample.Start(t, env, "worker", "alice")
	alice.Want("alice is worker.")
	watcher := runexample.Start(t, env, "workers")
	watcher.Want("alice is worker.", "process")
	watcher.Want("workers: 1")
	bob := runexample.Start(t, env, "worker", "bob")
	bob.Want("bob is worker.")
	watcher.Want("bob is worker.")
	watcher.Want("workers: 2")
	alice.Kill() // who was the server
	watcher.Want("alice is gone")
	watcher.Want("workers: 1")
	bob.Kill()
	watcher.Want("bob is gone")
	watcher.Want("workers: 0")
}
