package main

import (
	"strings"
	"testing"

	affinitybench "hardtack/bench/affinity"
	"hardtack/bench/internal/report"
)

// Each row of our own programs has its figures, with every policy.
func TestRows(t *testing.T) {
	repo, err := report.Root()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(repo)
	goroot, err := goEnv("GOROOT")
	if err != nil {
		t.Fatal(err)
	}
	version, err := goEnv("GOVERSION")
	if err != nil {
		t.Fatal(err)
	}
	lists, err := overlays(goroot, version)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	b := affinitybench.Bench{RegexMiB: 1, RegexFile: dir + "/log", Plots: dir, Rounds: 1, Layouts: 2, Part: 1000,
		Stock: map[string]string{}, Patched: map[string]string{}, Missing: map[string]string{}, Log: t.Logf}
	if err := build(&b, dir, lists, "hotpotato"); err != nil {
		t.Fatal(err)
	}
	r := affinitybench.Report{Rounds: 1, Missing: b.Missing}
	for _, row := range affinitybench.Rows {
		var res affinitybench.Result
		if row.Peer == "" {
			if res, err = b.Measure(row); err != nil {
				t.Fatal(err)
			}
			for name, v := range res {
				if report.Least(v) < 0 || report.Least(v) == 0 && !strings.Contains(name, "processor") && name != "talk" {
					t.Errorf("%s, %s: %v", row.Title, name, v)
				}
			}
		}
		r.Results = append(r.Results, res)
	}
	table, spent := r.Table(), r.ProcessorTime()
	for _, row := range affinitybench.Rows {
		if row.Peer == "" && (!strings.Contains(table, "| "+row.Title) || !strings.Contains(spent, "| "+row.Title)) {
			t.Errorf("no row %q in\n%s\n%s", row.Title, table, spent)
		}
	}
}

// Every row's program is built, and nothing else.
func TestPrograms(t *testing.T) {
	for _, row := range affinitybench.Rows {
		names, found := needed(row.Title), row.Peer == ""
		for _, p := range programs {
			found = found || p.name == row.Peer
		}
		if !found || len(names) > 3 {
			t.Errorf("%s: %q, built: %v", row.Title, names, found)
		}
	}
}
