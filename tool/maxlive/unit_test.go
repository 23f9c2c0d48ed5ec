package maxlive

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func testClasses(t *testing.T) *classes {
	t.Helper()
	root, err := goroot(&Config{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := readClasses(root)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var sliceSink []byte
var pointerSink []*int

// TestGrowth compares the model of append with append itself.
func TestGrowth(t *testing.T) {
	c := testClasses(t)
	sliceSink, pointerSink = nil, nil
	caps, pcaps := uint64(0), uint64(0)
	for n := uint64(1); n < 5000; n++ {
		sliceSink, pointerSink = append(sliceSink, 1), append(pointerSink, nil)
		if n > caps {
			caps = c.nextCap(1, caps, n, false)
		}
		if n > pcaps {
			pcaps = c.nextCap(8, pcaps, n, true)
		}
		if caps != uint64(cap(sliceSink)) || pcaps != uint64(cap(pointerSink)) {
			t.Fatalf("%d elements: capacities %d and %d, want %d and %d", n, caps, pcaps, cap(sliceSink), cap(pointerSink))
		}
	}
}

// TestGrowthAny: no way to append comes to more.
func TestGrowthAny(t *testing.T) {
	c := testClasses(t)
	for n := uint64(1); n <= 40; n++ {
		bound := c.growthAny(8, n, false)
		if most := worstGrowth(c, 0, n, map[uint64]uint64{}); bound.Total() < most {
			t.Errorf("%d elements: the bound is %d, but there is a way that comes to %d", n, bound.Total(), most)
		}
	}
}

// worstGrowth tries all ways to get from a capacity to at most n elements.
func worstGrowth(c *classes, capacity, n uint64, known map[uint64]uint64) uint64 {
	if most, ok := known[capacity]; ok {
		return most
	}
	most := uint64(0)
	for need := capacity + 1; need <= n; need++ {
		next := c.nextCap(8, capacity, need, false)
		o := c.object(next*8, false, 1)
		most = max(most, o.Total()+worstGrowth(c, next, n, known))
	}
	known[capacity] = most
	return most
}

func TestParseAnnotation(t *testing.T) {
	for text, want := range map[string]string{
		"// a comment":                        "",
		"//maxlive:loop 64 because it is":     "ok",
		"//maxlive:len 0x10 because it is":    "ok",
		"//maxlive:recursion 3 because it is": "ok",
		"//maxlive:loop 64":                   "does not say why",
		"//maxlive:loop 64 because ":          "does not say why",
		"//maxlive:loop 0 because it is":      "is not a bound",
		"//maxlive:loop -1 because it is":     "is not a bound",
		"//maxlive:loop because it is":        "want //maxlive:KIND",
		"//maxlive:loops 5 because it is":     "want //maxlive:KIND",
		"//maxlive: loop 5 because it is":     "ok",
	} {
		_, ok, err := parseAnnotation(text)
		switch {
		case want == "" && ok, want == "ok" && (!ok || err != nil):
			t.Errorf("%q: %v, %v", text, ok, err)
		case want != "" && want != "ok" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestUnknownEscapes: what the compiler was not asked about, or is silent about, is on
// the heap.
func TestUnknownEscapes(t *testing.T) {
	e := &escapes{lines: map[line][]message{}, moved: map[line][]message{}, inlined: map[line][]int{}, files: map[string]bool{}}
	ask := map[string][]string{"m/p": {"/m/p/a.go"}, "m/q": {"/m/q/b.go"}, "m/r": {"/m/r/a.go"}}
	text := `# m/p
p/a.go:3:7: &T{...} does not escape
p/a.go:4:7: &T{...} escapes to heap
p/a.go:5:2: moved to heap: x
p/a.go:6:7: inlining call to f
p/a.go:7:7: inlining call to f
p/a.go:7:7: new(int) escapes to heap
p/c.go:3:7: &T{...} does not escape
# m/r
./a.go:3:7: &T{...} escapes to heap
../p/a.go:9:7: &U{...} escapes to heap
`
	if err := e.parse(strings.NewReader(text), ask); err != nil {
		t.Fatal(err)
	}
	heap := func(file string, n int) bool { return e.onHeap(file, n, n, nil, isPointer) }
	if heap("/m/p/a.go", 3) || !heap("/m/p/a.go", 4) || !heap("/m/p/a.go", 9) || !heap("/m/q/b.go", 3) || !heap("/m/r/a.go", 3) {
		t.Error("literals")
	}
	if !e.variable("/m/p/a.go", 5, 2, "x") || e.variable("/m/p/a.go", 5, 2, "y") || !e.variable("/m/q/b.go", 5, 2, "x") {
		t.Error("variables")
	}
	if !e.inlinedOnStack("/m/p/a.go", 6, 7) || e.inlinedOnStack("/m/p/a.go", 7, 7) || e.inlinedOnStack("/m/p/a.go", 8, 7) {
		t.Error("inlined calls")
	}
}

func TestModels(t *testing.T) {
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "models")
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	all, err := models(file("# a comment\n\nm.F 16 32 keeps because of something\n"))
	if err != nil || all["m.F"] == nil || all["m.F"].lasting != 16 || all["m.F"].transient != 32 || !all["m.F"].keeps {
		t.Errorf("%+v, %v", all["m.F"], err)
	}
	for _, bad := range []string{"m.F 16 because x", "m.F 16 32", "m.F a b because x", "m.F 1 2 borrows because x"} {
		if _, err := models(file(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
