package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"hardtack/bench/internal/report"
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
	page, _ := table(map[string][]figure{"load a": {{100, 150}, {200, 300}, {400, 500}},
		"ref a": {{100, 1}, {100, 2}, {50, 3}}, "load b": {{400, 1}, {1000, 2}, {1000, 3}}})
	for _, want := range []string{
		"| trip | 200 (100–400) ns | 300.0 (150.0) ns | C ring | 100 (50–100) ns | 2.00 (1.00) ns | 2.00 | 2.00 | 1.00–8.00 | ≤ 2 |",
		"| flow | 200 (100–400) ns | 300.0 (150.0) ns | socket | 1000 (400–1000) ns | 2.00 (1.00) ns | 5.00 | 4.00 | 2.50–5.00 | ≥ 2 |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no line %q in\n%s", want, page)
		}
	}
}

// One short round of everything but what others wrote: each row has its figures.
func TestRows(t *testing.T) {
	repo, err := report.Root()
	if err != nil {
		t.Fatal(err)
	}
	if runtime.NumCPU() < 2 {
		t.Skip("the rows are about two processors")
	}
	t.Chdir(repo)
	defer func(all []row) { rows = all }(rows)
	r := runner{ctx: t.Context(), limit: time.Minute, part: 2000}
	page, pairs, _, err := r.all(1, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if !strings.Contains(page, "\n| "+row.title+" | ") {
			t.Errorf("no row %q", row.title)
		}
	}
	for _, p := range pairs {
		for k := range p.ns {
			if report.Least(p.ns[k]) <= 0 || report.Least(p.processor[k]) <= 0 {
				t.Errorf("%d clients, %s to %s: %v, processor time %v", k+1, p.client, p.server, p.ns[k], p.processor[k])
			}
		}
	}
	if strings.Contains(page, "NaN") {
		t.Errorf("a figure is missing in\n%s", page)
	}
}
