package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A program that hangs is ended with those that it started.
func TestHang(t *testing.T) {
	dir := t.TempDir()
	pid := filepath.Join(dir, "pid")
	script := fmt.Sprintf("#!/bin/sh\nsleep 1000 &\necho $! >%s\nwait\n", pid)
	if err := os.WriteFile(filepath.Join(dir, "hangs"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var kid string
	go func() { // once it hangs, its time is over
		for kid == "" && ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
			text, _ := os.ReadFile(pid)
			kid = strings.TrimSpace(string(text))
		}
		cancel()
	}()
	if _, err := (runner{ctx: ctx, dir: dir, limit: time.Minute}).output("hangs"); err == nil {
		t.Fatal("no error")
	}
	for range 1000 { // whoever adopts it may be slow to wait for it
		text, err := os.ReadFile("/proc/" + kid + "/stat")
		if err != nil || strings.Contains(string(text), ") Z ") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %s is left", kid)
}

func TestLimit(t *testing.T) {
	_, err := runner{ctx: context.Background(), dir: "/bin", limit: 50 * time.Millisecond}.output("sleep", "1000")
	if err == nil || !strings.Contains(err.Error(), "longer than 50ms") {
		t.Errorf("%v", err)
	}
}

// Ratios are the right way round, and the range is that of the rounds.
func TestTable(t *testing.T) {
	defer func(all []row) { rows = all }(rows)
	rows = []row{
		{"trip", "load a", "ref a", "C ring", "≤ 2", false},
		{"flow", "load a", "load b", "socket", "≥ 2", true},
	}
	page, _ := table(map[string][]float64{"load a": {100, 200, 400}, "ref a": {100, 100, 50}, "load b": {400, 1000, 1000}})
	for _, want := range []string{
		"| trip | 200 (100–400) ns | C ring | 100 (50–100) ns | 2.00 | 2.00 | 1.00–8.00 | ≤ 2 |",
		"| flow | 200 (100–400) ns | socket | 1000 (400–1000) ns | 5.00 | 4.00 | 2.50–5.00 | ≥ 2 |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no line %q in\n%s", want, page)
		}
	}
}
