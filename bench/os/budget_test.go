package osbench

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/budget.txt from what is counted")

const (
	budgetFile = "testdata/budget.txt"
	budgetHead = "# Guest instructions of each row of the table on Hardtack, one CPU, microvm.\n" +
		"# TestBudget lets a row rise by 5 %. Renew: go test ./bench/os -run TestBudget -update\n"
	slack = 1.05
)

// readBudget returns the instructions that each row may take, by its name.
func readBudget() (map[string]float64, error) {
	text, err := os.ReadFile(budgetFile)
	if err != nil {
		return nil, err
	}
	budget := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var name string
		var figure float64
		if _, err := fmt.Sscan(line, &name, &figure); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", budgetFile, line, err)
		}
		budget[name] = figure
	}
	return budget, nil
}

// within says what is wrong with a count; "" if it keeps the budget.
func within(counted, budget float64) string {
	switch {
	case budget <= 0:
		return "it has no budget"
	case counted <= 0:
		return "it was not counted"
	case counted > budget*slack:
		return fmt.Sprintf("%.1f instructions, %.1f %% above its budget of %.1f", counted, 100*(counted/budget-1), budget)
	}
	return ""
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		counted, budget float64
		good            bool
	}{{100, 100, true}, {104.9, 100, true}, {106, 100, false}, {1, 100, true}, {0, 100, false}, {100, 0, false}} {
		if got := within(c.counted, c.budget); (got == "") != c.good {
			t.Errorf("%v of %v: %q", c.counted, c.budget, got)
		}
	}
}

// guestBench builds a kernel to count on; without HARDTACK_GUEST it skips the test.
func guestBench(t *testing.T) *Bench {
	if os.Getenv("HARDTACK_GUEST") == "" {
		t.Skip("boots a guest; set HARDTACK_GUEST=1")
	}
	d, err := FindDirs()
	if err != nil {
		t.Fatal(err)
	}
	d.Tool = filepath.Join(t.TempDir(), "hardtack")
	kernel := filepath.Join(t.TempDir(), "kernel.elf")
	if err := run(d.Repo, "go", "build", "-o", d.Tool, "./cmd/hardtack"); err != nil {
		t.Fatal(err)
	}
	if err := run(d.Repo, d.Tool, "build", "-o", kernel); err != nil {
		t.Fatal(err)
	}
	return &Bench{Dirs: d, Machine: "microvm", Systems: []OS{OnHardtack}, Log: t.Logf, Kernel: kernel}
}

// TestBudget counts the instructions of every row of the table and compares them with the
// row's budget. It uses the minimum of several turns, because the kernel's collector runs in
// some of them. Counts repeat, so this is not a timing test. Programs are placed at random
// addresses, however, and now and then a boot makes a row more expensive, so rows above
// their budget are counted again in a second boot. A change that makes a row more
// expensive must say so by a new budget.
func TestBudget(t *testing.T) {
	b := guestBench(t)
	budget, err := readBudget()
	if err != nil {
		t.Fatal(err)
	}
	least := map[string]float64{}
	for range 2 {
		counts, err := b.CountInstructions()
		if err != nil {
			t.Fatal(err)
		}
		above := false
		for _, r := range Rows {
			n := counts[r.Name][OnHardtack].Minimum
			if old := least[r.Name]; old > 0 {
				n = min(n, old)
			}
			least[r.Name] = n
			above = above || within(n, budget[r.Name]) != ""
		}
		if !above {
			break
		}
	}
	text := budgetHead
	for _, r := range Rows {
		text += fmt.Sprintf("%s %.1f\n", r.Name, least[r.Name])
	}
	if *update {
		if err := os.WriteFile(budgetFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("counted:\n%s", text)
	if *update {
		return
	}
	for _, r := range Rows {
		if wrong := within(least[r.Name], budget[r.Name]); wrong != "" {
			t.Errorf("%s: %s", r.Name, wrong)
		}
	}
}
