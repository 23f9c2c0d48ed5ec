package maxlive

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/kernel.txt")

const kernelList = "testdata/kernel.txt"

// TestKernel analyses the kernel's system calls and compares what has a bound with a
// list. A change of the kernel may cost a few calls their bound; more than that is the
// tool's fault, or asks for an annotation. It needs a minute of processor time and
// 3 GB, so it runs with HARDTACK_MAXLIVE=1 only.
func TestKernel(t *testing.T) {
	if os.Getenv("HARDTACK_MAXLIVE") == "" && !*update {
		t.Skip("the analysis of the whole kernel: set HARDTACK_MAXLIVE=1")
	}
	r, err := Run(&Config{Dir: "../..", Patterns: []string{"./cmd/kernel"}, Table: "hardtack/kernel/syscall.Call",
		Models: "../../cmd/kernel/maxlive.models", Stack: 8192, Env: []string{"GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Problems {
		t.Error(p)
	}
	got := map[string]uint64{}
	var list bytes.Buffer
	calls, bounded, whole := 0, 0, 0
	for i := range r.Bounds {
		b := &r.Bounds[i]
		if !b.Point {
			calls++
		}
		if len(b.Causes) > 0 {
			continue
		}
		kind := "point"
		if !b.Point {
			kind, bounded = "call", bounded+1
			if r.Whole(b) {
				whole++
			}
		}
		got[kind+" "+b.Name] = b.Cost.Peak.Total()
		l := b.Cost.Lasting()
		fmt.Fprintf(&list, "%s %s %d %d\n", kind, b.Name, b.Cost.Peak.Total(), l.Total())
	}
	t.Logf("%d of %d calls have a bound, %d with all points that they reach; %d functions", bounded, calls, whole, r.Functions)
	if *update {
		if err := os.WriteFile(kernelList, list.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	compareBounds(t, got)
}

func compareBounds(t *testing.T, got map[string]uint64) {
	f, err := os.Open(kernelList)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	listed, lost := 0, []string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		var kind, name string
		var peak, lasting uint64
		if _, err := fmt.Sscan(s.Text(), &kind, &name, &peak, &lasting); err != nil {
			t.Fatalf("%s: %q: %v", kernelList, s.Text(), err)
		}
		listed++
		n, ok := got[kind+" "+name]
		switch {
		case !ok:
			lost = append(lost, kind+" "+name)
		case n > 2*peak+1024:
			t.Logf("%s: the bound was %d and is %d", name, peak, n)
		}
	}
	if len(lost) > listed/20 {
		t.Errorf("%d of %d have lost their bound: %s\nannotate what is new, or run this test with -update", len(lost), listed, strings.Join(lost, ", "))
	}
}
