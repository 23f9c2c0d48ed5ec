package collectbench

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	osbench "hardtack/bench/os"
)

// mostAdded is by how many instructions a collection may make one system call longer, on
// one processor. The goal is 100,000, and most runs reach it; but what comes together in one
// call varies from build to build. A collector that marks in one go adds a million and more.
const mostAdded = 250_000

// A collection adds little to any single system call, with many files alive.
func TestDelays(t *testing.T) {
	if os.Getenv("HARDTACK_GUEST") == "" {
		t.Skip("boots a guest; set HARDTACK_GUEST=1")
	}
	d, err := osbench.FindDirs()
	if err != nil {
		t.Fatal(err)
	}
	d.Tool = filepath.Join(t.TempDir(), "hardtack")
	kernel := os.Getenv("HARDTACK_KERNEL")
	for _, arg := range [][]string{{"go", "build", "-o", d.Tool, "./cmd/hardtack"}, {d.Tool, "build", "-o", filepath.Join(filepath.Dir(d.Tool), "kernel.elf")}} {
		if arg[0] == d.Tool && kernel != "" {
			continue
		}
		cmd := exec.Command(arg[0], arg[1:]...)
		cmd.Dir = d.Repo
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", arg, err, out)
		}
	}
	if kernel == "" {
		kernel = filepath.Join(filepath.Dir(d.Tool), "kernel.elf")
	}
	b, err := NewBench(d)
	if err != nil {
		t.Fatal(err)
	}
	without, err := b.Run(kernel, Case{Memory: "512M", CPUs: 1, Files: 5000, Percent: "off", Iterations: 3000})
	if err != nil {
		t.Fatal(err)
	}
	with, err := b.Run(kernel, Case{Memory: "64M", CPUs: 1, Files: 5000, Iterations: 10000})
	if err != nil {
		t.Fatal(err)
	}
	if without.Collections() != 0 && os.Getenv("HARDTACK_KERNEL") == "" || with.Collections() < 3 {
		t.Fatalf("%d collections without, %d with; want 0 and some", without.Collections(), with.Collections())
	}
	kind, most := with.Added(without)
	t.Logf("%d collections, %.1f %% of the time; most was added to %s: %d instructions", with.Collections(), with.Share, kind, most)
	if most > mostAdded {
		t.Errorf("collections added %d instructions to a call (%s), want %d at most", most, kind, mostAdded)
	}
}

func TestParse(t *testing.T) {
	r, err := parse("console\ncall open 10 100 200 300 400\ncall user 10 1 2 3 9999\nheap NumGC 1 5\nloop 10 4000 2.50\n")
	if err != nil || r.Collections() != 4 || r.Each() != 400 || r.Share != 2.5 || r.Longest().Name != "open" {
		t.Errorf("%+v, %v", r, err)
	}
	kind, most := r.Added(&Result{Calls: []Call{{Name: "open", Longest: 150}}})
	if kind != "open" || most != 250 {
		t.Errorf("%s %d were added", kind, most)
	}
	for _, bad := range []string{"", "call open 1 2\nloop 1 2 3\n", "loop 10 4000 2.50\n"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
