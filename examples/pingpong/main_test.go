package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"hardtack/examples/internal/runexample"
)

func TestMain(m *testing.M) { runexample.Main(m, main) }

func TestGo(t *testing.T) {
	env := runexample.Env(t)
	runexample.Start(t, env, "serve").Want("serving")
	for range 2 {
		client := runexample.Start(t, env, "ping", "1000")
		client.Want("1000 round trips")
		client.Wait()
	}
}

// All four pairs of languages.
func TestC(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no C compiler")
	}
	bin := t.TempDir() + "/pingpong"
	lib, _ := filepath.Glob("../../msg/c/ht_*.c")
	args := append([]string{"-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-I../../msg/c", "-I../../idl/ping/c", "-o", bin,
		"c/pingpong.c", "../../idl/ping/c/ping.c"}, lib...)
	if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	inC := func(env []string, args ...string) *runexample.Program {
		return runexample.StartCommand(t, env, exec.Command(bin, args...))
	}
	inGo := func(env []string, args ...string) *runexample.Program {
		return runexample.Start(t, env, args...)
	}
	type starter = func([]string, ...string) *runexample.Program
	for name, pair := range map[string][2]starter{"C to C": {inC, inC}, "Go to C": {inC, inGo}, "C to Go": {inGo, inC}} {
		t.Run(name, func(t *testing.T) {
			env := runexample.Env(t)
			pair[0](env, "serve").Want("serving")
			client := pair[1](env, "ping", "1000")
			client.Want("1000 round trips")
			client.Wait()
		})
	}
}
