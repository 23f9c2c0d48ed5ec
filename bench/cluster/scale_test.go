package clusterbench

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	osbench "hardtack/bench/os"
)

// newBench has a tool and a kernel of the present sources.
func newBench(t *testing.T, flags ...string) *Bench {
	t.Helper()
	if os.Getenv("HARDTACK_GUEST") == "" {
		t.Skip("boots guests; set HARDTACK_GUEST=1")
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip(err)
	}
	d, err := osbench.FindDirs()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	d.Tool = filepath.Join(dir, "hardtack")
	image := filepath.Join(dir, "kernel.elf")
	for _, args := range [][]string{{"go", "build", "-o", d.Tool, "./cmd/hardtack"}, append([]string{d.Tool, "build", "-o", image}, flags...)} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = d.Repo
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	b, err := NewBench(d)
	if err != nil {
		t.Fatal(err)
	}
	b.image = image
	return b
}

// A processor runs a program of another cluster within a million instructions of the request.
func TestMoves(t *testing.T) {
	m, err := newBench(t).Moves()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("to the first instruction there %v, to the end of the request %v; 32 MiB of memory %v", m.First, m.Done, m.Memory)
	if slices.Max(m.First) > 1e6 {
		t.Errorf("a move took up to %d instructions", slices.Max(m.First))
	}
}

// What jobs of the kernel take on one kernel and on several; for people.
func TestScales(t *testing.T) {
	if os.Getenv("HARDTACK_COUNT") == "" {
		t.Skip("takes minutes; set HARDTACK_COUNT=1")
	}
	list, err := newBench(t).Scales()
	for _, s := range list {
		t.Logf("%d clusters of %d processors: %d instructions a job, %.3f of perfect scaling", s.Clusters, s.CPUs/s.Clusters, s.Job, float64(list[0].Job)/float64(s.Job))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What a request to Redis takes on Linux, on one kernel and on four; for people.
func TestRedis(t *testing.T) {
	if os.Getenv("HARDTACK_COUNT") == "" {
		t.Skip("takes minutes; set HARDTACK_COUNT=1")
	}
	r, err := newBench(t).Redis()
	t.Logf("%+v", r)
	if err != nil {
		t.Fatal(err)
	}
}
