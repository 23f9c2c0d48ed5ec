package timeline

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const sample = `s 0 0 0 0 0 0 0 0
s 1000000000 1000000 500000 10 0 0 0 0
e 1100000000 1 257 1000 2000
s 2000000000 4000000 500000 10 1 2 0 1
s 3000000000 4000000 500000 10 1 2 1 0
e 3100000000 3 0 1 1
s 4000`

func TestReadAndRates(t *testing.T) {
	r, err := Read(strings.NewReader(sample))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Samples) != 4 || len(r.Events) != 2 || r.Events[0].Kind != "gathered" || r.Events[1].Kind != "pinned" {
		t.Fatalf("%+v", r)
	}
	rates := r.Rates(3)
	want := []Rate{{time.Second, 1e6, 5e5}, {2 * time.Second, 3e6, 0}, {3 * time.Second, 0, 0}}
	for i := range want {
		if len(rates) != len(want) || rates[i] != want[i] {
			t.Fatalf("%+v", rates)
		}
	}
	var b bytes.Buffer
	r.Text(&b, 10)
	for _, s := range []string{"4.0 M touches", "12.5 %", "group 1 gathered: 1.0 k touches/s scattered, 2.0 k together", "pinned: 1 of 1"} {
		if !strings.Contains(b.String(), s) {
			t.Errorf("no %q in:\n%s", s, b.String())
		}
	}
	name := filepath.Join(t.TempDir(), "x.svg")
	if err := SVG(name, r, &Run{Name: "empty"}); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(name); !bytes.Contains(data, []byte("<svg")) {
		t.Error("no SVG")
	}
}

func TestReadBad(t *testing.T) {
	for _, bad := range []string{"\n", "x 1\n", "s 1 2\n", "s 0 0 0 0 0 0 0 -1\n", "e 1 9 0 0 0\n", "e 1 0 0 0 0\n",
		"s 5 9 0 0 0 0 0 0\ns 6 8 0 0 0 0 0 0\n"} {
		if _, err := Read(strings.NewReader(bad)); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(sample)
	f.Add("s 1 1 1 1 1 1 1 1\ne 1 1 1 1 1\n")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := Read(strings.NewReader(s))
		if err != nil {
			return
		}
		for _, v := range r.Rates(7) {
			if v.Touches < 0 || v.Cross < 0 {
				t.Fatalf("a negative rate: %+v", v)
			}
		}
		r.Text(&bytes.Buffer{}, 7)
	})
}
