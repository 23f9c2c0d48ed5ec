package tasktrace

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"hardtack/tool/fault"
)

const sample = `{"displayTimeUnit":"ns","traceEvents":[
{"name":"thread_name","ph":"M","ts":0,"pid":1,"tid":0,"args":{"name":"workers"}},
{"name":"workers","ph":"C","ts":0,"pid":1,"tid":0,"args":{"n":2}},
{"name":"workers","ph":"C","ts":60,"pid":1,"tid":0,"args":{"n":1}},
{"name":"thread_name","ph":"M","ts":0,"pid":1,"tid":1,"args":{"name":"worker <0>"}},
{"name":"run","ph":"B","ts":10,"pid":1,"tid":1},
{"name":"spawn","ph":"i","ts":20,"pid":1,"tid":1,"s":"t","args":{"depth":0}},
{"name":"join","ph":"B","ts":50,"pid":1,"tid":1},
{"name":"join","ph":"E","ts":70,"pid":1,"tid":1},
{"name":"run","ph":"E","ts":100,"pid":1,"tid":1}
]}`

func TestRead(t *testing.T) {
	tr, err := Read(strings.NewReader(sample))
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.Lanes) != 1 || tr.End != 100 || len(tr.Steps) != 2 || tr.Steps[1] != (Step{60, 1}) {
		t.Fatalf("%+v", tr)
	}
	l := tr.Lanes[0]
	if l.Totals["run"] != 70 || l.Totals["join"] != 20 || l.Unknown != 10 || l.Counts["spawn"] != 1 {
		t.Errorf("%+v", l)
	}
	var out bytes.Buffer
	if err := tr.WritePage(&out, "a <title>"); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	for _, want := range []string{"a &lt;title&gt;", "worker &lt;0&gt;", "70.0 %", "20.0 µs", "1 spawn"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestBadTraces(t *testing.T) {
	for _, s := range []string{
		"", "[]", "{", `{"traceEvents":[]}`,
		`{"traceEvents":[{"name":"run","ph":"E","ts":1,"tid":1}]}`,
		`{"traceEvents":[{"name":"run","ph":"B","ts":1,"tid":1}]}`,
		`{"traceEvents":[{"name":"run","ph":"B","ts":2,"tid":1},{"name":"run","ph":"E","ts":1,"tid":1}]}`,
		`{"traceEvents":[{"name":"run","ph":"?","ts":1,"tid":1}]}`,
		`{"traceEvents":[{"name":"workers","ph":"C","ts":1,"tid":1,"args":"x"}]}`,
		`{"traceEvents":[{"name":"run","ph":"B","ts":-1,"tid":1}]}`,
	} {
		if _, err := Read(strings.NewReader(s)); fault.Status(err) != fault.Status(fault.Bad("x")) {
			t.Errorf("%q: %v", s, err)
		}
	}
	if _, err := Read(badReader{}); err == nil {
		t.Error("a reader's error is lost")
	}
}

type badReader struct{}

func (badReader) Read([]byte) (int, error) { return 0, errors.New("no") }

func FuzzRead(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte(`{"traceEvents":[{"ph":"i","tid":-1},{"ph":"C","args":{"n":1e9}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tr, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		if err := tr.WritePage(&bytes.Buffer{}, "x"); err != nil {
			t.Fatal(err)
		}
	})
}
