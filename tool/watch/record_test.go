package watch

import (
	"encoding/json"
	"strings"
	"testing"
)

type traceFile struct {
	TraceEvents []event `json:"traceEvents"`
}

func written(t *testing.T, r *Recording) (f traceFile) {
	t.Helper()
	var b strings.Builder
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(b.String()), &f); err != nil {
		t.Fatalf("%v in\n%s", err, b.String())
	}
	return f
}

func TestRecord(t *testing.T) {
	k := &kernel{reports: map[string]string{"flight": "now 9000 1\nthread 7 5 \"red\\x1bis\"\nrun 1 2000 5000 7 3\nrun 0 1000 2000 0 9\nrun 99 1 2 3 4\nrun 1 5 1 0 0\n" +
		"call read 7 2500 3000\ncall <b> 7 1 2\ncall read x y z\nirq 2 1500\ngc 4000 500\nnonsense\n"}}
	r, err := source(t, k).Record(t.Context(), false, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := written(t, r)
	var got []string
	for _, e := range f.TraceEvents {
		if e.Phase != "M" {
			got = append(got, e.Phase+" "+e.Name)
		}
	}
	if want := "X goroutine 9, i irq 2, X red?is, X read, X world stopped"; strings.Join(got, ", ") != want {
		t.Errorf("the events are %s, not %s", strings.Join(got, ", "), want)
	}
	for _, e := range f.TraceEvents {
		if e.Name == "read" && (e.PID != 5 || e.TID != 7 || e.Time != 2.5 || e.Dur != 0.5) {
			t.Errorf("the call is %+v", e)
		}
	}
}

func TestPanic(t *testing.T) {
	r, err := ParsePanic("now 3e8 3e8\r\nr 1 64 c8 700000003\r\nc 0 12c 100000000000007 64\r\nc 0 12c 200000300000000 0\r\nc 0 fff 100000000000007 64\r\nr x y z w\r\nr 1 2\r\n")
	if err != nil {
		t.Fatal(err)
	}
	f := written(t, r)
	var got []string
	for _, e := range f.TraceEvents {
		if e.Phase != "M" {
			got = append(got, e.Name)
		}
	}
	if want := "thread 7, call 0, irq 3"; strings.Join(got, ", ") != want {
		t.Errorf("the events are %s, not %s", strings.Join(got, ", "), want)
	}
	if _, err := ParsePanic("hello\n"); err == nil {
		t.Error("nothing is taken for a recording")
	}
}

func FuzzRecording(f *testing.F) {
	f.Add("thread 7 5 \"x\"\nrun 1 2 3 4 5\ncall read 7 1 2\n")
	f.Add("now 3e8 3e8\nr 1 64 c8 700000003\n")
	f.Fuzz(func(t *testing.T, text string) {
		written(t, parseRecording(text))
		if r, err := ParsePanic(text); err == nil {
			written(t, r)
		}
	})
}
