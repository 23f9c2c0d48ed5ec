package maxlive

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"hardtack/tool/image"
)

var update = flag.Bool("update", false, "write testdata/kernel.txt and kernel/reserve/table.go")

const (
	kernelList  = "testdata/kernel.txt"
	kernelTable = "../../kernel/reserve/table.go"
)

// kernel is how the kernel is analysed: as the image is built.
func kernel(t *testing.T) *Config {
	c := &Config{Dir: "../..", Patterns: []string{"./cmd/kernel"}, Table: "hardtack/kernel/syscall.Call",
		Models: "../../cmd/kernel/maxlive.models", Stack: 8192, Env: image.Env()}
	overlay, err := (&image.Options{Dir: "../..", Stock: true}).Overlay(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.UseOverlay(overlay); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestKernel analyses the kernel's system calls, points and goroutines, and compares what
// has a bound with a list. A change of the kernel may cost a few their bound; more than
// that is the tool's fault, or asks for an annotation. It needs half a minute to two
// minutes of processor time and 3 GB, so it runs with HARDTACK_MAXLIVE=1 only.
func TestKernel(t *testing.T) {
	if os.Getenv("HARDTACK_MAXLIVE") == "" && !*update {
		t.Skip("the analysis of the whole kernel: set HARDTACK_MAXLIVE=1")
	}
	c := kernel(t)
	c.Started = true
	r, err := Run(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Problems {
		t.Error(p)
	}
	got := map[string]uint64{}
	var list bytes.Buffer
	bounded, all := map[string]int{}, map[string]int{}
	whole := 0
	for i := range r.Bounds {
		b := &r.Bounds[i]
		kind := kindOf(b)
		all[kind]++
		if len(b.Causes) > 0 {
			continue
		}
		bounded[kind]++
		if kind == "call" && r.Whole(b) {
			whole++
		}
		name := kind + " " + strings.ReplaceAll(b.Name, " ", "_")
		got[name] = b.Cost.Peak.Total()
		l := b.Cost.Lasting()
		fmt.Fprintf(&list, "%s %d %d\n", name, b.Cost.Peak.Total(), l.Total())
	}
	for _, kind := range []string{"call", "point", "started"} {
		t.Logf("%s: %d of %d have a bound", kind, bounded[kind], all[kind])
	}
	t.Logf("%d calls have one with all points that they reach; %d functions", whole, r.Functions)
	if *update {
		table, err := r.Numbered("reserve")
		if err == nil {
			err = os.WriteFile(kernelTable, table, 0o644)
		}
		if err == nil {
			err = os.WriteFile(kernelList, list.Bytes(), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	compareBounds(t, got)
	compareTable(t, r, true)
}

// kindOf says whether it is a system call, a point, or what the kernel starts.
func kindOf(b *Bound) string {
	switch {
	case b.Point:
		return "point"
	case b.Num < 0:
		return "started"
	}
	return "call"
}

// someCalls are of all kinds, and analysed quickly.
var someCalls = []string{"access", "adjtimex", "alarm", "capset", "chdir", "chroot", "clock_gettime", "dup", "epoll_create1",
	"eventfd2", "exit", "exit_group", "faccessat2", "fchdir", "fstatfs", "getdents64", "getgroups", "getitimer", "getpid", "getrandom",
	"getrusage", "getuid", "inotify_init1", "mbind", "mincore", "nanosleep", "pidfd_open", "prlimit64", "process_vm_readv",
	"rt_sigaction", "rt_sigtimedwait", "sched_yield", "setpgid", "setresuid", "setsid", "shmctl", "signalfd4", "statfs", "timerfd_create", "umask"}

// TestCalls analyses some of the kernel's system calls: none needs more than the kernel
// reserves for it.
func TestCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("the kernel's source is read and compiled")
	}
	c := kernel(t)
	c.Only = someCalls
	r, err := Run(c)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Bounds) != len(someCalls) {
		t.Errorf("%d of %d calls are found", len(r.Bounds), len(someCalls))
	}
	for _, b := range r.Bounds {
		for i, c := range b.Causes {
			t.Errorf("%s: %v: %s", b.Name, c, b.Paths[i])
		}
	}
	compareTable(t, r, false)
}

// compareTable compares with the kernel's table: no call may need more than it says.
func compareTable(t *testing.T, r *Result, all bool) {
	table := readTable(t)
	known := 0
	for n, x := range r.Rows() {
		y := table[n]
		if y.Known {
			known++
		}
		switch {
		case y.Known && !x.Known:
			t.Errorf("call %d has a bound in %s and none in the source", n, kernelTable)
		case y.Known && (x.Transient+x.Lasting > y.Transient+y.Lasting || x.Lasting > y.Lasting || x.Allocated > y.Allocated && y.Allocated != 0):
			t.Errorf("call %d needs %d+%d bytes, %s has %d+%d", n, x.Transient, x.Lasting, kernelTable, y.Transient, y.Lasting)
		}
	}
	if t.Failed() {
		t.Log("renew the table: go test ./tool/maxlive -run TestKernel -update")
	}
	if all && known != len(table)-unknown(table) {
		t.Errorf("%s has calls that the kernel has not", kernelTable)
	}
}

func unknown(table map[int64]Row) (n int) {
	for _, x := range table {
		if !x.Known {
			n++
		}
	}
	return n
}

// readTable reads the generated table.
func readTable(t *testing.T) map[int64]Row {
	f, err := parser.ParseFile(token.NewFileSet(), kernelTable, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[int64]Row{}
	ast.Inspect(f, func(n ast.Node) bool {
		kv, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		lit, ok := kv.Value.(*ast.CompositeLit)
		if !ok {
			return true
		}
		row := Row{}
		for _, e := range lit.Elts {
			field := e.(*ast.KeyValueExpr)
			switch v := field.Value.(type) {
			case *ast.Ident:
				if field.Key.(*ast.Ident).Name == "Known" {
					row.Known = v.Name == "true"
				}
			case *ast.BasicLit:
				n, err := strconv.ParseUint(v.Value, 10, 32)
				if err != nil || n > math.MaxUint32 {
					t.Fatalf("%s: %s: %v", kernelTable, v.Value, err)
				}
				switch field.Key.(*ast.Ident).Name {
				case "Lasting":
					row.Lasting = n
				case "Transient":
					row.Transient = n
				case "Allocated":
					row.Allocated = n
				}
			}
		}
		num, err := strconv.ParseInt(kv.Key.(*ast.BasicLit).Value, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		out[num] = row
		return false
	})
	if len(out) == 0 {
		t.Fatalf("%s has no rows", kernelTable)
	}
	return out
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
