package maxlive

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

var analysedBad = sync.OnceValues(func() (*Result, error) {
	return Run(&Config{Patterns: []string{"./testdata/bad"}, Entries: regexp.MustCompile(`bad\.Entry`), Stack: 8192})
})

// TestBad: all that has no bound is an error in its place, and so are annotations that
// are wrong; nothing else is.
func TestBad(t *testing.T) {
	r, err := analysedBad()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	note := func(p Problem) {
		at := fmt.Sprintf("%s:%d", filepath.Base(p.Pos.Filename), p.Pos.Line)
		got[at] += "\n" + p.Text
	}
	for _, p := range r.Problems {
		note(p)
	}
	for _, c := range r.causes() {
		note(c.cause.Problem)
		if c.path == "" {
			t.Errorf("%v: no path", c.cause)
		}
	}
	for at, texts := range wants(t, "testdata/bad/bad.go") {
		for _, want := range texts {
			if !strings.Contains(got[at], want) {
				t.Errorf("%s: no error %q but %q", at, want, got[at])
			}
		}
		delete(got, at)
	}
	for at, text := range got {
		t.Errorf("%s: %s", at, text)
	}
	if n := r.Bounded(); n != 2 { // those whose annotations are needless
		t.Errorf("%d entry points have a bound, want 2", n)
	}
}

var quoted = regexp.MustCompile(`"[^"]*"`)

// wants reads the comments "want" of a file, by line.
func wants(t *testing.T, name string) map[string][]string {
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string][]string{}
	s := bufio.NewScanner(f)
	for n := 1; s.Scan(); n++ {
		_, want, ok := strings.Cut(s.Text(), "// want ")
		if !ok {
			continue
		}
		for _, q := range quoted.FindAllString(want, -1) {
			text, err := strconv.Unquote(q)
			if err != nil {
				t.Fatal(err)
			}
			at := fmt.Sprintf("%s:%d", filepath.Base(name), n)
			out[at] = append(out[at], text)
		}
	}
	if len(out) == 0 {
		t.Fatal("no wants")
	}
	return out
}
