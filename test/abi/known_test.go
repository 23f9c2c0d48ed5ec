package abi

import (
	"slices"
	"testing"
)

// TestFold: what is kept reads back as it was.
func TestFold(t *testing.T) {
	text := "@ t c +1000\na b@0 | x0=1 x1=1 x2=1 y=\"a,b\" z=1 w-1=E,2\nb@1000 | y=0\n"
	blocks, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	want, err := answers(blocks)
	if err != nil {
		t.Fatal(err)
	}
	if len(want) != 6*3+1 {
		t.Errorf("%d answers", len(want))
	}
	short := format(blocks)
	if w := "@ t c +1000\na b@0 | x0..2,z=1 y=\"a,b\" w-1=E,2\nb@1000 | y=0\n"; short != w {
		t.Errorf("got %q, want %q", short, w)
	}
	again, err := parse(short)
	if err != nil {
		t.Fatal(err)
	}
	got, err := answers(again)
	if err != nil {
		t.Fatal(err)
	}
	if d := differences(want, got); len(d) != 0 {
		t.Errorf("differences %v", d)
	}
}

// TestKnown: a list names exactly what differs.
func TestKnown(t *testing.T) {
	list := "# one\n# reason\nt c k*,m x0..2\n\n# other\nt d * *\n"
	all := []Difference{
		{Case{"t", "c", "kind@0", "x1"}, "0", "1"},
		{Case{"t", "c", "m", "x2"}, "0", "1"},
		{Case{"t", "c", "m", "x3"}, "0", "1"},
	}
	reasons, err := parseKnown(list)
	if err != nil {
		t.Fatal(err)
	}
	if len(reasons) != 2 || reasons[0].text != "# one\n# reason\n" {
		t.Fatalf("reasons %v", reasons)
	}
	unknown, gone := check(all, reasons)
	if len(unknown) != 1 || unknown[0].Name != "x3" {
		t.Errorf("not known: %v", unknown)
	}
	if len(gone) != 1 || gone[0] != "t d * *: * *" {
		t.Errorf("gone: %q", gone)
	}
	if got, want := shrink(reasons, unknown), "# one\n# reason\nt c k*,m x0..2\n\n# New: say why.\nt c m x3\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := parseKnown("t c k x\n"); err == nil {
		t.Error("a line without a reason passes")
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{{"a", "a", true}, {"a*", "abc", true}, {"*c", "abc", true}, {"a*c*e", "abcde", true}, {"a*x", "abc", false}, {"", "a", false}, {"*", "", true}} {
		if matches(c.pattern, c.name) != c.want {
			t.Errorf("matches(%q, %q) is not %v", c.pattern, c.name, c.want)
		}
	}
}

func TestBothUsers(t *testing.T) {
	if got := bothUsers([]string{"a@0", "a@1000", "b@0", "c"}); !slices.Equal(got, []string{"a", "b@0", "c"}) {
		t.Errorf("got %q", got)
	}
}
