package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

// Every section's workers together see each line once, however many they are.
func TestSearch(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	const size = 300_000
	if err := writeLog(name, size); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(name)
	if err != nil || len(data) != size {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	wantLines, wantMatches := 0, 0
	for _, line := range bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) {
		wantLines++
		if logPattern.Match(line) {
			wantMatches++
		}
	}
	if mean := size / wantLines; mean < 50 || mean > 57 || wantMatches == 0 {
		t.Errorf("lines of %d bytes, %d of %d match", mean, wantMatches, wantLines)
	}
	for _, workers := range []int{1, 2, 3, 8, 100} {
		lines, matches, err := search(name, workers)
		if err != nil || lines != wantLines || matches != wantMatches {
			t.Errorf("%d workers: %d lines, %d matches, %v; want %d and %d", workers, lines, matches, err, wantLines, wantMatches)
		}
	}
}

// The programs run to their end with small numbers, and refuse bad ones.
func TestPrograms(t *testing.T) {
	small := map[string][]string{
		"hotpotato": {"-hops", "100", "-players", "3", "-work", "1"}, "many": {"-messages", "1003"},
		"pipeline": {"-items", "100", "-spin", "3"}, "pool": {"-jobs", "100"}, "regex": {"-mib", "1"},
		"parallel": {"-units", "10"}, "mixed": {"-messages", "100", "-units", "10", "-pause", "1us"},
		"semaphore": {"-jobs", "1000", "-goroutines", "30"}, "churn": {"-rounds", "100"},
		"bound": {"-messages", "100", "-units", "10", "-pause", "1us"},
	}
	for _, p := range programs {
		args, ok := small[p.name]
		if !ok {
			continue // phases and cores take their time
		}
		f := flag.NewFlagSet(p.name, flag.ContinueOnError)
		run := p.flags(f)
		if err := f.Parse(args); err != nil {
			t.Fatal(err)
		}
		if err := run(); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
		f.Set(args[0][1:], "0")
		if err := run(); err == nil {
			t.Errorf("%s %s 0 gave no error", p.name, args[0])
		}
	}
}
