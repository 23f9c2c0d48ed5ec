package wire

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hardtack/msg"
)

// A field of a body: what appends it, and what takes it and tells whether it came.
type field struct {
	body []byte
	take func(r *Reader) bool
}

func fields(t *rapid.T) (all []field) {
	put := func(body []byte, take func(r *Reader) bool) { all = append(all, field{body, take}) }
	for range rapid.IntRange(0, 8).Draw(t, "fields") {
		switch rapid.IntRange(0, 7).Draw(t, "kind") {
		case 0:
			v := rapid.Byte().Draw(t, "v")
			put([]byte{v}, func(r *Reader) bool { return r.Uint8() == v })
		case 1:
			v := rapid.Uint16().Draw(t, "v")
			put(binary.LittleEndian.AppendUint16(nil, v), func(r *Reader) bool { return r.Uint16() == v })
		case 2:
			v := rapid.Uint32().Draw(t, "v")
			put(binary.LittleEndian.AppendUint32(nil, v), func(r *Reader) bool { return r.Uint32() == v })
		case 3:
			v := rapid.Uint64().Draw(t, "v")
			put(binary.LittleEndian.AppendUint64(nil, v), func(r *Reader) bool { return r.Uint64() == v })
		case 4:
			v := rapid.Bool().Draw(t, "v")
			b := []byte{0}
			if v {
				b[0] = 1
			}
			put(b, func(r *Reader) bool { return r.Bool() == v })
		case 5:
			n := rapid.Uint32Range(1, 9).Draw(t, "n")
			v := rapid.Uint32Range(0, n-1).Draw(t, "v")
			put(binary.LittleEndian.AppendUint32(nil, v), func(r *Reader) bool { return r.Enum(n) == v })
		case 6:
			v := rapid.StringN(0, 5, 20).Draw(t, "v")
			put(append(binary.LittleEndian.AppendUint32(nil, uint32(len(v))), v...), func(r *Reader) bool { return r.Text(len(v)) == v })
		case 7:
			put([]byte{0}, func(r *Reader) bool { return r.Cap().Kind() == 0 })
		}
	}
	return all
}

// What was put comes back; of a body that ends early, or goes on, Done tells.
func TestReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := fields(t)
		var body []byte
		for _, f := range all {
			body = append(body, f.body...)
		}
		r := NewReader(body, nil)
		for i, f := range all {
			if !f.take(&r) {
				t.Fatalf("field %d of % x came wrong", i, body)
			}
		}
		if err := r.Done("m"); err != nil {
			t.Fatal(err)
		}
		var peer *msg.PeerError
		r = NewReader(append(body, 7), nil)
		for _, f := range all {
			f.take(&r)
		}
		if err := r.Done("m"); !errors.As(err, &peer) {
			t.Fatalf("a byte too many: %v", err)
		}
		if len(body) == 0 {
			return
		}
		r = NewReader(body[:rapid.IntRange(0, len(body)-1).Draw(t, "cut")], nil)
		for _, f := range all {
			f.take(&r)
		}
		if err := r.Done("m"); !errors.As(err, &peer) {
			t.Fatalf("cut short: %v", err)
		}
	})
}

// Each mistake is told in its own words, the first one only, and what follows it
// reads as zero.
func TestMistakes(t *testing.T) {
	word := func(v uint32, more ...byte) []byte { return append(binary.LittleEndian.AppendUint32(nil, v), more...) }
	for _, c := range []struct {
		name string
		body []byte
		take func(r *Reader)
		want string
	}{
		{"bool", []byte{2}, func(r *Reader) { r.Bool() }, "neither 0 nor 1"},
		{"enum", word(3), func(r *Reader) { r.Enum(3) }, "the value 3 of an enumeration of 3"},
		{"limit", word(5, 1, 2, 3, 4, 5), func(r *Reader) { r.Bytes(4) }, "a length of 5, the limit is 4"},
		{"count", word(1<<31, 1, 2), func(r *Reader) { r.Count(1<<31, 1<<20) }, "with 2 bytes left"},
		{"elements", word(2, 1, 2, 3, 4, 5, 6, 7), func(r *Reader) { r.Count(9, 4) }, "a length of 2 with 7 bytes left"},
		{"cap", []byte{1}, func(r *Reader) { r.Cap() }, "a cap of kind 1 where kind 0 came"},
		{"first", []byte{2}, func(r *Reader) { r.Bool(); r.Uint64() }, "neither 0 nor 1"},
	} {
		r := NewReader(append(c.body, 0xff, 0xff, 0xff, 0xff)[:len(c.body)], nil)
		c.take(&r)
		if err := r.Done(c.name); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s: %v", c.name, err)
		}
		if r.Uint8() != 0 || r.Uint16() != 0 || r.Uint32() != 0 || r.Uint64() != 0 || r.Bool() || r.Take(1) != nil || r.Text(1) != "" {
			t.Errorf("%s: something was read behind it", c.name)
		}
	}
	r := NewFormatReader([]byte{1}) // people are shown the rest
	r.Cap()
	if err := r.Done("m"); err != nil {
		t.Error(err)
	}
	if r := NewReader(nil, make([]msg.Cap, 1)); r.Done("m") == nil {
		t.Error("a cap left over is no mistake")
	}
	if err := TooLarge("m.text"); !errors.Is(err, msg.ErrTooLarge) {
		t.Error(err)
	}
}

// Bytes taken in place cannot be grown into what follows them.
func TestInPlace(t *testing.T) {
	r := NewReader([]byte{1, 0, 0, 0, 'a', 'b'}, nil)
	if p := r.Bytes(9); string(append(p, 'x')) != "ax" || r.Uint8() != 'b' {
		t.Errorf("%q", p)
	}
}

func TestResize(t *testing.T) {
	s := make([]int, 2, 5)
	if got := Resize(s, 5); &got[0] != &s[0] || len(got) != 5 {
		t.Error("the room was not used")
	}
	if got := Resize(s, 6); len(got) != 6 {
		t.Error(len(got))
	}
}

func TestFormat(t *testing.T) {
	type point struct{ X, Y int8 }
	got := Format("m", "text", `a"b`, "long", strings.Repeat("z", 70), "list", make([]uint8, 18), "at", []point{{1, -2}}, "cap", msg.Cap{})
	want := `m{text: "a\"b", long: "` + strings.Repeat("z", 64) + `"… (70), list: [` + strings.Repeat("0 ", 15) + `0 … (18)], at: [{X: 1, Y: -2}], cap: cap}`
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
