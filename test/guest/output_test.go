package guest

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	sections, order, done := parse(`boot noise
guesttest: RUN files
=== RUN   open
    a: ok
--- PASS: open
=== RUN   close
    b: EBADF
--- FAIL: close: why: so
guesttest: FAIL files: exit status 1 (0.1s)
guesttest: RUN tty
=== RUN   raw
    c
`)
	if done || strings.Join(order, " ") != "files tty" {
		t.Fatalf("done %v, order %v", done, order)
	}
	f := sections["files"]
	if f.verdict != "FAIL files: exit status 1" || f.tests["open"].end != "PASS" || f.tests["close"].end != "FAIL: why: so" {
		t.Errorf("%+v %+v", f, f.tests["close"])
	}
	if raw := sections["tty"].tests["raw"]; raw.end != "" || len(raw.lines) != 1 {
		t.Errorf("%+v", raw)
	}
}

func TestDifference(t *testing.T) {
	a := &result{lines: []string{"1", "2", "3"}, end: "PASS"}
	if d := difference(a, &result{lines: []string{"1", "2", "3"}, end: "PASS"}); d != "" {
		t.Errorf("equal outputs differ: %s", d)
	}
	for _, b := range []*result{
		{lines: []string{"1", "2", "4"}, end: "PASS"},
		{lines: []string{"1", "2"}, end: "PASS"},
		{lines: []string{"1", "2", "3", "4"}, end: "PASS"},
		{lines: []string{"1", "2", "3"}, end: "FAIL"},
		{lines: []string{"1", "2", "3"}},
	} {
		if difference(a, b) == "" {
			t.Errorf("%+v passes for %+v", b, a)
		}
	}
}
